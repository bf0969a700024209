"""The list of mutants fits the code as it is today, and as it would be after a renaming."""

import ast
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant, Planted
from tests.mutants.runner import COPIED
from tests.mutants.tokens import Kind, tokens_of
from tests.unit.mutants.rewriting import reformatted, renamed, renamed_token

every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


def rewritten(root: Path, rewrite: Callable[..., str]) -> Path:
    """Write the files of all mutants under `root`, each changed."""
    for path in {path for mutant in MUTANTS for path in mutant.files(ROOT)}:
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        copy.write_text(rewrite(text, is_sql=path.suffix == ".sql"), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def renamed_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all mutants, with every name changed, those of functions too."""
    return rewritten(tmp_path_factory.mktemp("renamed"), renamed)


@pytest.fixture(scope="module")
def reformatted_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all mutants, with other comments and white space."""
    return rewritten(tmp_path_factory.mktemp("reformatted"), reformatted)


@cache
def planted(mutant: Mutant) -> Planted:
    """Plant it in the code as it is."""
    return mutant.planted(ROOT)


def contents(code: str, mutant: Mutant) -> list[str]:
    return [token.content for token in tokens_of(code, is_sql=mutant.is_sql)]


@every_mutant
def test_a_mutant_changes_the_file_in_one_place(mutant: Mutant) -> None:
    """If it has no place: look for the code that it was a fault of, and change its fragment."""
    ours = planted(mutant)
    text = ours.path.read_text(encoding="utf-8")
    replaced = text[len(ours.before) : len(text) - len(ours.after)]

    assert text == ours.before + replaced + ours.after
    assert contents(replaced, mutant) != contents(ours.fault, mutant)
    assert ours.path.relative_to(ROOT).parts[0] in COPIED


@every_mutant
def test_a_mutant_is_planted_after_all_names_have_changed(
    mutant: Mutant, renamed_tree: Path
) -> None:
    ours, theirs = planted(mutant), mutant.planted(renamed_tree)
    # A state, say, that only the fault mentions, stays what it is.
    known = mutant.before + "".join(mutant.borrows or ())
    expected = [
        token.content
        if token.kind is Kind.WORD and token.text not in known
        else renamed_token(token)
        for token in tokens_of(ours.fault, is_sql=mutant.is_sql)
    ]

    assert ours.at == theirs.at
    assert expected == contents(theirs.fault, mutant)


@every_mutant
def test_a_mutant_is_planted_whatever_the_layout(mutant: Mutant, reformatted_tree: Path) -> None:
    ours, theirs = planted(mutant), mutant.planted(reformatted_tree)

    assert ours.at == theirs.at
    assert ours.text != theirs.text
    assert contents(ours.fault, mutant) == contents(theirs.fault, mutant)


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if not m.is_sql], ids=lambda mutant: mutant.name
)
def test_a_mutant_in_python_is_python(mutant: Mutant) -> None:
    assert ast.parse(planted(mutant).text).body


def test_the_tests_of_a_mutant_exist() -> None:
    paths = {tests for mutant in MUTANTS for tests in mutant.tests}

    assert [] == [path for path in sorted(paths) if not (ROOT / path).exists()]


def test_every_mutant_has_a_name_of_its_own_and_says_why() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)

    assert [] == [name for name, times in names.items() if times > 1]
    assert [] == [mutant.name for mutant in MUTANTS if not mutant.why.endswith(".")]
    assert 15 <= len(names)
