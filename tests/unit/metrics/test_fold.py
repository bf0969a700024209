"""What a scheduler's events add up to."""

import json
import threading
from dataclasses import replace

import pytest

from omega.clock import ManualClock
from omega.events import (
    Event,
    JobAttempted,
    JobParked,
    JobsLeased,
    JobsRescued,
    JobsWoken,
    MachinesExpired,
    RateUnknown,
    StoreCallFailed,
    TasksEnded,
    TasksEvicted,
    TasksLost,
    TransactionJudged,
    TurnChanged,
    ViewRefreshed,
)
from omega.metrics.facts import Facts
from omega.metrics.fold import WINDOW_S, SchedulerFold
from omega.model.outcomes import Verdict


def judged(
    *,
    jobs: int = 1,
    jobs_conflicted: int = 0,
    accepted: int = 1,
    refused: dict[str, int] | None = None,
    thought_s: float = 0.0,
    took_s: float = 0.0,
) -> TransactionJudged:
    return TransactionJudged(
        "batch", jobs, jobs_conflicted, accepted, refused or {}, thought_s, took_s
    )


def facts_of(*events: Event, elapsed_s: float = 4.0) -> Facts:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    for event in events:
        fold(event)
    clock.advance(elapsed_s)
    return fold.facts()


def test_it_says_how_long_ago_the_cell_was_read() -> None:
    clock = ManualClock()
    fold = SchedulerFold(clock)

    assert fold.refreshed_s_ago() is None
    fold(ViewRefreshed(rows=3, age_s=9.0, took_s=0.1, full=True))
    clock.advance(4.0)
    assert 4.0 == fold.refreshed_s_ago()


def test_nothing_yet_is_told_as_nothing() -> None:
    facts = facts_of(elapsed_s=0.0)

    assert {} == facts["totals"]
    assert {None} == set(facts["measures"].values())


def test_the_conflict_fraction_is_conflicted_job_transactions_per_conflict_free_one() -> None:
    facts = facts_of(
        judged(jobs=3, jobs_conflicted=1, accepted=5, refused={"overcommit": 2}),
        judged(jobs=1, jobs_conflicted=1, accepted=0, refused={"stale": 1, "overcommit": 1}),
        judged(jobs=2, accepted=11),
    )

    assert 2 / 4 == facts["measures"]["conflict_fraction"]
    assert 4 / 20 == facts["measures"]["claim_conflict_fraction"]
    assert {"overcommit": 3, "stale": 1} == facts["totals"]["refused"]
    assert 2 == facts["totals"]["transactions_conflicted"]


def test_evicted_tasks_are_counted() -> None:
    facts = facts_of(replace(judged(), evicted=3), judged(), replace(judged(), evicted=2))

    assert 5 == facts["totals"]["tasks_evicted"]


def test_jobs_that_lose_tasks_to_others_are_counted_once_a_commit() -> None:
    facts = facts_of(TasksEvicted(1, 3, 9), TasksEvicted(2, 1, 9), TasksEvicted(1, 1, 9))

    assert 3 == facts["totals"]["jobs_evicted"]


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.ACCEPTED])
def test_every_verdict_is_counted(verdict: Verdict) -> None:
    name = verdict.name.lower()

    assert {name: 3} == facts_of(judged(refused={name: 3}))["totals"]["refused"]


def test_rates_are_per_second_since_the_beginning() -> None:
    facts = facts_of(
        judged(accepted=40),
        JobAttempted(1, tries=1, placed=40, left=0, thought_s=0.0),
        JobAttempted(2, tries=3, placed=0, left=9, thought_s=0.0),
    )

    assert 10.0 == facts["measures"]["tasks_per_s"]
    assert 0.25 == facts["measures"]["jobs_per_s"]
    assert (2, 1, 2) == tuple(
        facts["totals"][name] for name in ("attempts", "attempts_fruitless", "retries")
    )


