"""The share of a cell's GPUs that is allocated before jobs find no room, by placement policy.

Pods of the trace openb, drawn with replacement, arrive one after the other and stay, until so many
of them have failed. The compared policy places pods with GPUs; best fit places all others. The
trace has the pods twice: without constraints on GPU models, and with those that a third of the pods
with GPUs have. No database is used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final
from zlib import crc32

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, numbers
from omega.cell.demand import NO_DEMAND
from omega.cell.view import View
from omega.clock import Clock
from omega.errors import BadInput, InvariantBroken
from omega.framework.signal_tracker import SignalTracker
from omega.model.arrays import every_kind
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.machines import Catalogue, MachineRows, Snapshot
from omega.model.resources import DEVICES
from omega.placement.fragmentation import TypicalTasks, place_alone
from omega.plots.picture import Picture, bars, series, steps
from omega.terminal.progress import progress_bar
from omega.testing.builders import a_job
from omega.workload.arrivals import Workload
from omega.workload.traces.openb import OPENB
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.service import ServiceScheduler

Place = Callable[[View, LeasedJob, np.random.Generator], Claims]
FAILED_MAX: Final = 5_000
ORDERS_MAX: Final = 100
POLICIES: Final = (
    "least fragmentation, shapes known",
    "least fragmentation, shapes guessed",
    "the paper's, by loss alone",
    "best fit",
    "packing",
    "draw",
    "random",
)
OURS, GUESSED, PAPER, BEST_FIT, PACKING, DRAW, RANDOM = POLICIES
DEFAULT: Final = "default"
LISTS: Final = (DEFAULT, "gpuspec33")
"""The trace's lists of pods; in the second one pods have constraints on GPU models."""


@dataclass(frozen=True)
class Filled:
    """The result of one order of jobs under one policy."""

    placed: int
    slices: Mapping[int, int]
    """GPU slices allocated, by the number of failed jobs."""
    took_us: float
    """Median time of a decision on a job with GPUs, in microseconds."""
    checksum: int


