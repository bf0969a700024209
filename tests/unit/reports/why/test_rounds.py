"""Why a job waits whose kind of scheduler plans by rounds: another replica would not help."""

import pytest

from omega.clock import ManualClock
from omega.reports.why.report import WhyReport, why_job
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell
from tests.unit.reports.test_work import ROUND


def asked(*, jobs: int, is_in_rounds: bool) -> WhyReport:
    """Return why the last of some jobs waits, for which there is room."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 4)
    ids = store.submit([a_spec(1)] * jobs)
    store.report("batch", "0", pid=1, facts={})
    store.begin_round("batch", holder="batch/0", length_ms=360_000)
    if is_in_rounds:
        assert ROUND.summary is not None
        store.note_round("batch", 1, {"told": ROUND.summary.row()})
    status = store.job(ids[-1])
    assert status is not None
    return why_job(store, status, lambda _: False)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_job_that_rounds_plan_is_told_to_wait_for_the_next_round(jobs: int) -> None:
    step = asked(jobs=jobs, is_in_rounds=True).finding.next_step

    assert "Wait: the next round is due in 6 min, and plans all jobs of its kind together." == step


def test_behind_others_without_rounds_another_replica_helps() -> None:
    finding = asked(jobs=3, is_in_rounds=False).finding

    assert finding.next_step.startswith("Start another replica")
    assert "next round" not in asked(jobs=1, is_in_rounds=False).finding.next_step
