"""What the schedulers of a saved cell did, in measures."""

import numpy as np
import pytest

from omega.lifecycle.states import State
from omega.reports.what_happened import (
    MEASURES,
    JobSeen,
    Judged,
    conflict_deviations,
    measures,
    saved_summary,
    what_happened,
)
from omega.testing.builders import a_spec
from tests.fixtures.saved_cells import (
    a_process,
    a_saved_cell,
    a_saved_job,
    a_scheduler,
    running,
)

FACTS = {"elapsed_s": 30.0, "process_s": 30.0, "totals": {"thought_s": 12.0}}


def test_jobs_of_the_time_are_told_with_their_waits() -> None:
    jobs = (
        a_saved_job(1, submitted_s=-5, leased_s=9),
        a_saved_job(2, submitted_s=10, leased_s=12),
        a_saved_job(3, state=State.PARKED, unplaced=((0, 1),), submitted_s=20, leased_s=26),
        a_saved_job(4, state=State.PENDING, unplaced=((0, 1),), submitted_s=30),
        a_saved_job(5, parent=2, submitted_s=30, leased_s=31),
        a_saved_job(6, submitted_s=59, leased_s=59),
    )
    told = what_happened(a_saved_cell(jobs=jobs))["batch"]

    assert list(MEASURES) == list(told)
    assert (3, 1, 1, 1) == tuple(
        told[name] for name in ("jobs", "jobs_placed", "jobs_parked", "jobs_not_tried")
    )
    assert (4.0, 2.0) == (told["wait_mean_s"], told["wait_p90_s"])


def test_conflicts_are_counted_over_the_replicas_of_a_kind() -> None:
    schedulers = (
        a_scheduler(replica="0", jobs=10, conflicted=2),
        a_scheduler(replica="1", jobs=6, conflicted=2),
        a_scheduler("service", jobs=4, conflicted=4),
    )
    told = what_happened(a_saved_cell(schedulers=schedulers))

    assert (2, 1 / 3) == (told["batch"]["schedulers"], told["batch"]["conflict_fraction"])
    assert 4 / 32 == told["batch"]["claim_conflict_fraction"]
    assert told["service"]["conflict_fraction"] is None, "no transaction was conflict-free"


def test_the_deviation_of_a_conflict_fraction_is_that_of_a_ratio_of_sums() -> None:
    """Of two replicas: 30 conflicts for 60 jobs free of them, half of the parts with 2, half 4."""
    first = a_scheduler(replica="0", parts=[(7, 1), (8, 2)] * 5)
    second = a_scheduler(replica="1", parts=[(1, 1), (2, 2)] * 5)
    cell = a_saved_cell(schedulers=(first, second))

    # Each part is off by 1 from its share of conflicts: 2 or 4 for 6 jobs, at 3 on average.
    expected = np.sqrt(10 / 9 * 10) / 60
    assert {"batch": {"conflict_fraction": pytest.approx(expected)}} == conflict_deviations(cell)


def test_a_steady_conflict_fraction_does_not_vary() -> None:
    busier = [(3 * part, part) for part in range(1, 11)]
    cell = a_saved_cell(schedulers=(a_scheduler(parts=busier),))
    assert {"batch": {"conflict_fraction": pytest.approx(0)}} == conflict_deviations(cell)


@pytest.mark.parametrize("parts", [[], [(1, 1)] * 10, [(2, 1)] * 9])
def test_the_deviation_of_a_conflict_fraction_is_not_known(parts: list[tuple[int, int]]) -> None:
    """Of a file that names no parts, or where every job conflicted."""
    assert {} == conflict_deviations(a_saved_cell(schedulers=(a_scheduler(parts=parts),)))


def test_the_deviation_is_that_of_many_times_of_one_process() -> None:
    """Times are drawn with a known fraction: their estimates are right on average."""
    rng = np.random.default_rng(0)
    fractions, estimates = [], []
    for _ in range(300):
        free, conflicted = rng.poisson(20, 10), rng.poisson(10, 10)
        parts = [(int(f + c), int(c)) for f, c in zip(free, conflicted, strict=True)]
        told = conflict_deviations(a_saved_cell(schedulers=(a_scheduler(parts=parts),)))
        estimates.append(told["batch"]["conflict_fraction"])
        fractions.append(conflicted.sum() / free.sum())
    assert 0.9 < np.mean(estimates) / np.std(fractions) < 1.1


def test_busyness_is_over_the_time_and_known_only_of_those_who_report() -> None:
    at_work = a_saved_cell(processes=(a_process(facts=FACTS),))
    longer = {**FACTS, "process_s": 120.0}

    assert what_happened(a_saved_cell())["batch"]["busy"] is None
    assert 12 / 60 == what_happened(at_work)["batch"]["busy"]
    cell = a_saved_cell(processes=(a_process(facts=longer),))
    assert 12 / 120 == what_happened(cell)["batch"]["busy"]


def test_measures_without_anything_are_unknown() -> None:
    untried = JobSeen(wait_s=None, is_placed=False, is_parked=False)
    told = measures(schedulers=1, jobs=[untried], judged=Judged(), busy=None)

    assert (1, 1) == (told["jobs"], told["jobs_not_tried"])
    assert [None] * 5 == [
        told[name]
        for name in (
            *("conflict_fraction", "claim_conflict_fraction", "busy"),
            *("wait_mean_s", "wait_p90_s"),
        )
    ]


def test_a_summary_counts_what_is_saved() -> None:
    jobs = (
        a_saved_job(1, a_spec(2), state=State.PENDING, unplaced=((1, 2),)),
        a_saved_job(2, submitted_s=5),
    )
    told = saved_summary(a_saved_cell(jobs=jobs, running=running((1, 0, 1, -9), (2, 0, 2, 6))))

    assert {
        "machines": 2,
        "tasks_running": 2,
        "jobs_unfinished": 2,
        "jobs_waiting": 1,
        "jobs_submitted": 1,
        "past_ms": 55_000,
    } == {
        name: told[name]
        for name in told
        if name
        in {
            "machines",
            "tasks_running",
            "jobs_unfinished",
            "jobs_waiting",
            "jobs_submitted",
            "past_ms",
        }
    }
    assert pytest.approx(2 / 8) == told["schedulers"]["batch"]["conflict_fraction"]
