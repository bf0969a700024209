"""The Gavel paper's experiment: a stream of training jobs, by policy and load.

Jobs arrive at random times, the same for each policy. Rounds are in virtual time, so no database is
used. Completion times are means over the middle half of the jobs, because the first ones find an
empty cluster and the last ones leave one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Group, RenderableType

from benchmarks.gpu_jobs import drawn_table, drawn_trace
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.paper.claims import Claim, table, where
from benchmarks.paper.figure import Workers, run_all
from omega.plots.picture import Picture, magnitudes, series
from omega.sim.sweep import Figures, Trial
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
    workers: int = 0
    throughputs: Path | None = field(default=None, repr=False)

    def measure(self, stage: Stage) -> Findings:
        """Run all policies at all loads, then one of them with rounds of several lengths."""
        plays = self._plays()
        trials = [Trial(number, self.seed, one) for number, one in enumerate(plays)]
        played = run_all(stage, play, trials, workers=self.workers)
        runs = {trial.point: found for trial, found in played}
        rows = []
        for number, one in enumerate(plays):
            values = {n: value for n, value in asdict(one).items() if n not in {"seed", "table"}}
            rows.append({**values, **runs[number]})
        claims = [claim.row() for claim in self._claims(rows)]
        held = sum(claim["holds"] for claim in claims)
        finding = f"Policies that know rates, by load: {held} of {len(claims)} claims hold"
        done = Counter(runs=len(plays), rounds=sum(row["rounds"] for row in rows))
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

    def _claims(self, rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
        by_load = where(rows, restart_s=0.0)
        most = max(self.loads)

        def jct_h(line: str, load: float) -> float:
            (row,) = where(by_load, line=line, jobs_per_hour=load)
            return float(row["jct_h"])

        gains = [jct_h(TYPE_UNAWARE, load) / jct_h(TYPE_AWARE, load) for load in self.loads]
        honest = [jct_h(FAST_FIRST, load) / jct_h(TYPE_AWARE, load) for load in self.loads]
        emptied = [jct_h(TYPE_AWARE, load) / jct_h(LAST, load) for load in self.loads]
        shared = jct_h(TYPE_AWARE, most) / jct_h(PACKED, most)
        return [
            Claim(
                "fair shares that know rates finish jobs sooner than fair shares that count GPUs,"
                " 3 times near saturation and 1.3 times at low load",
                f"{gains[0]:.2f} times at {self.loads[0]:g} jobs/h, {gains[-1]:.2f} at {most:g}",
                gains[0] > 1 and gains[-1] - 1 >= NEAR * (3 - 1),
            ),
            Claim(
                "near saturation not only because they serve fast types first (our own question)",
                "over counting GPUs with fast types first"
                f" {honest[0]:.2f} times at {self.loads[0]:g} jobs/h, {honest[-1]:.2f} at {most:g}",
                honest[-1] > 1,
            ),
            Claim(
                "at low load who has a share of a slower type should not be put into the holes of a"
                " faster one (our own question)",
                f"holes filled last: {emptied[0]:.2f} times sooner at {self.loads[0]:g} jobs/h,"
                f" {emptied[-1]:.2f} at {most:g}",
                emptied[0] > 1,
            ),
            Claim(
                "with two jobs on a GPU sooner still, near saturation by 1.5 times",
                f"{shared:.2f} times at {most:g} jobs/h",
                shared - 1 >= NEAR * (1.5 - 1),
            ),
            *_of_restarts(where(rows, restart_s=RESTART_S)),
        ]

    def show(self, findings: Findings) -> RenderableType:
        """Return the claims."""
        return Group(table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw completion times by load and by the length of rounds, and preemptions."""
        picture = Picture(
            findings.finding,
            columns=3,
            note=f"{self.hours:,.0f} h of arrivals on {self.gpus} GPUs of each type; the right two:"
            f" {self.jobs_by_round:,} jobs at {self._middling:g} an hour, {RESTART_S:.0f} s lost a"
            " restart",
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


def _of_restarts(rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims on jobs that keep their GPUs, and on the length of rounds."""
    kept, naive = (
        sorted(where(rows, keeps_gpus=keeps), key=lambda row: row["round_s"])
        for keeps in (True, False)
    )
    best = min(kept, key=lambda row: row["jct_h"])
    fewer = [
        one["preemptions"] / max(1, other["preemptions"])
        for one, other in zip(kept, naive, strict=True)
    ]
    usual = next(n for n, row in enumerate(kept) if row["round_s"] == BASELINE_ROUND_S)
    return [
        Claim(
            "jobs that go on keep their GPUs, and few are preempted",
            f"in rounds of {BASELINE_ROUND_S:.0f} s {kept[usual]['preemptions']:,} preemptions,"
            f" {naive[usual]['preemptions']:,} without that; {min(fewer):.2f} to"
            f" {max(fewer):.2f} times as many over all lengths of rounds",
            max(fewer) < 1,
        ),
        Claim(
            f"with {RESTART_S:.0f} s lost a restart, rounds should be neither short nor long"
            " (our own question)",
            f"best at {best['round_s']:.0f} s: {best['jct_h']:.1f} h;"
            f" {kept[0]['jct_h']:.1f} h at {kept[0]['round_s']:.0f} s,"
            f" {kept[-1]['jct_h']:.1f} h at {kept[-1]['round_s']:.0f} s",
            kept[0]["round_s"] < best["round_s"] < kept[-1]["round_s"],
        ),
    ]


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
    workers: Workers = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Completion times of training jobs by policy and load, and what restarts cost.

    Takes some minutes.
    """
    benchmark = Gavel(
        hours=hours,
        jobs_by_round=jobs_by_round,
        throughputs=throughputs,
        seed=seed,
        workers=workers,
    )
    if smoke:
        benchmark = replace(
            benchmark, loads=(1.0, 4.0), hours=3, jobs_by_round=8, gpus=1, workers=1
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
