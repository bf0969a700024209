"""Whether a process is ready, judged by its last report."""

from collections.abc import Mapping

from omega.reports.health import HealthLimits, problem_with, ready_line
from omega.reports.processes import AGENT, NODES
from omega.store.status import ProcessReport

LIMITS = HealthLimits(report_ms=10_000, view_ms=12_000)
HERE, ELSEWHERE = 7, 8


def facts_of_a_scheduler(*, refreshed_s_ago: float) -> Mapping[str, object]:
    return {"totals": {"refreshes": 1}, "refreshed_s_ago": refreshed_s_ago}


def a_report(
    kind: str = "batch",
    *,
    pid: int = HERE,
    seen_ms_ago: int = 500,
    facts: Mapping[str, object] | None = None,
) -> ProcessReport:
    told = facts_of_a_scheduler(refreshed_s_ago=1.0) if facts is None else facts
    return ProcessReport(kind, "1", pid, 0, seen_ms_ago, told)


def judged(report: ProcessReport) -> str | None:
    return problem_with(report, LIMITS, lambda pid: pid == HERE)


def test_a_scheduler_that_reported_and_read_the_cell_lately_is_ready() -> None:
    report = a_report()

    assert judged(report) is None
    assert "batch 1 is ready: it reported 0.5 s ago and read the cell 1.5 s ago." == ready_line(
        report
    )


def test_one_that_is_silent_is_not_ready() -> None:
    assert judged(a_report(seen_ms_ago=10_000)) is None
    assert "batch 1 has not reported for 10.1 s" == judged(a_report(seen_ms_ago=10_100))


def test_a_heartbeat_alone_is_not_enough() -> None:
    """One that decides longer than `--within` allows was not ready before it said so, either."""
    facts = {**facts_of_a_scheduler(refreshed_s_ago=1.0), "deciding_s": 9.6}

    assert "batch 1 has not reported for 10.1 s" == judged(a_report(facts=facts))


def test_one_that_runs_elsewhere_is_not_the_one_that_is_asked_about() -> None:
    problem = judged(a_report(pid=ELSEWHERE))

    assert "batch 1 reports as process 8, which does not run on this machine" == problem


def test_a_stale_view_counts_from_the_reading_to_now() -> None:
    facts = facts_of_a_scheduler(refreshed_s_ago=11.5)

    assert judged(a_report(facts=facts, seen_ms_ago=500)) is None
    assert "batch 1 has not read the cell for 12.1 s" == judged(
        a_report(facts=facts, seen_ms_ago=600)
    )


def test_a_scheduler_without_a_view_is_not_ready() -> None:
    for said in (None, "now", -1.0, True):
        facts = {"refreshed_s_ago": said}
        assert "batch 1 has not read the cell yet" == judged(a_report(facts=facts))


def test_nodes_and_agents_have_no_view() -> None:
    for kind in (NODES, AGENT):
        report = a_report(kind, facts={"tasks": 3})

        assert judged(report) is None
        assert f"{kind} 1 is ready: it reported 0.5 s ago." == ready_line(report)
