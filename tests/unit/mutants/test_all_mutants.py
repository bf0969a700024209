"""The list of mutants fits the code as it is today."""

import ast
from collections import Counter

import pytest

from tests.architecture.tree import ROOT
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.runner import COPIED
from tests.unit.mutants.planting import FILES, contents, mutants_of, of_every_file, planted


@of_every_file
def test_a_mutant_changes_the_file_in_one_place(file: str) -> None:
    """If it has no place: look for the code that it was a fault of, and change its fragment."""
    for mutant in mutants_of(file):
        ours = planted(mutant)
        text = ours.path.read_text(encoding="utf-8")
        replaced = text[len(ours.before) : len(text) - len(ours.after)]

        assert text == ours.before + replaced + ours.after, mutant.name
        assert contents(replaced, mutant) != contents(ours.fault, mutant), mutant.name
        assert ours.path.relative_to(ROOT).parts[0] in COPIED, mutant.name


@pytest.mark.parametrize("file", [file for file in FILES if not file.endswith(".sql")])
def test_a_mutant_in_python_is_python(file: str) -> None:
    for mutant in mutants_of(file):
        assert ast.parse(planted(mutant).text).body, mutant.name


def test_the_tests_of_a_mutant_exist() -> None:
    paths = {tests for mutant in MUTANTS for tests in mutant.tests}

    assert [] == [path for path in sorted(paths) if not (ROOT / path).exists()]


def test_every_mutant_has_a_name_of_its_own_and_says_why() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)

    assert [] == [name for name, times in names.items() if times > 1]
    assert [] == [mutant.name for mutant in MUTANTS if not mutant.why.endswith(".")]
    assert 15 <= len(names)
