"""What is told of a pipeline: its state, its costs, and what is late."""

from dataclasses import replace

from omega.lifecycle.states import State
from omega.reports.pipelines import PipelineReport
from omega.store.pipelines import PipelineStatus, StageEnd, StageStatus

FIRST = StageStatus("first", (), 10, job=1, cost_ms=300, start_ms=1_500, state=State.PENDING)
LAST = StageStatus("last", ("first",), 5)
CHAT = PipelineStatus(7, "chat", "ann", 1_000, 1_000, 0, None, (FIRST, LAST))
PICOS = {"first": 30 * 10**9, "last": 40 * 10**9}


def test_a_stage_that_waits_has_the_deadline_that_it_would_have_now() -> None:
    report = PipelineReport.of(CHAT, PICOS, now_ms=1_400)
    first, last = report.lines

    assert ("pending", 300, 100, False) == (
        first.state,
        first.cost_ms,
        first.start_in_ms,
        first.is_late,
    )
    assert ("waiting", 200, 400, False) == (
        last.state,
        last.cost_ms,
        last.start_in_ms,
        last.is_late,
    )
    assert ("going on", 600, 0) == (report.state, report.left_ms, report.late)


def test_what_has_not_begun_by_its_deadline_is_late() -> None:
    began = replace(CHAT, stages=(replace(FIRST, began=True, state=State.RUNNING), LAST))

    assert 2 == PipelineReport.of(CHAT, PICOS, now_ms=1_900).late
    assert ["last"] == [
        row["stage"] for row in PipelineReport.of(began, PICOS, now_ms=1_900).rows() if row["late"]
    ]


def test_a_pipeline_that_is_over_is_told_by_its_end() -> None:
    done = replace(FIRST, end=StageEnd.SUCCEEDED)
    well = replace(CHAT, finished_ms=2_100, stages=(done, replace(LAST, end=StageEnd.SUCCEEDED)))
    badly = replace(
        CHAT,
        finished_ms=1_200,
        stages=(replace(FIRST, end=StageEnd.FAILED), replace(LAST, end=StageEnd.SKIPPED)),
    )
    report = PipelineReport.of(well, {}, now_ms=9_000)

    assert ("succeeded", -100, 0) == (report.state, report.left_ms, report.late)
    assert "failed" == PipelineReport.of(badly, {}, now_ms=9_000).state
    assert {"pipeline": 7, "state": "succeeded", "ended": 2} == {
        key: report.summary()[key] for key in ("pipeline", "state", "ended")
    }
