"""How far shares are from fair ones, by how seldom schedulers read what tenants use.

Four tenants want more of a cell than there is, one of them with twice the weight, and tasks end
all the time. Schedulers lease in a fair order in virtual time: two replicas of a kind, and three
kinds, for which not every tenant has jobs.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, numbers
from omega.config import Settings
from omega.events import ignore
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.lanes import QueueOrder
from omega.model.machines import Machines
from omega.model.resources import machine_capacity
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.ordering.tenants import Tenant
from omega.plots.picture import COLOURS, Picture, series, steps
from omega.reports.fairness import FairnessReport
from omega.sim.virtual_cell import VirtualCell
from omega.terminal.progress import progress_bar
from schedulers.batch import BatchScheduler

CORES: Final = 8
"""Cores of a machine; a task takes one."""
TASK_S: Final = (5, 15)
"""The shortest and the longest task, in seconds."""
WEIGHTS: Final = {"a": 1, "b": 1, "c": 1, "d": 2}
KINDS: Final = ("batch", "second", "third")
KINDS_OF: Final = {"a": 1, "b": 2, "c": 3, "d": 3}
"""For how many of the three kinds each tenant has jobs."""
ARMS: Final = ("two replicas", "three kinds")
WARM_S: Final = 20
"""Until the cell is full and the first tasks have ended."""
SAMPLE_S: Final = 0.5
MEASURES: Final = {
    "mean": "off the fair share, mean",
    "rms": "off the fair share, root mean square",
    "idle": "part of the cell that idles",
}
GAP_MS_MAX: Final = 600_000


@dataclass(frozen=True, kw_only=True)
class ShareGap:
    """The parameters of the benchmark."""

    machines: int = 25
    gaps_ms: tuple[int, ...] = (10, 50, 200, 1_000, 3_000, 10_000)
    measured_s: int = 30
    order: str = "drf"
    seeds: int = 3
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run each arm with each gap and seed."""
        points = [(arm, gap) for arm in ARMS for gap in self.gaps_ms]
        rows: list[dict[str, Any]] = []
        samples = 0
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("Running", total=len(points) * self.seeds)
            for arm, gap_ms in points:
                found: list[Mapping[str, float]] = []
                for seed in range(self.seed, self.seed + self.seeds):
                    stage.go_on()
                    run = list(self.simulate(arm, gap_ms, seed))
                    samples += len(run)
                    found.append(figures_of(run))
                    progress.advance(bar)
                rows.append({"arm": arm, "gap_ms": gap_ms, **_over_seeds(found)})
        digest = {"runs": len(points) * self.seeds, "samples": samples, "violations": 0}
        return Findings(_finding(rows), rows, {}, digest)

    def simulate(self, arm: str, gap_ms: int, seed: int) -> Iterator["Sample"]:
        """Yield samples of one run; raise InvariantBroken if the cell is broken after it."""
        cell = self._cell(gap_ms, seed)
        for scheduler, replica in _schedulers(arm):
            scheduler.queue_order = QueueOrder(self.order)
            cell.schedule(scheduler, replica)
        rng = np.random.default_rng([seed, gap_ms])
        cell.store.submit(list(self._jobs(arm, rng)))
        cell.run(WARM_S)
        # All tenants have work to the end, so what is fair stays the same.
        fair = {it.name: it.fair_share for it in FairnessReport.read(cell.store).tenants}
        assert fair.keys() == WEIGHTS.keys()
        for number in range(1, 1 + round(self.measured_s / SAMPLE_S)):
            cell.run(WARM_S + number * SAMPLE_S)
            used = {name: cores for name, (cores, *_) in cell.store.sum_use().items()}
            yield Sample.of(used, fair, self.machines * CORES * 1_000)
        cell.check()

    def _cell(self, gap_ms: int, seed: int) -> VirtualCell:
        machines = Machines(
            names=tuple(f"m{number:03}" for number in range(self.machines)),
            capacity=np.tile(machine_capacity(CORES * 1_000, 65_536, 0, 0), (self.machines, 1)),
            attributes={},
        )
        settings = Settings.model_construct(share_gap_ms=gap_ms)
        cell = VirtualCell(machines, seed=seed, settings=settings)
        for name, weight in WEIGHTS.items():
            cell.store.set_tenant(Tenant(name, weight))
        nodes = VirtualNodes(ignore, speedup=1.0)
        cell.live(nodes.life(threading.Event(), nothing_else))
        return cell

    def _jobs(self, arm: str, rng: np.random.Generator) -> Iterator[JobSpec]:
        """Yield as much work for each tenant as the whole cell can do, in a random order."""
        wanted = self.machines * CORES * (WARM_S + self.measured_s) * 2 // sum(TASK_S)
        tenants = rng.permutation(np.repeat(list(WEIGHTS), wanted)).tolist()
        lengths = rng.integers(TASK_S[0] * 1_000, TASK_S[1] * 1_000, len(tenants)).tolist()
        for number, (tenant, length_ms) in enumerate(zip(tenants, lengths, strict=True)):
            kinds = 1 if arm == ARMS[0] else KINDS_OF[tenant]
            yield JobSpec(
                name=f"{tenant}-{number}",
                scheduler=KINDS[number % kinds],
                tenant=tenant,
                groups=(TaskGroup(tasks=1, cpu_milli=1_000, duration_ms=length_ms),),
            )

    def show(self, findings: Findings) -> Table:
        """Return a line for each arm and gap."""
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("", "gap, ms", *MEASURES.values()):
            shown.add_column(header, justify="right" if header else "left")
        for row in findings.rows:
            told = (f"{row[name]:.1%} ± {row[f'{name}_sd']:.1%}" for name in MEASURES)
            shown.add_row(row["arm"], f"{row['gap_ms']:,}", *told)
        return shown

    def draw(self, findings: Findings) -> Picture:
        """Return each measure by gap, with bars over seeds."""
        cores = self.machines * CORES
        note = (
            f"{cores:,} cores, tasks of one core for {TASK_S[0]} to {TASK_S[1]} s; four tenants,"
            f" one of weight 2, with work for one, two or all of three kinds; order {self.order};"
            f" {self.measured_s} s of virtual time; bars: standard deviation over"
            f" {self.seeds} seeds. One task of {cores:,} cores is {5 / cores:.1%} of a fair share"
        )
        picture = Picture(findings.finding, columns=len(MEASURES), note=note)
        for panel, (measure, title) in zip(picture.panels.flat, MEASURES.items(), strict=True):
            for number, arm in enumerate(ARMS):
                mine = [row for row in findings.rows if row["arm"] == arm]
                points = [(row["gap_ms"], row[measure]) for row in mine]
                series(panel, number * 3, points, arm)
                panel.errorbar(
                    *zip(*points, strict=True),
                    yerr=[row[f"{measure}_sd"] for row in mine],
                    fmt="none",
                    ecolor=COLOURS[number * 3],
                    capsize=3,
                )
            steps(panel, self.gaps_ms)
            panel.set_ylim(bottom=0)
            panel.set_xlabel("gap between reads, ms")
            panel.set_ylabel(title)
        return picture


