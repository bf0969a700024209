"""What the tests of all mutants share: mutants by file, and each planted in the code as it is."""

from functools import cache

import pytest

from tests.architecture.tree import ROOT
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant, Planted
from tests.mutants.tokens import tokens_of

FILES = sorted({mutant.file for mutant in MUTANTS})
of_every_file = pytest.mark.parametrize("file", FILES)
"""One test for all mutants of a file, whose tokens are then found once."""


def mutants_of(file: str) -> tuple[Mutant, ...]:
    """Return those that are planted in this file."""
    return tuple(mutant for mutant in MUTANTS if mutant.file == file)


@cache
def planted(mutant: Mutant) -> Planted:
    """Plant it in the code as it is."""
    return mutant.planted(ROOT)


def contents(code: str, mutant: Mutant) -> list[str]:
    return [token.content for token in tokens_of(code, is_sql=mutant.is_sql)]
