"""`omega cell show MACHINE`: everything about one machine.

Goal     Answer "what runs there, and what would have to go first?" in one look.
Promise  Drawn from values alone; the tasks that would end first come first.
Source   omega.reports.machines.
"""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.cell.machine_lines import STATE_COLOURS
from omega.cli.job.screens import cut
from omega.model.resources import GPU_SLICES, Kind, named
from omega.reports.machines import MachineReport, notice_line, state_name
from omega.reports.printable import short
from omega.reports.wording import amounts, moment, ranges, share, things

JOBS_SHOWN: Final = 30
UNITS: Final = {
    Kind.CPU_MILLI: ("cpu", 1_000, " cores"),
    Kind.MEMORY_MIB: ("memory", 1_024, " GiB"),
    Kind.DISK_MIB: ("disk", 1_024, " GiB"),
}


def machine_screen(report: MachineReport) -> RenderableType:
    """Return everything about one machine."""
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("machine", Text(f"{report.row.id[0]}  {short(report.name)}"))
    facts.add_row("state", Text(state_name(report.state), STATE_COLOURS[report.state]))
    if report.attributes:
        pairs = report.attributes.items()
        listed = ", ".join(f"{short(name)}={short(value)}" for name, value in pairs)
        facts.add_row("attributes", Text(listed))
    facts.add_row("sequence", f"{report.row.sequence[0]:,}, revision {report.row.revision[0]:,}")
    if report.notice is not None:
        facts.add_row("on notice", Text(notice_line(report.notice), "yellow"))
    runs = [_tasks(report)] if len(report.live) else [Text("Nothing runs on it.", "dim")]
    return Group(facts, Text(), _amounts(report), Text(), *runs)


def _amounts(report: MachineReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for header in ("has", "used", "free", "share"):
        table.add_column(header, justify="right")
    capacity, used, free = report.row.capacity[0], report.row.used[0], report.row.free[0]
    for kind in report.kinds():
        label, unit, plural = UNITS.get(kind, (kind.column, GPU_SLICES, ""))
        figures = [f"{one[kind] / unit:,.5g}{plural}" for one in (capacity, used, free)]
        part = used[kind] / capacity[kind] if capacity[kind] else None
        table.add_row(Text(label, "bold"), *figures, share(part))
    return table


def _tasks(report: MachineReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in ("job", "precedence"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("name")
    for header in ("tasks", "each", "since"):
        table.add_column(header, overflow="fold")
    alike: dict[tuple[int, bytes], list[int]] = {}
    for at, job in report.in_order():
        alike.setdefault((job.id, report.live.amounts[at].tobytes()), []).append(at)
    for (number, _), those in list(alike.items())[:JOBS_SHOWN]:
        job = report.jobs[number]
        table.add_row(
            str(number),
            str(job.precedence),
            cut(job.name),
            ranges(sorted(report.live.task[those].tolist())),
            amounts(named(report.live.amounts[those[0]])),
            moment(int(report.live.started_ms[those].min())),
        )
    if (more := len(alike) - JOBS_SHOWN) > 0:
        table.caption = f"and tasks of {things(more, 'job')} more; --json has all"
    return table