@dataclass(frozen=True)
class Sample:
    """What the cell was like at one moment."""

    off: tuple[float, ...]
    """By how much of its fair share each tenant had more; negative: less."""
    idle: float
    """The part of the cell that nobody used."""

    @classmethod
    def of(cls, used: Mapping[str, int], fair: Mapping[str, float], whole: int) -> "Sample":
        """Return what it was like if tenants used so much of the whole, and that was fair."""
        shares = {name: used.get(name, 0) / whole for name in fair}
        off = tuple(shares[name] / fair[name] - 1 for name in sorted(fair))
        return cls(off, 1 - sum(shares.values()))


def figures_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the MEASURES of a run."""
    off = np.concatenate([sample.off for sample in samples])
    return {
        "mean": float(np.abs(off).mean()),
        "rms": float(np.sqrt((off**2).mean())),
        "idle": float(np.mean([sample.idle for sample in samples])),
    }


def _schedulers(arm: str) -> Iterator[tuple[BatchScheduler, str]]:
    """Yield the schedulers of an arm, and the names of these replicas."""
    if arm == ARMS[0]:
        yield from ((BatchScheduler(), replica) for replica in "01")
        return
    for kind in KINDS:
        scheduler = BatchScheduler()
        scheduler.kind = kind
        yield scheduler, "0"


def _over_seeds(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    row: dict[str, float] = {}
    for name in MEASURES:
        values = [one[name] for one in found]
        row[name] = round(float(np.mean(values)), 5)
        row[f"{name}_sd"] = round(float(np.std(values)), 5)
    return row


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    told = []
    for arm in ARMS:
        first, *_, last = [row for row in rows if row["arm"] == arm]
        told.append(
            f"by {first['mean']:.1%} at a gap of {_seconds(first)} and {last['mean']:.1%}"
            f" at {_seconds(last)} with {arm}"
        )
    worst = max(row["idle"] for row in rows)
    return f"Shares are off the fair ones {', '.join(told)}; at most {worst:.1%} of the cell idles"


def _seconds(row: Mapping[str, Any]) -> str:
    return f"{row['gap_ms'] / 1_000:g} s"


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[int, typer.Option(min=1, max=1_000, metavar="N")] = 25,
    gaps: Annotated[
        str, typer.Option(metavar="LIST", help="OMEGA_SHARE_GAP_MS of the schedulers.")
    ] = "10,50,200,1000,3000,10000",
    measured: Annotated[
        int, typer.Option(min=10, max=3_600, metavar="S", help="Virtual time after a warm-up.")
    ] = 30,
    order: Annotated[QueueOrder, typer.Option(help="The order of the queue.")] = QueueOrder.DRF,
    seeds: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Runs of each.")] = 3,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """How far shares are from fair ones, by how seldom schedulers read what tenants use.

    Takes ten minutes.
    """
    benchmark = ShareGap(
        machines=machines,
        gaps_ms=numbers(gaps, option="--gaps", most=GAP_MS_MAX),
        measured_s=measured,
        order=order.value,
        seeds=seeds,
        seed=seed,
    )
    if smoke:
        benchmark = replace(benchmark, machines=3, gaps_ms=(50, 5_000), measured_s=10, seeds=1)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
