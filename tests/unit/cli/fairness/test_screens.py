"""What is told of fair shares."""

from omega.cli.fairness.screens import SHOWN, fairness_screen
from omega.model.lanes import QueueOrder
from omega.reports.fairness import FairnessReport, ShareState, TenantShare
from omega.terminal.terminal import PrintableConsole


def a_share(name: str, *, state: ShareState = ShareState.FAIR, share: float = 0.5) -> TenantShare:
    return TenantShare(
        name=name,
        parents=("org",),
        weight=1_000,
        used=(1, 2, 3, 4),
        share=share,
        fair_share=0.5,
        waiting=1_234,
        state=state,
    )


def drawn(report: FairnessReport, *, width: int = 140) -> list[str]:
    console = PrintableConsole(width=width, color_system=None)
    with console.capture() as capture:
        console.print(fairness_screen(report))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_a_row_has_the_path_the_shares_and_the_reason() -> None:
    below = a_share("ann", state=ShareState.BELOW, share=0.25)
    lines = drawn(FairnessReport([below], {"batch": QueueOrder.DRF, "service": QueueOrder.FIFO}))

    assert [
        "tenant weight share fair gap waiting",
        "org/ann 1,000 25.0% 50.0% -25.0% 1,234 has less than is fair, until it finds room",
        "orders: batch drf, service fifo",
    ] == lines


def test_a_long_list_ends_with_how_many_are_left_out() -> None:
    lines = drawn(FairnessReport([a_share(f"t{at}") for at in range(SHOWN + 2)], {}))

    assert SHOWN + 3 == len(lines)
    assert [
        "and 2 tenants more: see --json",
        "orders: none, no scheduler leases from the queue",
    ] == lines[-2:]


def test_without_jobs_there_is_one_sentence() -> None:
    assert ["No job runs or waits."] == drawn(FairnessReport([], {}))
