"""A few mutants, always the same, are killed by the tests that docs/mutants.md says."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from omega.clock import RealClock
from tests.architecture.tree import ROOT
from tests.docs.documents import document
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.page import PAGE, killers, part_of
from tests.mutants.runner import MutantRunner, Status, copied
from tests.mutants.servers import servers

pytestmark = pytest.mark.slow

SEED = 17
PARTS = ("numpy", "commit", "quota", "process", "sim")
"""One mutant of each: the judges, in numpy and in SQL, quotas, processes, the simulator."""


def sample() -> Iterator[Mutant]:
    """Yield one mutant of each part, with only the test that killed it."""
    rng = np.random.default_rng(SEED)
    tests = killers(document(PAGE).text)
    for part in PARTS:
        of_part = [mutant for mutant in MUTANTS if part_of(mutant) == part]
        mutant = of_part[rng.integers(len(of_part))]
        killer = tests.get(mutant.name)
        yield replace(mutant, tests=(killer[0], "-k", killer[1])) if killer else mutant


@pytest.fixture(scope="module")
def runner() -> Iterator[MutantRunner]:
    """A runner with a server of its own: other tests create and drop roles on theirs."""
    with copied(ROOT) as original, servers(1) as urls:
        yield MutantRunner(original, RealClock(), urls, stop=threading.Event(), limit_s=120.0)


@pytest.mark.parametrize("mutant", list(sample()), ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_page_is_killed(runner: MutantRunner, mutant: Mutant) -> None:
    result = runner.test(mutant)

    assert Status.KILLED is result.status, result.message
