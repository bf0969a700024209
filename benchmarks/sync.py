"""The cost of keeping a view fresh: milliseconds and bytes, by machines and by rows changed.

One reader refreshes in each way; between two refreshes, so many rows are changed, spread evenly
over the cell. The measured time is that of the schedulers' refresher, from the query to the patched
view.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from zlib import crc32

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Smoke, numbers
from benchmarks.postgres import statements
from benchmarks.ratios import milliseconds
from omega.cell.view import View
from omega.clock import Clock, ManualClock
from omega.errors import InvariantBroken
from omega.events import Event, ViewRefreshed
from omega.plots.picture import Picture, Stroke, magnitudes, series, steps
from omega.store.postgres.packing import MACHINE
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import SharedViewSource
from omega.sync import choice
from omega.sync.turns import Turn
from omega.terminal.progress import progress_bar
from omega.workload.demo_cell import demo_machines

WAYS: Final = tuple(way.value for way in choice.Sync)
STROKES: Final[dict[str, Stroke]] = {"delta": "-", "full": "--", "partitioned": ":"}
PARTS: Final = 4
"""Parts of the cell, as for so many schedulers; the reader by turns is one of them."""
FIRST: Final = "first"
"""A full read by a new connection, which includes the machines' names and attributes."""
ROUNDS_MIN: Final = 3
OF_FIRST: Final = 0.2
"""Share of the time for reads by new connections."""
MACHINES_MAX: Final = 200_000
HEADLINE: Final = (10_000, 100)
"""Machines and rows changed of the finding, if they were measured."""

Samples = Mapping[tuple[str, int], Sequence[tuple[float, int]]]
"""(seconds, rows read) of each refresh, by way and rows changed."""


class Reader:
    """A scheduler's view, kept fresh in one way."""

    def __init__(self, way: str, store: SharedViewSource, clock: Clock) -> None:
        self._clock = clock
        self._rounds = ManualClock()
        turn = Turn(0, PARTS, gap_s=PARTS)
        self._refresher = choice.Sync(way).refresher(store, self._rounds, self._hear, turn)
        self._rows = 0
        self.view: View | None = None

    def refresh(self) -> tuple[float, int]:
        """Return the seconds that a refresh took, and the rows that it read."""
        self._rounds.advance(1.0)  # the next part's turn
        began = self._clock.now()
        self.view = self._refresher.refresh(self.view)
        return self._clock.now() - began, self._rows

    def checksum(self) -> int:
        """Return a checksum of the view's machine rows."""
        assert self.view is not None, "it has been refreshed"
        rows = self.view.rows()
        held = (rows.id, rows.capacity, rows.used, rows.sequence, rows.revision, rows.state)
        return crc32(b"".join(np.ascontiguousarray(column).tobytes() for column in held))

    def _hear(self, event: Event) -> None:
        if isinstance(event, ViewRefreshed):
            self._rows = event.rows


