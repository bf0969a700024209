"""`omega status`: the cell, the queue and the processes, once or again and again.

Goal     Answer "is it well?" in one look.
Promise  Reads only. `--watch` ends with Ctrl-C, and with code 0.
Source   Registry.reports and Registry.use; CellStore.quotas.
"""

from collections.abc import Sequence
from threading import Event
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from omega.cli.cells import OfDemo, cell_store
from omega.cli.consoles import Output
from omega.cli.options import DataDir, JsonTo
from omega.cli.processes import NODES, is_heard_of, lines_of, total_line
from omega.cli.quota_screens import row_of, used_up, used_up_line
from omega.cli.screens import (
    LEGEND,
    allocated,
    cell_line,
    cell_table,
    queue_line,
    schedulers_table,
)
from omega.cli.stopping import stop_on_signals
from omega.clock import Clock, RealClock
from omega.errors import BadInput
from omega.model.quotas import QuotaUse
from omega.store.base import CellUse, ProcessReport, Store

INTERVAL_S: Final = 1.0


def command(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Again each second, until Ctrl-C.")
    ] = False,
    data_dir: DataDir = None,
    demo: OfDemo = False,
    json_to: JsonTo = None,
) -> None:
    """Show the cell, the queue and the processes.

    Rates and shares are those of the last ten seconds.
    """
    if watch and json_to is not None:
        raise BadInput("watching has no end, and a document has: leave one out", field="--json")
    output = Output(json_to)
    with cell_store(data_dir, demo=demo, name="omega status") as store:
        if watch:
            with stop_on_signals() as stop:
                _watch(store, output, RealClock(stop), stop)
            return
        reports, use, quotas = store.reports(), store.use(), store.quotas()
    output.document(
        parameters={"demo": demo},
        rows=_rows(reports),
        summary={**_summary(use), "quotas_used_up": [row_of(q) for q, _ in used_up(quotas)]},
    )
    output.console.print(status_screen(reports, use, output.console.width, quotas))


def status_screen(
    reports: Sequence[ProcessReport], use: CellUse, width: int, quotas: Sequence[QuotaUse] = ()
) -> RenderableType:
    """Return the picture."""
    gone = used_up_line(quotas)
    lines = lines_of(reports)
    heard = [r.facts for r in reports if r.kind != NODES and is_heard_of(r)]
    parts: list[RenderableType] = [
        cell_line(use),
        cell_table(use, width),
        Text.assemble(("queue  ", "bold"), queue_line(use)),
        *([Text.assemble(("quotas ", "bold"), gone)] if gone else []),
        Text.assemble(("nodes  ", "bold"), _nodes(reports)),
        Rule(style="bright_black"),
    ]
    if lines:
        parts += [schedulers_table(lines, total_line(heard), width=width), LEGEND]
    else:
        parts.append(Text("No scheduler runs: omega scheduler run batch", "yellow"))
    return Group(*parts)


def _watch(store: Store, output: Output, clock: Clock, stop: Event) -> None:
    with Live(
        console=output.console, auto_refresh=False, screen=output.console.is_terminal
    ) as live:
        while not stop.is_set():
            width = output.console.width
            screen = status_screen(store.reports(), store.use(), width, store.quotas())
            live.update(screen, refresh=True)
            clock.sleep(INTERVAL_S)


def _nodes(reports: Sequence[ProcessReport]) -> Text:
    nodes = [report for report in reports if report.kind == NODES]
    if not nodes:
        return Text("none: tasks do not end by themselves", "yellow")
    silent = sum(not is_heard_of(report) for report in nodes)
    speed = ", ".join(f"{report.facts.get('speedup', 1):g}×" for report in nodes)  # noqa: RUF001 - times
    return Text(f"virtual, at {speed} speed" + (f", {silent} silent" if silent else ""))


def _rows(reports: Sequence[ProcessReport]) -> list[dict[str, object]]:
    return [
        {
            "kind": report.kind,
            "replica": report.replica,
            "pid": report.pid,
            "started_ms": report.started_ms,
            "seen_ms_ago": report.seen_ms_ago,
            "heard_of": is_heard_of(report),
            "facts": dict(report.facts),
        }
        for report in reports
    ]


def _summary(use: CellUse) -> dict[str, object]:
    return {
        "machines": use.machines,
        "open": use.open,
        "live_allocations": use.live_allocations,
        "capacity": dict(use.capacity),
        "used": dict(use.used),
        "allocated": allocated(use),
        "jobs_by_state": {state.value: jobs for state, jobs in use.jobs_by_state.items()},
        "parked_by_reason": {reason.value: n for reason, n in use.parked_by_reason.items()},
    }
