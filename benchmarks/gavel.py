"""The Gavel paper's experiment: a stream of training jobs, by policy and load.

Jobs arrive at random times, the same for each policy. Rounds are in virtual time, so no database is
used. Completion times are means over the middle half of the jobs, because the first ones find an
empty cluster and the last ones leave one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Final, Self

import numpy as np
import typer
from rich.console import Group, RenderableType

from benchmarks.gpu_jobs import drawn_table, drawn_trace
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.paper.claims import Claim, Row, table, where
from benchmarks.paper.figure import Seeds, Workers, run_all
from omega.plots.picture import Picture, magnitudes, series
from omega.sim.sweep import Figures, Trial, mean_and_deviation
from omega.terminal.options import number_option
from schedulers.ml_gpu.policies.named import POLICIES
from schedulers.ml_gpu.replay import Replay, Rules
from schedulers.ml_gpu.rounds import LeftoverPolicy
from schedulers.ml_gpu.throughputs import Throughputs, read_throughputs

HOUR_S: Final = 3_600.0
TYPE_UNAWARE: Final = "max_min_fairness"
TYPE_AWARE: Final = "max_min_fairness_perf"
PACKED: Final = "max_min_fairness_packed"
FAST_FIRST: Final = f"{TYPE_UNAWARE} fast types first"
LAST: Final = f"{TYPE_AWARE} holes last"
FILLED: Final = "max_min_fairness_water_filling_perf"
LINES: Final = (
    TYPE_UNAWARE,
    FAST_FIRST,
    "fifo_perf",
    "gandiva",
    "allox",
    TYPE_AWARE,
    LAST,
    FILLED,
    PACKED,
)
RESTART_S: Final = 30.0
ROUNDS_S: Final = (60.0, 120.0, 360.0, 1_440.0, 2_880.0, 5_760.0, 11_520.0, 23_040.0)
BASELINE_ROUND_S: Final = 360.0
NEAR: Final = 0.75
"""Share of a published gain (what exceeds 1) from which on the claim holds."""


@dataclass(frozen=True, kw_only=True)
class Play:
    """The parameters of one run."""

    line: str
    jobs_per_hour: float
    jobs: int
    gpus: int
    """GPUs of each type."""
    seed: int
    round_s: float = BASELINE_ROUND_S
    restart_s: float = 0.0
    keeps_gpus: bool = True
    table: Path | None = None


def play(one: Play) -> Figures:
    """Run one simulation to its end; return its figures."""
    rates = table_of(one.table, one.seed)
    trace = drawn_trace(
        rates, one.jobs, one.jobs_per_hour / HOUR_S, np.random.default_rng([one.seed, one.jobs])
    )
    played = Replay(
        trace=trace,
        table=rates,
        gpus=np.full(len(rates.types), one.gpus, np.int64),
        policy=POLICIES[one.line.partition(" ")[0]],
        rng=np.random.default_rng(one.seed),
        rules=Rules(
            round_s=one.round_s,
            restart_s=one.restart_s,
            keeps_gpus=one.keeps_gpus,
            shuffles_types=False if one.line == FAST_FIRST else None,
            leftovers=LeftoverPolicy.LAST if one.line == LAST else LeftoverPolicy.AS_MET,
        ),
    ).run()
    middle = slice(one.jobs // 4, max(one.jobs * 3 // 4, one.jobs // 4 + 1))
    tally = played.tally
    return {
        "jct_h": float(played.completion_s[middle].mean()) / HOUR_S,
        "p99_jct_h": float(np.percentile(played.completion_s[middle], 99)) / HOUR_S,
        "makespan_h": played.makespan_s / HOUR_S,
        "utilisation": played.utilisation,
        "preemptions": tally.preempted,
        "preempted_of_dispatched": tally.preempted / max(1, tally.dispatches),
        "rounds": tally.rounds,
        "solves": tally.solves,
    }


def table_of(path: Path | None, seed: int) -> Throughputs:
    """Return the rates of single-GPU jobs from the table at this path, or a drawn table."""
    if path is None:
        return drawn_table(np.random.default_rng([seed, 0]))
    table = read_throughputs(path)
    return table.of(table.types, [kind for kind in table.kinds if kind[1] == 1])


@dataclass(frozen=True, kw_only=True)
class Gavel:
    """The parameters of the benchmark."""

    loads: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 5.6)
    """Jobs per hour."""
    hours: float = 860.0
    """Time in which jobs arrive: near saturation, the queues of slow policies grow throughout."""
    jobs_by_round: int = 2_400
    """Jobs of each run in the comparison of lengths of rounds."""
    gpus: int = 36
    """GPUs of each of three types, as in the paper."""
    seed: int = 0
    seeds: int = 3
    """Runs of each point, with seeds from `seed` on."""
    workers: int = 0
    throughputs: Path | None = field(default=None, repr=False)

    def measure(self, stage: Stage) -> Findings:
        """Run all policies at all loads, then one of them with rounds of several lengths.

        A row has the means over the seeds, and their deviations.
        """
        plays = self._plays()
        trials = [
            Trial(number, seed, replace(one, seed=seed))
            for number, one in enumerate(plays)
            for seed in range(self.seed, self.seed + self.seeds)
        ]
        runs: list[dict[int, Figures]] = [{} for _ in plays]
        for trial, figures in run_all(stage, play, trials, workers=self.workers):
            runs[trial.point][trial.seed] = figures
        rows: list[Row] = []
        by_seed: list[list[Row]] = [[] for _ in range(self.seeds)]
        for one, found in zip(plays, runs, strict=True):
            values = {n: value for n, value in asdict(one).items() if n not in {"seed", "table"}}
            in_order = [found[seed] for seed in sorted(found)]
            means, deviations = mean_and_deviation(in_order)
            rows.append({**values, **means, "deviation": deviations})
            for alone, figures in zip(by_seed, in_order, strict=True):
                alone.append({**values, **figures})
        alone_by_claim = zip(*(self._claims([alone]) for alone in by_seed), strict=True)
        claims = [
            claim.row(alone)
            for claim, alone in zip(self._claims(by_seed), alone_by_claim, strict=True)
        ]
        held = sum(claim["holds"] for claim in claims)
        finding = f"Policies that know rates, by load: {held} of {len(claims)} claims hold"
        rounds = sum(figures["rounds"] for found in runs for figures in found.values())
        done = Counter(runs=len(trials), rounds=rounds)
        return Findings(finding, rows, {"claims": claims}, dict(done))

    def _plays(self) -> list[Play]:
        base = Play(
            line=TYPE_AWARE,
            jobs_per_hour=self.loads[0],
            jobs=self.jobs_by_round,
            gpus=self.gpus,
            seed=self.seed,
            table=self.throughputs,
        )
        by_load = [
            replace(base, line=line, jobs_per_hour=load, jobs=max(4, round(self.hours * load)))
            for load in self.loads
            for line in LINES
        ]
        by_round = [
            replace(
                base,
                jobs_per_hour=self._middling,
                round_s=round_s,
                restart_s=RESTART_S,
                keeps_gpus=keeps,
            )
            for round_s in ROUNDS_S
            for keeps in (True, False)
        ]
        return by_load + by_round

    @property
    def _middling(self) -> float:
        return self.loads[len(self.loads) * 2 // 3]

    def _claims(self, by_seed: Sequence[Sequence[Row]]) -> list[Claim]:
        """Return the claims, judged by the means over the seeds; `by_seed` has each seed's rows."""
        least, most = min(self.loads), max(self.loads)

        def gains(slow: str, fast: str) -> tuple[_Gain, _Gain]:
            at_least, at_most = (
                _Gain.of(_jct_h(rows, slow, load) / _jct_h(rows, fast, load) for rows in by_seed)
                for load in (least, most)
            )
            return at_least, at_most

        known = gains(TYPE_UNAWARE, TYPE_AWARE)
        honest = gains(FAST_FIRST, TYPE_AWARE)
        emptied = gains(TYPE_AWARE, LAST)
        shared = gains(TYPE_AWARE, PACKED)[1]
        return [
            Claim(
                "fair shares that know rates finish jobs sooner than fair shares that count GPUs,"
                " 3 times near saturation and 1.3 times at low load",
                f"{known[0]} times at {least:g} jobs/h, {known[1]} at {most:g}",
                known[0].mean > 1 and known[1].mean - 1 >= NEAR * (3 - 1),
            ),
            Claim(
                "near saturation not only because they serve fast types first (our own question)",
                "over counting GPUs with fast types first"
                f" {honest[0]} times at {least:g} jobs/h, {honest[1]} at {most:g}",
                honest[1].mean > 1,
            ),
            Claim(
                "at low load who has a share of a slower type should not be put into the holes of a"
                " faster one (our own question)",
                f"holes filled last: {emptied[0]} times sooner at {least:g} jobs/h,"
                f" {emptied[1]} at {most:g}",
                emptied[0].mean > 1,
            ),
            Claim(
                "with two jobs on a GPU sooner still, near saturation by 1.5 times",
                f"{shared} times at {most:g} jobs/h",
                shared.mean - 1 >= NEAR * (1.5 - 1),
            ),
            *_of_restarts([where(rows, restart_s=RESTART_S) for rows in by_seed]),
        ]

    def show(self, findings: Findings) -> RenderableType:
        """Return the claims."""
        return Group(table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw completion times by load and by the length of rounds, and preemptions."""
        picture = Picture(
            findings.finding,
            columns=3,
            note=f"means of {self.seeds} runs; {self.hours:,.0f} h of arrivals on {self.gpus} GPUs"
            f" of each type; the right two: {self.jobs_by_round:,} jobs at {self._middling:g} an"
            f" hour, {RESTART_S:.0f} s lost a restart",
        )
        load, length, moved = picture.panels[0]
        by_load = where(findings.rows, restart_s=0.0)
        for number, line in enumerate(LINES):
            points = [(row["jobs_per_hour"], row["jct_h"]) for row in where(by_load, line=line)]
            series(load, number, points, line)
        load.set_xlabel("jobs an hour")
        load.set_ylabel("mean completion time, h")
        load.set_yscale("log")
        load.set_yticks([15, 20, 30, 40], ["15", "20", "30", "40"])
        load.minorticks_off()
        for number, (keeps, label) in enumerate(((True, "keep their GPUs"), (False, "naive"))):
            rows = where(findings.rows, restart_s=RESTART_S, keeps_gpus=keeps)
            for panel, key in ((length, "jct_h"), (moved, "preemptions")):
                series(panel, number, [(row["round_s"], row[key]) for row in rows], label)
                panel.set_xscale("log")
                panel.set_xlabel("length of a round, s")
        length.set_ylabel("mean completion time, h")
        moved.set_ylabel("preemptions")
        magnitudes(moved)
        return picture


@dataclass(frozen=True)
class _Gain:
    """How many times sooner jobs finish: the mean over the seeds, and its standard deviation."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Self:
        found = list(ratios)
        return cls(fmean(found), stdev(found) if len(found) > 1 else None)

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (
            "" if self.deviation is None else f" (sd {self.deviation:.2f})"
        )


def _jct_h(rows: Sequence[Row], line: str, load: float) -> float:
    (row,) = where(rows, restart_s=0.0, line=line, jobs_per_hour=load)
    return float(row["jct_h"])


def _of_restarts(by_seed: Sequence[Sequence[Row]]) -> list[Claim]:
    """Return the claims on jobs that keep their GPUs, and on the length of rounds."""
    kept, naive = (_by_length(by_seed, keeps=keeps) for keeps in (True, False))
    best = min(kept, key=lambda length: kept[length]["jct_h"])
    fewer = [
        kept[length]["preemptions"] / max(1, naive[length]["preemptions"]) for length in ROUNDS_S
    ]
    usual = BASELINE_ROUND_S
    short, long = ROUNDS_S[0], ROUNDS_S[-1]
    return [
        Claim(
            "jobs that go on keep their GPUs, and few are preempted",
            f"in rounds of {usual:.0f} s {kept[usual]['preemptions']:,.0f} preemptions,"
            f" {naive[usual]['preemptions']:,.0f} without that; {min(fewer):.2f} to"
            f" {max(fewer):.2f} times as many over all lengths of rounds",
            max(fewer) < 1,
        ),
        Claim(
            f"with {RESTART_S:.0f} s lost a restart, rounds should be neither short nor long"
            " (our own question)",
            f"best at {best:.0f} s: {kept[best]['jct_h']:.1f} h;"
            f" {kept[short]['jct_h']:.1f} h at {short:.0f} s,"
            f" {kept[long]['jct_h']:.1f} h at {long:.0f} s",
            short < best < long,
        ),
    ]


def _by_length(by_seed: Sequence[Sequence[Row]], *, keeps: bool) -> dict[float, dict[str, float]]:
    """Return the mean over the seeds of some figures, by the length of rounds."""
    found = {}
    for length in ROUNDS_S:
        ran = [row for rows in by_seed for row in where(rows, round_s=length, keeps_gpus=keeps)]
        found[length] = {name: fmean(row[name] for row in ran) for name in ("jct_h", "preemptions")}
    return found


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    hours: Annotated[
        float,
        number_option(lowest=1, highest=1e5, metavar="H", help="In which jobs come."),
    ] = 860.0,
    jobs_by_round: Annotated[
        int, typer.Option(min=4, metavar="N", help="Jobs, where lengths of rounds are compared.")
    ] = 2_400,
    throughputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rates as Gavel publishes them; drawn if not given."),
    ] = None,
    seed: Seed = 0,
    seeds: Seeds = 3,
    workers: Workers = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Completion times of training jobs by policy and load, and what restarts cost.

    Takes an hour on one processor.
    """
    benchmark = Gavel(
        hours=hours,
        jobs_by_round=jobs_by_round,
        throughputs=throughputs,
        seed=seed,
        seeds=seeds,
        workers=workers,
    )
    if smoke:
        benchmark = replace(
            benchmark, loads=(1.0, 4.0), hours=3, jobs_by_round=8, gpus=1, seeds=2, workers=1
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
