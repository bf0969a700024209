"""Why a job waits whose kind of scheduler leases in a fair order: shares decide, not the line."""

import io

import pytest

from omega.cli.job.why_screen import why_screen
from omega.clock import ManualClock
from omega.model.lanes import QueueOrder
from omega.reports.why.reasons import Reason
from omega.reports.why.report import WhyReport, why_job
from omega.store.memory.store import MemoryStore
from omega.terminal.terminal import PrintableConsole
from omega.testing.builders import a_spec
from omega.testing.steps import LONG_MS, add_a_cell


def asked(order: QueueOrder, *, jobs: int) -> WhyReport:
    """Return why the last of some jobs waits, for which there is room."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 4)
    ids = store.submit([a_spec(1)] * jobs)
    store.report("batch", "0", pid=1, facts={})
    store.agree_on_order("batch", "0", order, lease_ms=LONG_MS)
    status = store.job(ids[-1])
    assert status is not None
    return why_job(store, status, lambda _: False)


def drawn(report: WhyReport) -> str:
    console = PrintableConsole(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(why_screen(report, now_ms=0))
    return " ".join(capture.get().split())


@pytest.mark.parametrize("order", [QueueOrder.DRF, QueueOrder.CHOOSY])
@pytest.mark.parametrize(("jobs", "reason"), [(1, Reason.QUEUED), (3, Reason.BEHIND_OTHERS)])
def test_in_a_fair_order_shares_decide(order: QueueOrder, jobs: int, reason: Reason) -> None:
    report = asked(order, jobs=jobs)

    assert reason is report.finding.reason
    assert f"smallest share is next (order {order.value})" in report.finding.evidence
    assert "omega fairness" in report.finding.next_step
    assert order.value == report.summary()["order"]


def test_the_screen_says_that_the_line_is_not_the_order() -> None:
    counted = "in line 0 jobs of higher precedence and 2 older jobs"

    assert f"{counted}; but the order drf goes by shares" in drawn(asked(QueueOrder.DRF, jobs=3))
    assert f"{counted} before it; first 1" in drawn(asked(QueueOrder.FIFO, jobs=3))
