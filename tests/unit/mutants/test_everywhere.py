"""The list of mutants is alive: each fits the code as it is today."""

import ast
from collections import Counter

import pytest

from tests.architecture.tree import ROOT
from tests.mutants.everywhere import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.trial import COPIED


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_one_place_to_be_planted_in(mutant: Mutant) -> None:
    """When code moves, its mutants move with it: look for what they were a fault of."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert 1 == text.count(mutant.before), mutant.before
    assert mutant.before != mutant.after
    assert mutant.file.split("/")[0] in COPIED


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.file.endswith(".py")], ids=lambda mutant: mutant.name
)
def test_a_mutant_in_python_is_python(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert ast.parse(text.replace(mutant.before, mutant.after)).body


def test_the_tests_that_are_asked_are_there() -> None:
    asked = {tests for mutant in MUTANTS for tests in mutant.tests}

    assert [] == [tests for tests in sorted(asked) if not (ROOT / tests).exists()]


def test_every_mutant_has_a_name_of_its_own_and_says_why() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)

    assert [] == [name for name, times in names.items() if times > 1]
    assert [] == [mutant.name for mutant in MUTANTS if not mutant.why.endswith(".")]
    assert 15 <= len(names)
