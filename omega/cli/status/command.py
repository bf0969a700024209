"""`omega status`: the cell, the queue and the processes, once or repeatedly.

Goal     Show on one screen whether the cell works as it should.
Promise  The verb only reads. `--watch` ends with Ctrl-C, and with code 0.
Source   ReaderStore.reports, use, notices and quotas.
"""

from collections.abc import Sequence
from threading import Event
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from omega.cli.cell.machine_lines import machines_line
from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.quota.screens import used_up_line
from omega.cli.screens import (
    LEGEND,
    cell_line,
    cell_table,
    queue_line,
    schedulers_table,
    verdicts_line,
)
from omega.cli.status.round_lines import round_lines
from omega.clock import Clock, RealClock
from omega.errors import BadInput
from omega.metrics.facts import merge, number_in
from omega.processes.stopping import stop_on_signals
from omega.reports.cell import CellReport
from omega.reports.machines import overdue
from omega.reports.printable import short
from omega.reports.processes import (
    AGENT,
    NODES,
    NOT_SCHEDULERS,
    is_alive,
    is_listed,
    lines_of,
    name_of,
    total_line,
)
from omega.reports.wording import things
from omega.store.protocols import ReaderStore
from omega.store.status import ProcessReport
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

INTERVAL_S: Final = 1.0


def command(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Again each second, until Ctrl-C.")
    ] = False,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show the cell, the queue and the processes.

    Rates and shares are those of the last ten seconds.
    """
    if watch and json_to is not None:
        raise BadInput("watching has no end, and a document has: leave one out", field="--json")
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo, name="omega status") as store:
        if watch:
            with stop_on_signals() as stop:
                _watch(store, output, RealClock(stop), stop)
            return
        report = CellReport.read(store)
    output.document(parameters={"demo": demo}, rows=report.rows(), summary=report.summary())
    output.console.print(status_screen(report, output.console.width))


def status_screen(report: CellReport, width: int) -> RenderableType:
    """Return the whole screen."""
    reports, use = report.reports, report.use
    gone = used_up_line(report.quotas)
    lines = lines_of(reports)
    heard = [r.facts for r in reports if r.kind not in NOT_SCHEDULERS and is_alive(r)]
    refused = merge(*heard)["window"].get("refused", {})
    parts: list[RenderableType] = [
        cell_line(use),
        cell_table(use, width),
        *_closed(report),
        Text.assemble(("queue  ", "bold"), queue_line(use)),
        *([Text.assemble(("quotas ", "bold"), gone)] if gone else []),
        Text.assemble(("nodes  ", "bold"), _nodes(reports)),
        *round_lines(report.rounds, report.now_ms),
        Rule(style="bright_black"),
    ]
    if lines:
        parts += [
            schedulers_table(lines, total_line(heard), width=width),
            Text.assemble(("refused ", "bold"), verdicts_line(refused)),
            LEGEND,
        ]
    else:
        parts.append(Text("No scheduler runs: omega scheduler run batch", "yellow"))
    parts += _unlisted(reports)
    return Group(*parts)


def _watch(store: ReaderStore, output: Output, clock: Clock, stop: Event) -> None:
    with Live(
        console=output.console, auto_refresh=False, screen=output.console.is_terminal
    ) as live:
        while not stop.is_set():
            width = output.console.width
            live.update(status_screen(CellReport.read(store), width), refresh=True)
            clock.sleep(INTERVAL_S)


def _closed(report: CellReport) -> list[RenderableType]:
    """Return lines on closed machines and on what is overdue there; an empty list without any."""
    line = machines_line(report.use, report.notices)
    said = [Text.assemble(("closed ", "bold"), line)] if line else []
    late = overdue(report.use, report.notices, report.reports)
    return [*said, *(Text(sentence, "yellow") for sentence in late)]


def _unlisted(reports: Sequence[ProcessReport]) -> list[Text]:
    """Return a line about schedulers that are not listed any more; an empty list without any."""
    gone = [r for r in reports if r.kind not in NOT_SCHEDULERS and not is_listed(r)]
    if not gone:
        return []
    who = things(len(gone), "scheduler")
    one = name_of(gone[0].kind, gone[0].replica)
    text = f"{who} silent for over an hour, as {short(one)}; to drop: omega scheduler forget"
    return [Text(text, "dim")]


def _nodes(reports: Sequence[ProcessReport]) -> Text:
    agents = [report for report in reports if report.kind == AGENT]
    virtual = [report for report in reports if report.kind == NODES]
    if not (agents or virtual):
        return Text("none: tasks do not end by themselves", "yellow")
    said = []
    if agents:
        said.append(things(len(agents), "agent") + _silent(agents))
    if virtual:
        speeds = (number_in(report.facts, "speedup") or 1 for report in virtual)
        speed = ", ".join(f"{speed:g}×" for speed in speeds)  # noqa: RUF001 - times
        said.append(f"virtual, at {speed} speed" + _silent(virtual))
    return Text("; ".join(said))


def _silent(reports: Sequence[ProcessReport]) -> str:
    silent = sum(not is_alive(report) for report in reports)
    return f", {silent} silent" if silent else ""
