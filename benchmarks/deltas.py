"""Whether this checkout keeps a view fresh as fast as an earlier one.

There are two databases on one server, each with the functions of its checkout, and a client of each
that runs its code. They refresh their views in turns, so that the ratio does not depend on the
machine: an empty delta and a delta of some rows are a matter of a fraction of a millisecond.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.environment import ROOT, revision_of
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke
from benchmarks.postgres import statements
from benchmarks.ratios import paired
from benchmarks.rules import AFTER, BEFORE, ROUNDS_MAX, in_turns, interpreter_of
from benchmarks.workers import ClientProcess, client_of
from omega.errors import BadInput, InvariantBroken
from omega.plots.picture import Picture, series
from omega.store.postgres.connection import Link

EMPTY, CHANGED = "empty", "changed"
"""Deltas after nothing has changed, and after some rows have."""
UNMEASURED: Final = 5
"""Refreshes before each slice: while the other checkout reads, caches grow cold."""
MACHINES_MAX: Final = 200_000
MS_PER_S: Final = 1_000


@dataclass(frozen=True)
class Slice:
    """The median times of a client in one slice, in milliseconds."""

    empty: float
    changed: float


Slices = Mapping[str, Sequence[Slice]]
"""The slices of each checkout, one per round."""


@dataclass
class Reading:
    """A client that keeps a view of its own database fresh."""

    client: ClientProcess
    link: Link
    touched: int = 0
    """How often rows have been changed."""

    def refresh(self, times: int, *, least: int) -> list[float]:
        """Return the milliseconds of each refresh.

        Raises InvariantBroken if one was a full read, or if all read fewer than `least` rows. They
        may read more: while another transaction is open, rows are read again.
        """
        answer = self.client.ask("refresh", times=times)
        if answer["full_reads"]:
            raise InvariantBroken("a delta was a full read")
        if answer["rows"] < least:
            raise InvariantBroken(f"{least} rows changed, {answer['rows']} were read")
        return [MS_PER_S * seconds for seconds in answer["latencies_s"]]


@dataclass(frozen=True, kw_only=True)
class Deltas:
    """The parameters of the benchmark."""

    python: Path = field(default=Path(sys.executable), repr=False)
    """The interpreter of the other checkout."""
    before: str | None
    after: str | None
    machines: int = 10_000
    changed: int = 100
    """Rows that change before each delta that is not empty."""
    empty_refreshes: int = 100
    """Empty deltas of a slice."""
    changed_refreshes: int = 20
    """Deltas of a slice that are not empty."""
    rounds: int = 120
    seconds: float = 3_600.0
    """Time after which the benchmark ends with the current round."""
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run both in turns; at the end, check that each view is equal to a full read."""
        with ExitStack() as stack:
            readings = {
                BEFORE: self._reading(stack, stage, BEFORE, self.python),
                AFTER: self._reading(stack, stage, AFTER, Path(sys.executable)),
            }
            ways = {side: partial(self._slice, one) for side, one in readings.items()}
            rng = np.random.default_rng(self.seed)
            slices = in_turns(stage, ways, rng, rounds=self.rounds, seconds=self.seconds)
            for side, reading in readings.items():
                if not reading.client.ask("compare")["are_equal"]:
                    raise InvariantBroken(f"{side}: the view is not as the rows are stored")
        summary = self.summary(slices)
        digest = {f"changes, {side}": one.touched for side, one in readings.items()}
        return Findings(self._finding(summary), _rows(slices), summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return the figures of each checkout."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("checkout")
        for header in ("empty ms", f"{self.changed:,} rows ms"):
            table.add_column(header, justify="right")
        for side, revision in ((BEFORE, self.before), (AFTER, self.after)):
            one = findings.summary[side]
            times = (f"{one[kind]:.3f}" for kind in (EMPTY, CHANGED))
            table.add_row(f"{side}: {revision}", *times)
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the ratios of both kinds of delta, round by round."""
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"{self.machines:,} machines; in turns on one server; above 1 this checkout is"
            " the faster one",
        )
        titles = {EMPTY: "empty delta", CHANGED: f"delta of {self.changed:,} rows"}
        rows = {(row["checkout"], row["round"]): row for row in findings.rows}
        for panel, (kind, title) in zip(picture.panels[0], titles.items(), strict=True):
            points = [
                (number, rows[BEFORE, number][f"{kind}_ms"] / row[f"{kind}_ms"])
                for (side, number), row in rows.items()
                if side == AFTER
            ]
            series(panel, 0, points, "before / after")
            panel.axhline(findings.summary["ratio"][kind]["median"], label="median")
            panel.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            panel.set_xlabel("round")
            panel.set_ylabel(f"ratio of the times, {title}")
        return picture

    def _reading(self, stack: ExitStack, stage: Stage, side: str, python: Path) -> Reading:
        url = stack.enter_context(stage.database(f"_{side}"))
        link = stack.enter_context(closing(statements.connect(url)))
        client = stack.enter_context(client_of(python, url, side, self.machines))
        client.ask("watch")
        return Reading(client, link)

    def _slice(self, reading: Reading) -> Slice:
        reading.refresh(UNMEASURED, least=0)
        empty = reading.refresh(self.empty_refreshes, least=0)
        changed = []
        for _ in range(self.changed_refreshes):
            reading.touched += 1
            statements.touch(reading.link, self.changed, self.machines, first=reading.touched)
            changed += reading.refresh(1, least=self.changed)
        return Slice(median(empty), median(changed))

    def summary(self, slices: Slices) -> dict[str, Any]:
        """Return the ratios of the rates of both, this checkout's to the other's, and the times."""
        times = {
            kind: {side: [getattr(one, kind) for one in ones] for side, ones in slices.items()}
            for kind in (EMPTY, CHANGED)
        }
        ratio = {}
        for kind, sides in times.items():
            found = paired(sides[BEFORE], sides[AFTER])
            assert found is not None, "a refresh takes time"
            ratio[kind] = found.rounded()
        return {
            "ratio": ratio,
            "rounds": len(slices[AFTER]),
            **{
                side: {kind: round(median(times[kind][side]), 4) for kind in times}
                for side in slices
            },
        }

    def _finding(self, summary: Mapping[str, Any]) -> str:
        empty, changed = (summary["ratio"][kind] for kind in (EMPTY, CHANGED))
        return (
            f"{self.after or 'This checkout'} reads an empty delta {empty['median']:.3f} x as fast"
            f" as {self.before or 'the other'} (95 % interval {empty['lower']:.3f} to"
            f" {empty['upper']:.3f}), {self.changed:,} changed rows {changed['median']:.3f} x"
            f" ({changed['lower']:.3f} to {changed['upper']:.3f}); {summary['rounds']} rounds"
        )


def _rows(slices: Slices) -> list[dict[str, Any]]:
    """Return one row per round and checkout."""
    return [
        {
            "round": number,
            "checkout": side,
            "empty_ms": round(one.empty, 4),
            "changed_ms": round(one.changed, 4),
        }
        for side, ones in slices.items()
        for number, one in enumerate(ones, start=1)
    ]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    before: Annotated[
        Path, typer.Option(metavar="DIR", help="A checkout of another revision, set up.")
    ],
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Machines of the cell.")
    ] = Deltas.machines,
    changed: Annotated[
        int,
        typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Rows changed before a refresh."),
    ] = Deltas.changed,
    rounds: Annotated[int, typer.Option(min=1, max=ROUNDS_MAX, metavar="N")] = Deltas.rounds,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Deltas of this checkout beside those of another revision, in one run.

    Takes a minute. With --before of the same revision it tells how much of a difference means
    nothing.
    """
    if changed > machines:
        raise BadInput(f"of {machines:,} machines not {changed:,} can change", field="--changed")
    benchmark = Deltas(
        python=interpreter_of(before),
        before=revision_of(before),
        after=revision_of(ROOT),
        machines=machines,
        changed=changed,
        rounds=rounds,
        seed=seed,
    )
    if smoke:
        benchmark = replace(
            benchmark, machines=40, changed=5, rounds=2, empty_refreshes=3, changed_refreshes=2
        )
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
