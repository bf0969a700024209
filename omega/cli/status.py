"""`omega status`: the cell, the queue and the processes, once or again and again.

Goal     Answer "is it well?" in one look.
Promise  Reads only. `--watch` ends with Ctrl-C, and with code 0.
Source   ReaderStore.reports, use, notices and quotas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from omega.cli.cells import OfDemo, cell_store
from omega.cli.consoles import Output
from omega.cli.machine_lines import machines_line, notices_summary, overdue, states_of
from omega.cli.options import DataDir, JsonTo
from omega.cli.processes import NODES, conflicts_of, is_heard_of, lines_of, total_line
from omega.cli.quota_screens import row_of, used_up, used_up_line
from omega.cli.screens import (
    LEGEND,
    allocated,
    cell_line,
    cell_table,
    queue_line,
    schedulers_table,
    verdicts_line,
)
from omega.cli.stopping import stop_on_signals
from omega.clock import Clock, RealClock
from omega.errors import BadInput
from omega.metrics.facts import merge, number_in
from omega.model.quotas import QuotaUse
from omega.store.protocols import ReaderStore
from omega.store.status import CellUse, Notice, ProcessReport

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
        seen = Seen.read(store)
    output.document(parameters={"demo": demo}, rows=_rows(seen.reports), summary=_summary(seen))
    output.console.print(status_screen(seen, output.console.width))


@dataclass(frozen=True)
class Seen:
    """What a look at the store shows."""

    reports: Sequence[ProcessReport]
    use: CellUse
    notices: Sequence[Notice] = ()
    quotas: Sequence[QuotaUse] = ()

    @classmethod
    def read(cls, store: ReaderStore) -> "Seen":
        """Look."""
        return cls(store.reports(), store.use(), store.notices(), store.quotas())


def status_screen(seen: Seen, width: int) -> RenderableType:
    """Return the picture."""
    reports, use = seen.reports, seen.use
    gone = used_up_line(seen.quotas)
    lines = lines_of(reports)
    heard = [r.facts for r in reports if r.kind != NODES and is_heard_of(r)]
    refused = merge(*heard)["window"].get("refused", {})
    parts: list[RenderableType] = [
        cell_line(use),
        cell_table(use, width),
        *_closed(seen),
        Text.assemble(("queue  ", "bold"), queue_line(use)),
        *([Text.assemble(("quotas ", "bold"), gone)] if gone else []),
        Text.assemble(("nodes  ", "bold"), _nodes(reports)),
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
    return Group(*parts)


def _watch(store: ReaderStore, output: Output, clock: Clock, stop: Event) -> None:
    with Live(
        console=output.console, auto_refresh=False, screen=output.console.is_terminal
    ) as live:
        while not stop.is_set():
            width = output.console.width
            live.update(status_screen(Seen.read(store), width), refresh=True)
            clock.sleep(INTERVAL_S)


def _closed(seen: Seen) -> list[RenderableType]:
    """Say which machines are closed and what is overdue on them; nothing if all is well."""
    line = machines_line(seen.use, seen.notices)
    said = [Text.assemble(("closed ", "bold"), line)] if line else []
    late = overdue(seen.use, seen.notices, seen.reports)
    return [*said, *(Text(sentence, "yellow") for sentence in late)]


def _nodes(reports: Sequence[ProcessReport]) -> Text:
    nodes = [report for report in reports if report.kind == NODES]
    if not nodes:
        return Text("none: tasks do not end by themselves", "yellow")
    silent = sum(not is_heard_of(report) for report in nodes)
    speeds = (number_in(report.facts, "speedup") or 1 for report in nodes)
    speed = ", ".join(f"{speed:g}×" for speed in speeds)  # noqa: RUF001 - times
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


def _summary(seen: Seen) -> dict[str, object]:
    use = seen.use
    schedulers = merge(*(report.facts for report in seen.reports if report.kind != NODES))
    return {
        "machines": use.machines,
        "open": use.open,
        "machines_by_state": states_of(use),
        "stranded": use.stranded,
        "notices": notices_summary(seen.notices),
        "live_allocations": use.live_allocations,
        "capacity": dict(use.capacity),
        "used": dict(use.used),
        "allocated": allocated(use),
        "jobs_by_state": {state.value: jobs for state, jobs in use.jobs_by_state.items()},
        "parked_by_reason": {reason.value: n for reason, n in use.parked_by_reason.items()},
        "quotas_used_up": [row_of(quota) for quota, _ in used_up(seen.quotas)],
        "conflicts": conflicts_of(schedulers),
    }
