"""What is being taken out of the cell, in words."""

from omega.cli.cell.machine_lines import NAMES_SHOWN, closed_table, machines_line
from omega.model.machines import MachineState
from omega.model.resources import amounts
from omega.reports.machines import notice_line, notices_summary, overdue, states_of
from omega.store.status import CellUse, Notice, ProcessReport
from omega.testing.builders import a_cell, a_snapshot

OPEN, DRAINING, DOWN, GONE = MachineState
HOUR_MS = 3_600_000


def a_use(states: dict[MachineState, int], *, stranded: int = 0) -> CellUse:
    return CellUse(
        machines_by_state=states,
        stranded=stranded,
        capacity={},
        used={},
        jobs_by_state={},
        parked_by_reason={},
        live_allocations=0,
    )


def a_notice(machine: int = 1, *, ends_in_ms: int = HOUR_MS) -> Notice:
    return Notice(machine, amounts(cpu_milli=1_500, gpu_0=500, gpu_1=500), ends_in_ms)


def a_report(kind: str, *, seen_ms_ago: int = 0) -> ProcessReport:
    return ProcessReport(kind, "0", 1, 0, seen_ms_ago, {})


def test_nothing_is_said_where_all_is_well() -> None:
    use = a_use({OPEN: 5, GONE: 2})

    assert "" == machines_line(use, []).plain
    assert [] == overdue(use, [], [])
    assert closed_table(a_snapshot(a_cell(3), state={2: GONE}), []) is None
    assert {"running": 0, "over": 0, "next_ends_in_ms": None} == notices_summary([])
    assert {"open": 5, "gone": 2} == states_of(use)


def test_closed_machines_are_counted_by_state_and_notices_by_their_end() -> None:
    use = a_use({OPEN: 1, DRAINING: 1_200, DOWN: 3}, stranded=2)
    notices = [a_notice(1, ends_in_ms=4 * HOUR_MS), a_notice(2, ends_in_ms=-5), a_notice(3)]

    assert (
        "1,200 draining · 3 down · 2 down or gone and still in use"
        " · 3 on notice, the next for 60 min, 1 of them over"
    ) == machines_line(use, notices).plain
    assert {"running": 2, "over": 1, "next_ends_in_ms": HOUR_MS} == notices_summary(notices)


def test_a_notice_says_how_much_is_too_much_and_what_comes_of_it() -> None:
    assert (
        "1.5 cores, 1 GPU too much in use; in 60 min, tasks of the lowest precedence end first"
    ) == notice_line(a_notice())
    assert "the next scheduler that looks" in notice_line(a_notice(ends_in_ms=0))


def test_what_is_overdue_is_told_while_no_scheduler_is_heard_of() -> None:
    use, over = a_use({DOWN: 1}, stranded=1), [a_notice(ends_in_ms=0)]
    silent = [a_report("batch", seen_ms_ago=60_000), a_report("nodes")]

    assert 2 == len(overdue(use, over, silent))
    assert [] == overdue(use, over, [*silent, a_report("service")])
    assert [] == overdue(a_use({DOWN: 1}), [a_notice()], silent), "nothing is left to be done"


def test_closed_machines_are_named_as_far_as_there_is_room() -> None:
    states = {at: DRAINING if at % 2 else DOWN for at in range(1, 2 * NAMES_SHOWN + 3)}
    snapshot = a_snapshot(a_cell(len(states)), state=states)
    notices = [a_notice(at) for at in range(1, NAMES_SHOWN + 4)]
    table = closed_table(snapshot, notices)

    assert table is not None
    assert 2 + NAMES_SHOWN + 1 == table.row_count
    said = [str(cell) for column in table.columns for cell in column.cells]
    assert 2 == sum(text.endswith("and 1 more") for text in said)
    assert 1 == sum(text.startswith("machine-2: 1.5 cores") for text in said)
    assert "and 3 more on notice; --json has all" in said