@dataclass(frozen=True, kw_only=True)
class Sync:
    """The parameters of the benchmark."""

    machines: tuple[int, ...] = (1_000, 10_000, 100_000)
    changed: tuple[int, ...] = (1, 10, 100, 1_000, 10_000)
    seconds: float = 60.0
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Measure all sizes; after each, check that all views are equal."""
        rows: list[dict[str, Any]] = []
        digest: dict[str, Any] = {}
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=len(self.machines))
            for machines in self.machines:
                progress.update(bar, description=f"{machines:,} machines")
                with stage.database() as url:
                    self._make_cell(url, machines)
                    samples, digest[f"view of {machines} machines, crc32"] = self._sample(
                        stage, url, machines
                    )
                digest[f"refreshes of {machines} machines"] = sum(map(len, samples.values()))
                rows += _rows(machines, samples)
                progress.advance(bar)
        return Findings(self._finding(rows), rows, {"p50_ms": _medians(rows)}, digest)

    def show(self, findings: Findings) -> Table:
        """Return all rows."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("way")
        for header in ("machines", "changed", "rows read", "bytes", "p50 ms", "p99 ms", "samples"):
            table.add_column(header, justify="right")
        for row in findings.rows:
            table.add_row(
                row["way"],
                *(f"{row[name]:,}" for name in ("machines", "changed", "rows_read", "bytes")),
                *(f"{row[name]:.2f}" for name in ("p50_ms", "p99_ms")),
                f"{row['samples']:,}",
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return milliseconds and bytes by the rows that have changed."""
        picture = Picture(
            findings.finding,
            columns=2,
            note="medians; a refresh is the question, the answer and the patched view",
        )
        for number, machines in enumerate(self.machines):
            for way in WAYS:
                mine = [
                    row
                    for row in findings.rows
                    if (row["machines"], row["way"]) == (machines, way) and row["changed"]
                ]
                for panel, what in zip(picture.panels[0], ("p50_ms", "bytes"), strict=True):
                    points = [(row["changed"], row[what]) for row in mine]
                    label = f"{way}, {machines:,} machines"
                    series(panel, number, points, label, stroke=STROKES[way])
        for panel, what in zip(picture.panels[0], ("time, ms", "machine rows, bytes"), strict=True):
            magnitudes(panel)
            steps(panel, self.changed)
            panel.set_xlabel("rows changed since the last refresh")
            panel.set_ylabel(what)
        return picture

    def _make_cell(self, url: str, machines: int) -> None:
        migrate(url)
        with closing(PostgresStore(url, application_name="omega benchmark")) as store:
            store.add_machines(demo_machines(machines, np.random.default_rng(self.seed)))

    def _sample(self, stage: Stage, url: str, machines: int) -> tuple[Samples, int]:
        """Change rows and refresh in each way, until the time for this size is up."""
        samples: dict[tuple[str, int], list[tuple[float, int]]] = defaultdict(list)
        counts = [0, *(count for count in self.changed if count <= machines)]
        with ExitStack() as stack:
            link = stack.enter_context(closing(statements.connect(url)))
            readers = {way: _reader(way, stack, url, stage.clock) for way in WAYS}
            for reader in readers.values():
                reader.refresh()
            began, seconds = stage.clock.now(), self.seconds / len(self.machines)
            rounds = 0
            while rounds < ROUNDS_MIN or stage.clock.now() < began + (1 - OF_FIRST) * seconds:
                stage.go_on()
                rounds += 1
                for way, reader in readers.items():
                    # An unmeasured refresh first: after a full read, caches are cold.
                    reader.refresh()
                    for count in counts:
                        statements.touch(link, count, machines, first=rounds)
                        samples[way, count].append(reader.refresh())
            while len(samples[FIRST, 0]) < ROUNDS_MIN or stage.clock.now() < began + seconds:
                stage.go_on()
                with ExitStack() as once:
                    samples[FIRST, 0].append(_reader("full", once, url, stage.clock).refresh())
            for reader in readers.values():
                for _ in range(PARTS):
                    reader.refresh()
            found = {way: reader.checksum() for way, reader in readers.items()}
        if len(set(found.values())) != 1:
            raise InvariantBroken("views of one cell differ", story=[str(found)])
        return samples, found["full"]

    def _finding(self, rows: Sequence[Mapping[str, Any]]) -> str:
        machines = HEADLINE[0] if HEADLINE[0] in self.machines else max(self.machines)
        fits = [count for count in self.changed if count <= machines]
        changed = HEADLINE[1] if HEADLINE[1] in fits else max(fits, default=0)
        told = {
            row["way"]: row
            for row in rows
            if row["machines"] == machines and row["changed"] == changed
        }
        return (
            f"A full read of {machines:,} machines takes {_cost(told['full'])}; a delta of"
            f" {changed:,} changed rows, {_cost(told['delta'])}; the next of {PARTS} parts,"
            f" {told['partitioned']['p50_ms']:.2f} ms"
        )


def _reader(way: str, stack: ExitStack, url: str, clock: Clock) -> Reader:
    """Return a reader with a new connection and without a view."""
    store = stack.enter_context(closing(PostgresStore(url, application_name="omega benchmark")))
    store.now_ms()
    return Reader(way, store, clock)


def _rows(machines: int, samples: Samples) -> list[dict[str, Any]]:
    rows = []
    for (way, changed), taken in samples.items():
        read = int(np.median([count for _, count in taken]))
        rows.append(
            {
                "machines": machines,
                "way": way,
                "changed": changed,
                "rows_read": read,
                "bytes": read * MACHINE.itemsize,
                **milliseconds([seconds for seconds, _ in taken]),
                "samples": len(taken),
            }
        )
    return rows


def _medians(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the medians by way, machines and rows changed."""
    found: dict[str, Any] = {}
    for row in rows:
        of_way = found.setdefault(row["way"], {})
        of_way.setdefault(str(row["machines"]), {})[str(row["changed"])] = row["p50_ms"]
    return found


def _cost(row: Mapping[str, Any]) -> str:
    return f"{row['p50_ms']:.2f} ms and {row['bytes'] / 1_000:,.0f} kB"


def command(
    machines: Annotated[
        str, typer.Option(metavar="N,...", help="Machines of the cell.")
    ] = "1000,10000,100000",
    changed: Annotated[
        str, typer.Option(metavar="N,...", help="Rows changed between two refreshes.")
    ] = "1,10,100,1000,10000",
    seconds: Seconds = None,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Milliseconds and bytes to bring a view up to date, in full and by what has changed.

    Takes a minute and a half.
    """
    benchmark = Sync(
        machines=numbers(machines, option="--machines", most=MACHINES_MAX),
        changed=numbers(changed, option="--changed", most=MACHINES_MAX),
    )
    if smoke:
        benchmark = Sync(machines=(20, 50), changed=(1, 30), seconds=0.2)
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
