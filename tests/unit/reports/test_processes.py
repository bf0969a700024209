"""Reports of processes as lines of a screen."""

import pytest

from omega.clock import ManualClock
from omega.events import JobsLeased, TransactionJudged
from omega.framework.effects import Commit
from omega.metrics.facts import Facts
from omega.metrics.fold import SchedulerFold
from omega.model.outcomes import Verdict
from omega.reports.processes import (
    LISTED_MS,
    NODES,
    SILENT_AFTER_MS,
    LatestFacts,
    ProcessState,
    conflicts_of,
    lines_of,
    live_kinds,
    total_line,
)
from omega.store.status import ProcessReport
from omega.testing.builders import a_job, a_transaction, an_outcome, claims_of_job, some_claims


def some_facts(*, accepted: int = 10, refused: int = 0, seconds: float = 2.0) -> Facts:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    fold(JobsLeased(1, (0.5,)))
    clock.advance(seconds)
    verdicts = {"overcommit": refused} if refused else {}
    fold(TransactionJudged("batch", 1, int(refused > 0), accepted, verdicts, 0.1, 0.1))
    return fold.facts()


def a_report(
    kind: str = "batch", replica: str = "0", *, pid: int = 1, seen_ms_ago: int = 0, **facts: int
) -> ProcessReport:
    return ProcessReport(kind, replica, pid, 0, seen_ms_ago, some_facts(**facts))


def test_a_line_has_the_rates_of_the_last_seconds() -> None:
    (line,) = lines_of([a_report(accepted=10)])

    assert ("batch 0", ProcessState.RUNNING) == (line.name, line.state)
    assert 5.0 == line.tasks_per_second
    assert 0.0 == line.conflict_fraction
    assert line.wait_p50_s is not None
    assert abs(line.wait_p50_s - 0.5) < 0.05


def test_lines_are_in_order_and_leave_nodes_out() -> None:
    reports = [a_report("service"), a_report(NODES), a_report("batch", "1"), a_report("batch")]

    assert ["batch 0", "batch 1", "service 0"] == [line.name for line in lines_of(reports)]


def test_who_has_not_spoken_for_long_is_silent() -> None:
    late = a_report(seen_ms_ago=SILENT_AFTER_MS)

    assert [ProcessState.SILENT] == [line.state for line in lines_of([late])]
    assert set() == live_kinds([late, a_report(NODES)])
    assert {"service"} == live_kinds([late, a_report("service")])


def test_who_decides_for_long_is_not_silent() -> None:
    decides = ProcessReport("batch", "0", 1, 0, 500, {"deciding_s": 30.0})
    soon = ProcessReport("batch", "1", 1, 0, 500, {"deciding_s": 5.0})

    first, second = lines_of([decides, soon])

    assert (ProcessState.DECIDING, 30.5) == (first.state, first.since_s)
    assert (ProcessState.RUNNING, None) == (second.state, second.since_s)
    assert {"batch"} == live_kinds([decides])


def test_a_killed_process_is_listed_for_an_hour() -> None:
    killed = a_report(seen_ms_ago=LISTED_MS - 1)

    assert [LISTED_MS / 1_000 - 0.001] == [line.since_s for line in lines_of([killed])]
    assert [] == lines_of([a_report(seen_ms_ago=LISTED_MS)])


def test_a_process_that_has_counted_nothing_has_an_empty_line() -> None:
    (line,) = lines_of([ProcessReport("batch", "0", 1, 0, 0, {})])

    assert (None, None, None) == (line.tasks_per_second, line.conflict_fraction, line.busyness)


def test_the_total_adds_rates_up() -> None:
    total = total_line([some_facts(accepted=10), some_facts(accepted=30, refused=1)])

    assert 20.0 == total.tasks_per_second
    assert 1.0 == total.conflict_fraction


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.ACCEPTED])
def test_refused_claims_are_told_by_the_name_of_their_verdict(verdict: Verdict) -> None:
    """From the outcome of a commit to the document of `status` and `demo`, with no list between."""
    fold = SchedulerFold(ManualClock())
    commit = Commit(a_transaction(claims_of_job(a_job(2), some_claims([0, 1], [1, 2]))))
    fold(commit.judged(an_outcome(Verdict.ACCEPTED, verdict), thought_s=0.0, took_s=0.0))

    assert {verdict.name.lower(): 1} == conflicts_of(fold.facts())


def test_the_most_frequent_verdict_is_told_first() -> None:
    facts = {"totals": {"refused": {"stale": 2, "overcommit": 3.0}}}

    assert [("overcommit", 3), ("stale", 2)] == list(conflicts_of(facts).items())
    assert {} == conflicts_of({"totals": {}})


def test_the_ledger_counts_what_a_crashed_process_did() -> None:
    ledger = LatestFacts()
    ledger.note([a_report(pid=1, accepted=10), a_report("service", accepted=5)])
    ledger.note([a_report(pid=1, accepted=15), a_report(NODES, accepted=100)])
    ledger.note([a_report(pid=2, accepted=1)])

    assert 16 == ledger.of("batch", "0")["totals"]["tasks_placed"]
    assert 21 == ledger.schedulers()["totals"]["tasks_placed"]
    assert {} == ledger.of("batch", "9")["totals"]
