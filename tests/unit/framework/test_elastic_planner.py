"""Which helpers end when too much is in use."""

import numpy as np

from omega.framework.elastic_planner import newest
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, integers
from omega.model.resources import amounts


def some_helpers(*held: tuple[int, Amounts]) -> Allocations:
    """Return helpers, each with its start and its amounts."""
    number = len(held)
    return Allocations(
        job=integers([7] * number),
        task=integers(range(number)),
        machine=integers([1] * number),
        amounts=np.array([its for _, its in held]),
        started_ms=integers(start for start, _ in held),
        duration_ms=integers([-1] * number),
    )


CORE = amounts(cpu_milli=1_000)


def test_the_newest_go_first_and_no_more_than_are_needed() -> None:
    live = some_helpers((10, CORE), (30, CORE), (20, CORE), (30, CORE))

    assert [False, False, False, True] == newest(live, amounts(cpu_milli=1), 9).tolist()
    assert [False, True, False, True] == newest(live, amounts(cpu_milli=2_000), 9).tolist()
    assert [False, True, True, True] == newest(live, amounts(cpu_milli=2_001), 9).tolist()
    assert [True] * 4 == newest(live, amounts(cpu_milli=9_000), 9).tolist()


def test_what_holds_nothing_of_a_kind_in_excess_stays() -> None:
    live = some_helpers((10, CORE), (20, amounts(memory_mib=5)), (30, CORE))

    assert [False, True, False] == newest(live, amounts(memory_mib=4), 9).tolist()


def test_without_excess_all_stay() -> None:
    assert [False] == newest(some_helpers((10, CORE)), 0 * CORE, 9).tolist()


def test_no_more_go_than_one_call_may_end() -> None:
    live = some_helpers((10, CORE), (30, CORE), (20, CORE))

    assert [False, True, False] == newest(live, amounts(cpu_milli=9_000), 1).tolist()