def test_busyness_is_deciding_and_committing_useful_wasted_or_for_nothing() -> None:
    facts = facts_of(
        judged(thought_s=1.0, took_s=0.5),
        judged(jobs=4, jobs_conflicted=1, refused={"stale": 1}, thought_s=2.0, took_s=0.4),
        JobAttempted(1, tries=1, placed=1, left=0, thought_s=3.0),
        JobAttempted(2, tries=1, placed=0, left=1, thought_s=0.5),  # found no room
        elapsed_s=10.0,
    )

    measures = facts["measures"]
    assert (3.5 + 0.9) / 10 == pytest.approx(measures["busy"])
    assert (1.0 + 1.5 + 0.5 + 0.3) / 10 == pytest.approx(measures["busy_useful"])
    assert (0.5 + 0.1) / 10 == pytest.approx(measures["busy_wasted"])


def test_the_window_forgets_what_the_totals_keep() -> None:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    fold(judged(accepted=1_000))
    clock.advance(WINDOW_S * 3)
    fold(judged(accepted=20))
    clock.advance(1.0)

    measures = fold.facts()["measures"]
    clock.advance(WINDOW_S + 1.0)
    later = fold.facts()["measures"]

    assert 1_020 / 31 == pytest.approx(measures["tasks_per_s"])
    assert 20 / WINDOW_S == pytest.approx(measures["tasks_per_s_now"])
    assert 0.0 == later["tasks_per_s_now"]


def test_a_young_process_has_a_short_window() -> None:
    assert 25.0 == facts_of(judged(accepted=50), elapsed_s=2.0)["measures"]["tasks_per_s_now"]


def test_the_window_holds_a_bounded_number_of_samples() -> None:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    for _ in range(5_000):
        clock.advance(0.01)
        fold(judged(accepted=1))

    assert 100.0 == pytest.approx(fold.facts()["measures"]["tasks_per_s_now"], rel=0.06)
    assert len(fold._samples) <= 22  # noqa: SLF001 - memory is what is promised here


def test_waits_and_view_ages_have_quantiles() -> None:
    facts = facts_of(
        JobsLeased(12, first_waits_s=(1.0, 1.0, 1.0, 50.0)),
        ViewRefreshed(rows=5, age_s=0.2, took_s=0.1, full=False),
        ViewRefreshed(rows=9, age_s=0.0, took_s=0.3, full=True),
    )

    assert 1.0 == pytest.approx(facts["measures"]["wait_p50_s"], rel=0.06)
    assert 12 == facts["totals"]["jobs_leased"]
    assert 53.0 == facts["totals"]["waits_s"]
    assert (2, 1, 14) == tuple(
        facts["totals"][name] for name in ("refreshes", "refreshes_full", "rows")
    )
    assert 0.4 == pytest.approx(facts["totals"]["refresh_s"])


def test_what_befalls_jobs_and_the_store_is_counted() -> None:
    totals = facts_of(
        JobParked(1, "no_room"),
        JobParked(2, "no_room"),
        JobParked(3, "never_fits"),
        JobsWoken(2),
        JobsRescued(4),
        MachinesExpired(5),
        MachinesExpired(1),
        StoreCallFailed("commit", "away"),
        TasksEnded(7),
        RateUnknown("no table"),
        TurnChanged((0, 2)),
        TasksLost(3, "failed"),
        TasksLost(2, "shrank"),
    )["totals"]

    assert {"no_room": 2, "never_fits": 1} == totals["parked"]
    assert (3, 2, 4, 7) == tuple(
        totals[name] for name in ("jobs_parked", "jobs_woken", "jobs_rescued", "tasks_ended")
    )
    assert {"commit": 1} == totals["faltered"]
    assert 6 == totals["machines_expired"]
    assert (1, 1) == (totals["rates_unknown"], totals["turns_changed"])
    assert (5, {"failed": 3, "shrank": 2}) == (totals["tasks_lost"], totals["lost"])


def test_facts_are_json() -> None:
    facts = facts_of(judged(refused={"stale": 1}), JobsLeased(1, (0.5,)), JobParked(1, "no_room"))

    assert facts == json.loads(json.dumps(facts))


def test_several_threads_may_report_at_once() -> None:
    fold = SchedulerFold(ManualClock())

    def wake() -> None:
        for _ in range(2_000):
            fold(JobsWoken(1))

    threads = [threading.Thread(target=wake) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8_000 == fold.facts()["totals"]["jobs_woken"]
