"""Whether this checkout commits as fast as an earlier one: the cost of rules that are not used.

There are two databases on one server, each with the functions of its checkout, and clients that run
its code. They commit the same work in turns, so that the ratio does not depend on the machine.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.client import OMEGA
from benchmarks.environment import ROOT, revision_of
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, words
from benchmarks.ratios import milliseconds, paired
from benchmarks.workers import (
    CONTENTIONS,
    Measured,
    Order,
    Slice,
    Workers,
    alternate,
    workers,
)
from omega.errors import BadInput
from omega.limits import LIMITS
from omega.plots.picture import Picture, series
from omega.terminal.progress import progress_bar

BEFORE, AFTER = "before", "after"
CLIENTS_MAX: Final = 32
CLAIMS_MAX: Final = 100_000_000
ROUNDS_MAX: Final = 1_000

Slices = Mapping[str, Sequence[Slice]]
"""The slices of each checkout, one per round."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The parameters of the benchmark."""

    python: Path = field(default=Path(sys.executable), repr=False)
    """The interpreter of the other checkout."""
    before: str | None
    after: str | None
    variant: str = "omega-fit"
    contention: str = "disjoint"
    clients: int = 4
    claims: int = 100
    """Claims of one transaction."""
    claims_in_all: int = 1_000_000
    """Claims of both checkouts together."""
    machines: int = 10_000
    rounds: int = 25
    seconds: float = 3_600.0
    """Time after which the benchmark ends with the current round."""
    seed: int = 0

    @property
    def order(self) -> Order:
        """The order for each checkout's clients in one round."""
        turns = 2 * self.rounds * self.clients * self.claims
        return Order(
            variant=self.variant,
            contention=self.contention,
            claims=self.claims,
            clients=self.clients,
            transactions=ceil(self.claims_in_all / turns),
        )

    def measure(self, stage: Stage) -> Findings:
        """Run both in turns; at the end, check that each database holds what was granted."""
        with ExitStack() as stack:
            workers_by_side = {
                BEFORE: self._workers(stack, stage, BEFORE, self.python),
                AFTER: self._workers(stack, stage, AFTER, None),
            }
            ways = {
                side: partial(one.do, self.order, self.seed)
                for side, one in workers_by_side.items()
            }
            rng = np.random.default_rng(self.seed)
            slices = in_turns(stage, ways, rng, rounds=self.rounds, seconds=self.seconds)
            granted = {side: sum(one.granted for one in ones) for side, ones in slices.items()}
            for side, each in workers_by_side.items():
                each.check(granted[side])
        summary = self._summary(slices)
        digest = {
            **{f"claims granted, {side}": granted[side] for side in workers_by_side},
            "transactions": sum(one.transactions for ones in slices.values() for one in ones),
            "violations": 0,
        }
        return Findings(self._finding(summary), _rows(slices), summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return the figures of each checkout."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("checkout")
        for header in ("claims/s", "p50 ms", "p99 ms"):
            table.add_column(header, justify="right")
        for side, revision in ((BEFORE, self.before), (AFTER, self.after)):
            one = findings.summary[side]
            rate = f"{one['claims_per_s']:,.0f}"
            table.add_row(
                f"{side}: {revision}", rate, f"{one['p50_ms']:.2f}", f"{one['p99_ms']:.2f}"
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the rates and their ratio, round by round."""
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"{self.clients} clients, {self.claims:,} claims a transaction,"
            f" {self.contention} machines, {self.variant}; in turns on one server",
        )
        rates, ratios = picture.panels[0]
        points = {
            side: [
                (row["round"], row["claims_per_s"])
                for row in findings.rows
                if row["checkout"] == side
            ]
            for side in (AFTER, BEFORE)
        }
        for number, (side, line) in enumerate(points.items()):
            revision = self.after if side == AFTER else self.before
            series(rates, number, line, f"{side} ({revision})")
        rates.set_ylim(bottom=0)
        rates.set_ylabel("claims granted, 1/s")
        of_round = [
            (number, after / before)
            for (number, after), (_, before) in zip(points[AFTER], points[BEFORE], strict=True)
        ]
        series(ratios, 2, of_round, "after / before")
        ratios.axhline(findings.summary["ratio"]["median"], color="#0b5cad", label="median")
        ratios.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        ratios.set_ylabel("ratio of the rates")
        for panel in (rates, ratios):
            panel.set_xlabel("round")
        return picture

    def _workers(self, stack: ExitStack, stage: Stage, side: str, python: Path | None) -> Workers:
        url = stack.enter_context(stage.database(f"_{side}"))
        clients = workers(url, clients=self.clients, machines=self.machines, python=python)
        return stack.enter_context(clients)

    def _summary(self, slices: Slices) -> dict[str, Any]:
        rates = {side: [one.claims_per_s for one in ones] for side, ones in slices.items()}
        ratio = paired(rates[AFTER], rates[BEFORE])
        assert ratio is not None, "each slice commits something"
        return {
            "ratio": ratio.rounded(),
            "rounds": len(slices[AFTER]),
            "claims": sum(one.granted for ones in slices.values() for one in ones),
            **{
                side: {
                    "claims_per_s": round(float(np.median(rates[side])), 1),
                    **milliseconds(np.concatenate([one.latencies_s for one in ones])),
                }
                for side, ones in slices.items()
            },
        }

    def _finding(self, summary: Mapping[str, Any]) -> str:
        ratio = summary["ratio"]
        return (
            f"{self.after or 'This checkout'} commits {ratio['median']:.3f} x as fast as"
            f" {self.before or 'the other'} (95 % interval {ratio['lower']:.3f} to"
            f" {ratio['upper']:.3f}); {summary['rounds']} rounds, {summary['claims']:,} claims"
        )


def in_turns(
    stage: Stage,
    ways: Mapping[str, Callable[[], Measured]],
    rng: np.random.Generator,
    *,
    rounds: int,
    seconds: float,
) -> dict[str, list[Measured]]:
    """Measure a slice of each way per round, in random order; return the slices of each way.

    After so many seconds it ends with the current round.
    """
    slices: dict[str, list[Measured]] = {name: [] for name in ways}
    until = stage.clock.now() + seconds
    with progress_bar(stage.output.console) as progress:
        bar = progress.add_task("in turns", total=len(ways) * rounds)
        for name, one in alternate(ways, rounds, rng):
            slices[name].append(one)
            progress.advance(bar)
            stage.go_on()
            is_whole = len({len(ones) for ones in slices.values()}) == 1
            if stage.clock.now() > until and is_whole:
                break
    return slices


def _rows(slices: Slices) -> list[dict[str, Any]]:
    """Return one row per round and checkout."""
    return [
        {
            "round": number,
            "checkout": side,
            "claims_per_s": round(one.claims_per_s, 1),
            **milliseconds(one.latencies_s),
            "verdicts": dict(one.verdicts),
            "repeats": dict(one.repeats),
        }
        for side, ones in slices.items()
        for number, one in enumerate(ones, start=1)
    ]


def interpreter_of(checkout: Path) -> Path:
    """Return the interpreter of a checkout that has been set up; raise BadInput if it has not."""
    python = checkout.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        problem = f"{checkout} has no .venv/bin/python; run make setup there"
        raise BadInput(problem, field="--before")
    return python


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    before: Annotated[
        Path, typer.Option(metavar="DIR", help="A checkout of another revision, set up.")
    ],
    rule: Annotated[str, typer.Option(metavar="NAME", help="fit or sequence.")] = "fit",
    contention: Annotated[
        str, typer.Option(metavar="NAME", help="disjoint, uniform or hot.")
    ] = "disjoint",
    clients: Annotated[int, typer.Option(min=1, max=CLIENTS_MAX, metavar="N")] = 4,
    claims: Annotated[
        int,
        typer.Option(
            min=1,
            max=LIMITS.claims_per_transaction_max,
            metavar="N",
            help="Claims of a transaction.",
        ),
    ] = 100,
    claims_in_all: Annotated[
        int, typer.Option(min=1, max=CLAIMS_MAX, metavar="N", help="Claims of both together.")
    ] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, max=ROUNDS_MAX, metavar="N")] = 25,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Commits of this checkout beside those of another revision, in one run.

    With --before of the same revision it tells how much of a difference means nothing.
    """
    (variant,) = words(f"omega-{rule}", option="--rule", known=tuple(OMEGA))
    (where,) = words(contention, option="--contention", known=CONTENTIONS)
    benchmark = Rules(
        python=interpreter_of(before),
        before=revision_of(before),
        after=revision_of(ROOT),
        variant=variant,
        contention=where,
        clients=clients,
        claims=claims,
        claims_in_all=claims_in_all,
        rounds=rounds,
        seed=seed,
    )
    if smoke:
        benchmark = replace(
            benchmark, clients=2, claims=10, claims_in_all=400, rounds=2, machines=40
        )
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
