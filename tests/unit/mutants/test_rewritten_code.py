"""Mutants are planted in the same places of code that is rewritten: names or layout changed."""

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.mutants.mutant import Mutant
from tests.mutants.tokens import Kind, tokens_of
from tests.unit.mutants.planting import contents, mutants_of, of_every_file, planted
from tests.unit.mutants.rewriting import reformatted, renamed, renamed_token


def rewritten(root: Path, mutants: Iterable[Mutant], rewrite: Callable[..., str]) -> Path:
    """Write the files that these mutants name under `root`, each changed."""
    for path in {path for mutant in mutants for path in mutant.files(ROOT)}:
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        copy.write_text(rewrite(text, is_sql=path.suffix == ".sql"), encoding="utf-8")
    return root


@of_every_file
def test_a_mutant_is_planted_after_all_names_have_changed(file: str, tmp_path: Path) -> None:
    """With every name changed, those of functions too."""
    renamed_tree = rewritten(tmp_path, mutants_of(file), renamed)
    for mutant in mutants_of(file):
        ours, theirs = planted(mutant), mutant.planted(renamed_tree)
        # A state, say, that only the fault mentions, stays what it is.
        known = mutant.before + "".join(mutant.borrows or ())
        expected = [
            token.content
            if token.kind is Kind.WORD and token.text not in known
            else renamed_token(token)
            for token in tokens_of(ours.fault, is_sql=mutant.is_sql)
        ]

        assert ours.at == theirs.at, mutant.name
        assert expected == contents(theirs.fault, mutant), mutant.name


@of_every_file
def test_a_mutant_is_planted_whatever_the_layout(file: str, tmp_path: Path) -> None:
    """With other comments and white space."""
    reformatted_tree = rewritten(tmp_path, mutants_of(file), reformatted)
    for mutant in mutants_of(file):
        ours, theirs = planted(mutant), mutant.planted(reformatted_tree)

        assert ours.at == theirs.at, mutant.name
        assert ours.text != theirs.text, mutant.name
        assert contents(ours.fault, mutant) == contents(theirs.fault, mutant), mutant.name