@dataclass(frozen=True, kw_only=True)
class Fragmentation:
    """The parameters of the benchmark."""

    failed: tuple[int, ...] = (1, 10, 100, 500)
    orders: int = 10
    seed: int = 0
    trace: Path | None = field(default=None, repr=False)
    """The folder of the trace openb."""

    def measure(self, stage: Stage) -> Findings:
        """Fill the cell by each policy, with the same jobs in each of several orders."""
        if self.trace is None:
            raise BadInput(f"name the folder of the trace {OPENB.name}", field="--trace")
        rows: list[dict[str, Any]] = []
        checksum = 0
        for pods in LISTS:
            cell = OPENB.load(self.trace, np.random.default_rng(self.seed), pods=pods)
            for row, machines in self._fill(pods, cell, stage):
                rows.append(row)
                checksum = crc32(machines.to_bytes(4), checksum)
        digest = {"jobs placed": sum(row["placed"] for row in rows), "machines, crc32": checksum}
        summary = _summary(rows, self.failed)
        return Findings(_finding(summary, self.failed), rows, summary, digest)

    def _fill(
        self, pods: str, cell: Workload, stage: Stage
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield a row for each order and policy, and a checksum of the machines claimed."""
        jobs = [
            a_job(spec=arrival.spec, job=n + 1, waited_ms=0)
            for n, arrival in enumerate(cell.arrivals)
        ]
        places = policies(jobs)
        total = int(cell.machines.capacity[:, DEVICES].sum())
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=self.orders * len(POLICIES))
            for order in range(self.orders):
                for policy in POLICIES:
                    progress.update(bar, description=f"{pods}: {policy}, order {order + 1}")
                    rng = np.random.default_rng([self.seed, order])
                    filled = fill(
                        _empty(cell),
                        _drawn(jobs, rng, stage),
                        places[policy],
                        self.failed,
                        stage.clock,
                        np.random.default_rng([self.seed, order, 1]),
                        learns=policy not in (PAPER, RANDOM),
                    )
                    yield _row(pods, policy, order, filled, total), filled.checksum
                    progress.advance(bar)

    def show(self, findings: Findings) -> Table:
        """Return the share of GPU slices allocated, and the time of a decision."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("GPU slices allocated when so many have failed", no_wrap=True)
        for failed in self.failed:
            table.add_column(f"{failed:,}", justify="right")
        table.add_column("us", justify="right")
        for pods in LISTS:
            for policy, told in findings.summary["allocated"][pods].items():
                took_us = findings.summary["decision_us"][pods][policy]
                shares = (f"{told[str(failed)]['median']:.1%}" for failed in self.failed)
                table.add_row(f"{pods}: {policy}", *shares, f"{took_us:,.0f}")
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the share allocated over the number of failed jobs, and the decision times."""
        picture = Picture(
            findings.finding,
            columns=3,
            note=f"pods of openb drawn with replacement, {self.orders} orders: medians",
        )
        *lists, right = picture.panels[0]
        for panel, pods in zip(lists, LISTS, strict=True):
            for number, (policy, told) in enumerate(findings.summary["allocated"][pods].items()):
                points = [(failed, told[str(failed)]["median"] * 100) for failed in self.failed]
                series(panel, number, points, policy)
            steps(panel, self.failed)
            panel.set_xlabel(f"jobs that found no room, list {pods}")
            panel.set_ylabel("GPU slices allocated, %")
        low = min(low for policy, low in _lowest(findings) if policy != RANDOM)
        lists[0].set_ylim(bottom=low - 1)
        times = findings.summary["decision_us"]
        bars(right, list(POLICIES), {pods: list(times[pods].values()) for pods in LISTS})
        right.set_xlabel("microseconds a decision")
        return picture


def _lowest(findings: Findings) -> Iterator[tuple[str, float]]:
    """Yield (policy, least median share in per cent) of the list without constraints."""
    for policy, told in findings.summary["allocated"][DEFAULT].items():
        yield policy, min(shares["median"] for shares in told.values()) * 100


def policies(jobs: Sequence[LeasedJob]) -> Mapping[str, Place]:
    """Return the functions that place jobs with GPUs; "shapes known" means those of `jobs`."""
    known = TypicalTasks.of(group for job in jobs for group in job.spec.groups)
    return {
        OURS: MlGpuScheduler(known).place,
        GUESSED: MlGpuScheduler().place,
        PAPER: partial(_place_alone, typical=replace(known, wanted=NO_DEMAND), nearly=0.0),
        BEST_FIT: ServiceScheduler().place,
        PACKING: MlGpuScheduler(None).place,
        DRAW: BatchScheduler().place,
        RANDOM: BatchScheduler().place,
    }


def fill(
    view: View,
    jobs: Iterator[LeasedJob],
    place: Place,
    failures: Sequence[int],
    clock: Clock,
    rng: np.random.Generator,
    *,
    learns: bool = True,
) -> Filled:
    """Place jobs until the last of these failures; raise InvariantBroken if a machine is oversold.

    A job fails if it finds no room, with GPUs or without. If it `learns`, the view has the signals
    of a scheduler that has seen all jobs so far.
    """
    others = ServiceScheduler().place
    tracker = SignalTracker(clock) if learns else None
    allocated, took_us, checksum = {}, [], 0
    failed = placed = slices = 0
    with view.tentative():
        for job in jobs:
            has_gpus = job.spec.groups[0].gpus > 0
            began = clock.now()
            if tracker is not None:
                view.signals = tracker.signals(view, [job])
            claims = (place if has_gpus else others)(view, job, rng)
            if has_gpus:
                took_us.append((clock.now() - began) * 1e6)
            if len(claims):
                placed += 1
                slices += int(claims.demand[:, DEVICES].sum())
                view.assume_claims(claims)
                checksum = crc32(claims.machine.tobytes(), checksum)
                continue
            failed += 1
            if failed in failures:
                allocated[failed] = slices
            if failed >= max(failures):
                break
        if not every_kind(view.free >= 0).all():
            raise InvariantBroken("a policy gave away more than there is")
    return Filled(placed, allocated, median(took_us), checksum)


def _place_alone(
    view: View, job: LeasedJob, rng: np.random.Generator, *, typical: TypicalTasks, nearly: float
) -> Claims:
    return place_alone(view, job, typical, rng, nearly=nearly)


def _drawn(
    jobs: Sequence[LeasedJob], rng: np.random.Generator, stage: Stage
) -> Iterator[LeasedJob]:
    while True:
        stage.go_on()
        for at in rng.integers(len(jobs), size=1_000).tolist():
            yield jobs[at]


def _empty(cell: Workload) -> View:
    catalogue, codes = Catalogue().encode(cell.machines)
    rows = MachineRows.empty(cell.machines.capacity)
    return View(Snapshot(rows, cell.machines.names, catalogue, codes, mark=0, generation=1))


def _row(pods: str, policy: str, order: int, filled: Filled, total: int) -> dict[str, Any]:
    shares = {str(failed): round(n / total, 5) for failed, n in filled.slices.items()}
    return {
        "pods": pods,
        "policy": policy,
        "order": order,
        "placed": filled.placed,
        "allocated": shares,
        "decision_us": round(filled.took_us, 1),
    }


def _summary(rows: Sequence[Mapping[str, Any]], failures: Sequence[int]) -> dict[str, Any]:
    """Return by list medians over the orders, and in how many orders a policy beats best fit."""
    by_list = {
        pods: _of_list([row for row in rows if row["pods"] == pods], failures) for pods in LISTS
    }
    return {
        what: {pods: told[what] for pods, told in by_list.items()}
        for what in ("allocated", "more_than_best_fit", "decision_us")
    }


def _of_list(rows: Sequence[Mapping[str, Any]], failures: Sequence[int]) -> dict[str, Any]:
    of = {policy: [row for row in rows if row["policy"] == policy] for policy in POLICIES}
    shares = {
        policy: {str(n): [row["allocated"][str(n)] for row in mine] for n in failures}
        for policy, mine in of.items()
    }
    return {
        "allocated": {
            policy: {
                n: {"median": round(median(s), 5), "least": min(s), "greatest": max(s)}
                for n, s in told.items()
            }
            for policy, told in shares.items()
        },
        "more_than_best_fit": {
            policy: {
                n: sum(a > b for a, b in zip(s, shares[BEST_FIT][n], strict=True))
                for n, s in told.items()
            }
            for policy, told in shares.items()
        },
        "decision_us": {
            policy: round(median(row["decision_us"] for row in mine), 1)
            for policy, mine in of.items()
        },
    }


def _finding(summary: Mapping[str, Any], failures: Sequence[int]) -> str:
    def told(pods: str, policy: str) -> str:
        shares = summary["allocated"][pods][policy]
        return ", ".join(f"{shares[str(n)]['median']:.1%}" for n in failures)

    counted = ", ".join(f"{n:,}" for n in failures)
    constrained = LISTS[1]
    return (
        f"When {counted} jobs have found no room, least fragmentation has allocated"
        f" {told(DEFAULT, OURS)} of the GPU slices, best fit {told(DEFAULT, BEST_FIT)};"
        f" with constraints on GPU models {told(constrained, OURS)}, random"
        f" {told(constrained, RANDOM)}"
    )


def command(
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the trace openb.")
    ] = None,
    failed: Annotated[
        str, typer.Option(metavar="N,...", help="Jobs without room after which to look.")
    ] = "1,10,100,500",
    orders: Annotated[
        int, typer.Option(min=1, max=ORDERS_MAX, metavar="N", help="Of the jobs, drawn.")
    ] = 10,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """GPU slices allocated when jobs begin to find no room, by policy: the fragments left over.

    Needs the folder of the trace openb (--trace). Takes a quarter of an hour.
    """
    benchmark = Fragmentation(
        failed=numbers(failed, option="--failed", most=FAILED_MAX),
        orders=orders,
        seed=seed,
        trace=trace,
    )
    if smoke:
        benchmark = replace(benchmark, failed=(1, 5), orders=2)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
