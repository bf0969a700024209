"""Facts of many processes as if one had done it all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.clock import ManualClock
from omega.events import Event, JobAttempted, JobParked, JobsLeased, TransactionJudged
from omega.metrics.facts import GROUPS, NOTHING, Facts, merge
from omega.metrics.fold import SchedulerFold

CLEAN = TransactionJudged("batch", 1, 0, 30, {}, thought_s=1.0, took_s=1.0)
CONFLICTED = TransactionJudged("batch", 1, 1, 10, {"stale": 10}, thought_s=3.0, took_s=1.0)
DONE = JobAttempted(1, tries=1, placed=1, left=0, thought_s=4.0)


def facts_of(*events: Event, elapsed_s: float = 10.0) -> Facts:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    for event in events:
        fold(event)
    clock.advance(elapsed_s)
    return fold.facts()


def test_one_process_alone_stays_as_it_is() -> None:
    facts = facts_of(CLEAN, CONFLICTED, DONE, JobsLeased(1, (2.0,)), JobParked(1, "no_room"))

    assert facts == merge(facts)


def test_no_process_did_nothing() -> None:
    assert {} == merge()["totals"]
    assert merge()["measures"]["conflict_fraction"] is None


def test_counts_add_up_name_by_name() -> None:
    merged = merge(
        facts_of(CLEAN, JobParked(1, "no_room")),
        facts_of(CONFLICTED, JobParked(2, "no_room"), JobParked(3, "conflicts")),
    )

    assert 40 == merged["totals"]["tasks_placed"]
    assert {"stale": 10} == merged["totals"]["refused"]
    assert {"no_room": 2, "conflicts": 1} == merged["totals"]["parked"]
    assert 1.0 == merged["measures"]["conflict_fraction"]


def test_rates_add_up_and_busyness_is_the_mean() -> None:
    busy, idle = facts_of(CLEAN, CONFLICTED, DONE), facts_of()

    merged = merge(busy, idle)["measures"]

    assert 4.0 == merged["tasks_per_s"] == merged["tasks_per_s_now"]
    assert 0.6 == pytest.approx(busy["measures"]["busy"])
    assert 0.3 == pytest.approx(merged["busy"]) == merged["busy_now"]


def test_quantiles_are_those_of_all_waits() -> None:
    merged = merge(facts_of(JobsLeased(9, (1.0,) * 9)), facts_of(JobsLeased(2, (100.0,) * 2)))

    assert 1.0 == pytest.approx(merged["measures"]["wait_p50_s"], rel=0.06)
    assert 100.0 == pytest.approx(merged["measures"]["wait_p90_s"], rel=0.06)


def test_merging_changes_none_of_its_parts() -> None:
    first, second = facts_of(CLEAN, JobParked(1, "no_room")), facts_of(JobParked(1, "no_room"))

    merge(first, second)

    assert {"no_room": 1} == first["totals"]["parked"]


NAMES = st.sampled_from([*NOTHING, *GROUPS, "claims", "jobs_placed", "7", "measures", "speedup"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | st.text(max_size=3), inner),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, ANY_JSON))
def test_what_is_told_in_another_form_counts_for_nothing(told: dict[str, Any]) -> None:
    honest = facts_of(CLEAN, CONFLICTED, DONE)
    merged = merge(told, honest)

    assert all(value is None or value >= 0 for value in merged["measures"].values())
    assert merged == merge(merge(told), honest)
    assert json.loads(json.dumps(merged, allow_nan=False)) == merged


def test_a_part_of_another_form_leaves_the_rest() -> None:
    honest = facts_of(CLEAN, CONFLICTED, DONE)
    totals = {**honest["totals"], "refused": 7, "claims": {"a": 1}, "tasks_placed": True}
    merged = merge({**honest, "totals": totals, "waits": {"x": 1, "9" * 5_000: 1}})

    assert honest["totals"]["transactions"] == merged["totals"]["transactions"]
    assert {"claims", "tasks_placed"}.isdisjoint(merged["totals"])
    assert {} == merged["totals"]["refused"]
    assert {} == merged["waits"]
