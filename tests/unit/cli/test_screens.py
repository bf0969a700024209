"""The screens, drawn from values."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import RenderableType

from omega.cli.demo.screen import EVENTS_SHOWN, Moment, Screen, line, picture
from omega.cli.screens import cell_line, cell_table, queue_line, verdicts_line
from omega.cli.status.command import status_screen
from omega.lifecycle.states import ParkReason, State
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import COLUMNS, amounts
from omega.reports.cell import CellReport, allocated, shares
from omega.reports.processes import NODES, ProcessState, SchedulerLine
from omega.store.status import CellUse, Notice, ProcessReport
from omega.terminal.terminal import PrintableConsole

BUSY_LINE = SchedulerLine(
    name="batch 0",
    state=ProcessState.RUNNING,
    jobs_per_second=1_234.5,
    tasks_per_second=123_456.7,
    conflict_fraction=12.34,
    busyness=1.0,
    wait_p50_s=0.0999,
    wait_p90_s=119.0,
    view_age_s=0.0123,
)
LINES = [
    BUSY_LINE,
    SchedulerLine(name="a-scheduler-with-a-long-name seq10", state=ProcessState.SILENT),
    SchedulerLine(name="ml-gpu 0", state=ProcessState.STARTING),
]


A_TRAIL = [(second / 2, second / 10) for second in range(24)]


def a_use(
    *,
    jobs: Mapping[State, int] | None = None,
    parked: Mapping[ParkReason, int] | None = None,
    closed: int = 0,
    disk_mib: int = 0,
) -> CellUse:
    """Return 10,000 machines with eight GPUs each, half of everything taken."""
    capacity = dict.fromkeys(COLUMNS, 10_000_000)
    capacity |= {"cpu_milli": 320_000_000, "memory_mib": 1_280_000_000, "disk_mib": disk_mib}
    return CellUse(
        machines_by_state={MachineState.OPEN: 10_000 - closed, MachineState.DOWN: closed},
        stranded=0,
        capacity=capacity,
        used={kind: amount // 2 for kind, amount in capacity.items()},
        jobs_by_state=jobs or {},
        parked_by_reason=parked or {},
        live_allocations=123_456,
    )


def a_moment(**fields: object) -> Moment:
    given: dict[str, object] = {
        "phase": "load",
        "elapsed_s": 12.3,
        "seconds": 30.0,
        "submitted": 1_234,
        "to_submit": 4_567,
        "lines": LINES,
        "total": BUSY_LINE,
        "use": a_use(
            jobs={State.PENDING: 1_200, State.PLANNING: 64, State.PARKED: 7},
            parked={ParkReason.NO_ROOM: 5, ParkReason.NEVER_FITS: 2},
        ),
        "events": ["4 schedulers are started", "batch-0 was killed", "batch-1 " + "x" * 200],
    }
    return Moment(**{**given, **fields})  # type: ignore[arg-type]


def drawn(renderable: RenderableType, width: int) -> list[str]:
    """Return the lines as they appear on a terminal of this width."""
    console = PrintableConsole(width=width)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [80, 120])
def test_the_demos_picture_fits(width: int) -> None:
    lines = drawn(picture(a_moment(), width, A_TRAIL), width)

    assert {width} == {cell_len(text) for text in lines}
    assert len(lines) <= 22, "an ordinary terminal has 24 lines, and the demo a line more of each"


def test_the_demos_picture_shows_who_does_what() -> None:
    text = "\n".join(drawn(picture(a_moment(), 80), 80))

    for figure in ("123,457", "12.34", "100%", "100 ms", "119 s", "12 ms", "00:12 of 00:30"):
        assert figure in text
    assert "silent" in text
    assert "7 parked (5 no_room, 2 never_fits)" in text
    assert "160,000 of 320,000 cores" in text
    assert "40,000 of 80,000 devices" in text
    assert "disk" not in text, "the cell has none"
    assert "1,264 waiting" in text
    assert "omega demo · 10,000 machines" in text
    assert "jobs arrive" in text
    assert "batch-0 was killed" in text
    assert "4 schedulers are started" not in text, f"only the last {EVENTS_SHOWN} events are shown"


def test_the_screen_of_the_load_is_kept_for_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen(PrintableConsole()) as screen:
        assert [] == screen.of_the_load(80)
        for elapsed_s, phase in ((0.0, "start"), (1.0, "load"), (2.0, "load"), (3.0, "drain")):
            screen.show(a_moment(elapsed_s=elapsed_s, phase=phase))
    capsys.readouterr()

    (kept,) = screen.of_the_load(80)
    assert "jobs arrive  00:02 of 00:30" in "\n".join(drawn(kept, 80))


def test_a_wide_screen_spells_its_headers_out() -> None:
    assert "wait p50" in "\n".join(drawn(picture(a_moment(), 120), 120))
    assert "wait p50" not in "\n".join(drawn(picture(a_moment(), 80), 80))


def test_a_moment_is_also_one_line() -> None:
    assert (
        "00:12  load  123,457 tasks/s  conflict 12.34  cpu 50%  memory 50%  gpu 50%"
        "  waiting 1,264  parked 7"
    ) == line(a_moment())


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Screen(PrintableConsole()) as screen:
        for elapsed_s in (0.0, 0.5, 4.9, 5.0, 5.5):
            screen.show(a_moment(elapsed_s=elapsed_s, events=["started"]))
        screen.show(a_moment(elapsed_s=5.6, phase="drain", events=["started", "batch-0 crashed"]))

    said = capsys.readouterr().out.splitlines()
    assert ["started", "00:00", "00:05", "batch-0 crashed", "00:05"] == [
        text.split("  ")[0] for text in said
    ]


def test_all_device_slots_are_one_resource() -> None:
    use = a_use()

    assert (80_000_000, 40_000_000) == (shares(use)["gpu"].capacity, shares(use)["gpu"].used)
    assert 0.5 == allocated(use)["gpu"] == allocated(use)["gpu_7"] == allocated(use)["cpu_milli"]
    assert 0.0 == allocated(use)["disk_mib"]
    assert {*COLUMNS, "gpu"} == set(allocated(use))


@pytest.mark.parametrize(("part", "filled"), [(0.0, 0), (0.04, 1), (0.5, 15), (1.0, 30)])
def test_a_bar_can_be_read_without_colours(part: float, filled: int) -> None:
    use = a_use()
    used = {kind: round(amount * part) for kind, amount in use.capacity.items()}
    cpu = drawn(cell_table(replace(use, used=used), 80), 80)[0]

    assert (filled, 30 - filled) == (cpu.count("━"), cpu.count("·"))


def test_closed_machines_are_told() -> None:
    assert "10,000 machines · 123,456 tasks running" == cell_line(a_use()).plain
    assert "10,000 machines, 3 closed · 123,456 tasks running" == cell_line(a_use(closed=3)).plain


def test_only_states_that_occur_are_told() -> None:
    assert "no jobs yet" == queue_line(a_use()).plain
    assert "3 running" == queue_line(a_use(jobs={State.RUNNING: 3, State.PENDING: 0})).plain


def test_refused_claims_are_told_by_verdict_the_most_frequent_first() -> None:
    assert "none" == verdicts_line({}).plain
    assert "1,200 stale · 3 overcommit" == verdicts_line({"overcommit": 3, "stale": 1_200}).plain


def a_report(kind: str, *, seen_ms_ago: int = 10, **facts: object) -> ProcessReport:
    return ProcessReport(kind, "0", 1, 0, seen_ms_ago, facts)


@pytest.mark.parametrize("width", [80, 120])
def test_the_status_fits(width: int) -> None:
    reports = [a_report("batch"), a_report("service", seen_ms_ago=60_000)]

    assert (
        max(map(cell_len, drawn(status_screen(CellReport(reports, a_use()), width), width)))
        <= width
    )


def test_the_status_tells_which_quotas_are_used_up_and_how_many_jobs_that_holds_back() -> None:
    quota = Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 1_000})
    use = a_use(jobs={State.PARKED: 7}, parked={ParkReason.OVER_QUOTA: 7})
    some_left, none_left = (QuotaUse(quota, {Budget.CPU_MILLI: left}) for left in (1, 0))

    full = "\n".join(drawn(status_screen(CellReport([], use, quotas=[none_left]), 80), 80))
    not_yet = "\n".join(drawn(status_screen(CellReport([], use, quotas=[some_left]), 80), 80))

    assert "queue  7 parked (7 over_quota)" in full
    assert "quotas used up: tenant ann (cpu); see: omega quota list" in full
    assert "used up" not in not_yet


def test_the_status_says_what_is_missing() -> None:
    text = "\n".join(drawn(status_screen(CellReport([], a_use()), 80), 80))

    assert "No scheduler runs: omega scheduler run batch" in text
    assert "none: tasks do not end by themselves" in text


def test_the_status_tells_who_is_silent_and_how_fast_nodes_are() -> None:
    reports = [a_report("batch", seen_ms_ago=60_000), a_report(NODES, speedup=60.0)]
    text = "\n".join(drawn(status_screen(CellReport(reports, a_use()), 80), 80))

    assert "batch 0" in text
    assert "silent 60 s" in text
    assert "virtual, at 60× speed" in text  # noqa: RUF001 - the sign for times


def test_the_status_tells_what_was_refused_lately() -> None:
    window = {"refused": {"stale": 3, "overcommit": 40, "closed": 0}}
    reports = [a_report("batch", window=window), a_report("service", window=window)]
    text = "\n".join(drawn(status_screen(CellReport(reports, a_use()), 80), 80))

    assert "refused 80 overcommit · 6 stale" in text


def test_the_status_counts_who_is_listed_no_more() -> None:
    reports = [a_report("batch"), a_report("service", seen_ms_ago=3_600_000)]
    text = "\n".join(drawn(status_screen(CellReport(reports, a_use()), 80), 80))

    assert "1 scheduler silent for over an hour, as service 0; to drop:" in text
    assert 1 == text.count("service 0")


@pytest.mark.parametrize("width", [80, 120])
def test_the_status_tells_which_machines_are_closed_and_what_is_overdue(width: int) -> None:
    use = replace(a_use(closed=2), stranded=1)
    notices = [Notice(1, amounts(cpu_milli=500), ends_in_ms) for ends_in_ms in (-1, 60_000)]
    lines = drawn(status_screen(CellReport([], use, notices), width), width)

    text = " ".join(" ".join(lines).split())
    assert (
        "closed 2 down · 1 down or gone and still in use · 2 on notice, the next for 60 s" in text
    )
    assert "no scheduler has been heard of lately" in text
    assert max(map(cell_len, lines)) <= width
