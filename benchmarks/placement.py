"""How fast schedulers decide: tasks placed per second on a local view, by size of jobs.

No database is used. The cell is the demonstration's, half taken. A job is placed and its claims are
tried on, as the loop does before a commit; then the view is reset for the next job.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, Final
from zlib import crc32

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers
from benchmarks.ratios import milliseconds
from omega.cell.view import View
from omega.clock import Clock
from omega.errors import InvariantBroken
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import Scheduler
from omega.model.arrays import every_kind
from omega.model.claims import Claims
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator, TaskGroup
from omega.model.machines import Catalogue, MachineRows, Snapshot
from omega.model.resources import GPU_SLICES
from omega.plots.picture import Picture, magnitudes, series, steps
from omega.terminal.progress import progress_bar
from omega.testing.builders import a_job
from omega.workload.demo_cell import GIB, demo_machines, demo_prefill

SHARE_TAKEN: Final = 0.5
CHURN_S: Final = 60.0
ROUNDS_MIN: Final = 3
MACHINES_MAX: Final = 200_000
TASKS_MAX: Final = 10_000
HEADLINE: Final = 10_000
"""Machines of the finding, if they were measured."""


@dataclass(frozen=True)
class Policy:
    """A scheduler, and the shape of its jobs' tasks."""

    kind: str
    group: TaskGroup
    is_gang: bool = False

    def job(self, tasks: int) -> LeasedJob:
        """Return a job of so many tasks."""
        spec = JobSpec(
            name="benchmark",
            scheduler=self.kind,
            groups=(replace(self.group, tasks=tasks),),
            minimum=tasks if self.is_gang else 0,
        )
        return a_job(spec=spec)


PLAIN: Final = TaskGroup(tasks=1, cpu_milli=1_000, memory_mib=4 * GIB)
ON_GPU: Final = replace(PLAIN, gpus=1)
IN_ZONE: Final = Constraint("zone", Operator.IN, ("zone-a",))
POLICIES: Final = {
    "random first fit": Policy("batch", PLAIN),
    "random first fit, one zone": Policy("batch", replace(PLAIN, constraints=(IN_ZONE,))),
    "best fit": Policy("service", PLAIN),
    "spread over zones": Policy("service", replace(PLAIN, spread_over="zone")),
    "best fit, different machines": Policy("service", replace(PLAIN, different_machines=True)),
    "gang, a GPU a task": Policy("ml-gpu", ON_GPU, is_gang=True),
    "half a GPU a task": Policy("ml-gpu", replace(ON_GPU, gpu_slices=GPU_SLICES // 2)),
}


class Case:
    """One policy and size of jobs on one view."""

    def __init__(self, policy: Policy, tasks: int, view: View) -> None:
        self._scheduler: Scheduler = find_scheduler(policy.kind)()
        self._job = policy.job(tasks)
        self._view = view

    def place(self, clock: Clock, rng: np.random.Generator) -> tuple[float, Claims]:
        """Place the job and try its claims on; return the seconds it took, and the claims."""
        with self._view.tentative():
            began = clock.now()
            claims = self._scheduler.place(self._view, self._job, rng)
            self._view.assume_claims(claims)
            took_s = clock.now() - began
        return took_s, claims

    def check(self, claims: Claims) -> None:
        """Raise InvariantBroken unless all tasks are placed, and on machines that have room."""
        with self._view.tentative():
            self._view.assume_claims(claims)
            fits = bool(every_kind(self._view.free >= 0).all())
        if set(claims.task.tolist()) != set(self._job.unplaced.tolist()) or not fits:
            raise InvariantBroken(f"{self._job.spec}: {len(claims)} claims, of which fit: {fits}")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The parameters of the benchmark."""

    machines: tuple[int, ...] = (1_000, 10_000, 100_000)
    tasks: tuple[int, ...] = (1, 10, 100, 1_000)
    seconds: float = 60.0
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Place jobs of all policies and sizes in turns, on each size of cell."""
        rows: list[dict[str, Any]] = []
        digest: dict[str, Any] = {}
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=len(self.machines))
            for machines in self.machines:
                progress.update(bar, description=f"{machines:,} machines")
                times_s, checksum = self._sample(stage, machines)
                rows += _rows(machines, times_s)
                digest[f"claims on {machines} machines, crc32"] = checksum
                progress.advance(bar)
        digest["tasks placed"] = sum(row["tasks"] * row["samples"] for row in rows)
        return Findings(self._finding(rows), rows, {"tasks_per_s": _by_policy(rows)}, digest)

    def show(self, findings: Findings) -> Table:
        """Return tasks per second: one line per policy and cell, one column per size of jobs."""
        title = "tasks placed a second, by tasks of a job"
        table = Table(box=None, pad_edge=False, header_style="bold", title=title)
        table.add_column("policy")
        table.add_column("machines", justify="right")
        for tasks in self.tasks:
            table.add_column(f"{tasks:,}", justify="right")
        for policy, machines in product(POLICIES, self.machines):
            rates = findings.summary["tasks_per_s"][policy].get(str(machines), {})
            told = (rates.get(str(tasks)) for tasks in self.tasks)
            table.add_row(
                policy,
                f"{machines:,}",
                *("no room" if rate is None else f"{rate:,.0f}" for rate in told),
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return tasks per second by the size of jobs, one panel per cell."""
        picture = Picture(
            findings.finding,
            columns=len(self.machines),
            note=f"one process on one core, on a view of a cell that is {SHARE_TAKEN:.0%} taken;"
            " medians",
        )
        for panel, machines in zip(picture.panels[0], self.machines, strict=True):
            for number, policy in enumerate(POLICIES):
                points = [
                    (row["tasks"], row["tasks_per_s"])
                    for row in findings.rows
                    if (row["machines"], row["policy"]) == (machines, policy)
                ]
                series(panel, number, points, policy)
            steps(panel, self.tasks)
            magnitudes(panel)
            panel.set_title(f"{machines:,} machines", fontsize=10)
            panel.set_xlabel("tasks of a job")
            panel.set_ylabel("tasks placed, 1/s")
        return picture

    def _sample(
        self, stage: Stage, machines: int
    ) -> tuple[Mapping[tuple[str, int], Sequence[float]], int]:
        """Place in turns until the time for this cell is up; return the times and a checksum.

        A job that does not fit the cell is left out. The checksum is of the first round, whose
        claims depend only on the seed.
        """
        view = _view(machines, np.random.default_rng([self.seed, machines]))
        cases = {
            (name, tasks): Case(policy, tasks, view)
            for (name, policy), tasks in product(POLICIES.items(), self.tasks)
        }
        times_s: dict[tuple[str, int], list[float]] = defaultdict(list)
        checksum = 0
        for key, case in list(cases.items()):
            _, claims = case.place(stage.clock, np.random.default_rng([self.seed, 0]))
            if len(claims) < key[1]:
                del cases[key]
                continue
            case.check(claims)
            checksum = crc32(claims.machine.tobytes(), checksum)
        rounds, until = 0, stage.clock.now() + self.seconds / len(self.machines)
        while rounds < ROUNDS_MIN or stage.clock.now() < until:
            stage.go_on()
            rounds += 1
            for key, case in cases.items():
                rng = np.random.default_rng([self.seed, rounds])
                times_s[key].append(case.place(stage.clock, rng)[0])
        return times_s, checksum

    def _finding(self, rows: Sequence[Mapping[str, Any]]) -> str:
        machines = HEADLINE if HEADLINE in self.machines else max(self.machines)
        small, large = (
            {
                row["policy"]: row["tasks_per_s"]
                for row in rows
                if (row["machines"], row["tasks"]) == (machines, tasks)
            }
            for tasks in (min(self.tasks), max(self.tasks))
        )
        first, slowest = next(iter(POLICIES)), min(small, key=small.__getitem__)
        return (
            f"On {machines:,} machines, {first} places {small[first]:,.0f} tasks a second in jobs"
            f" of {min(self.tasks):,} and {large[first]:,.0f} in jobs of {max(self.tasks):,};"
            f" {slowest}, the slowest, {small[slowest]:,.0f} in jobs of {min(self.tasks):,}"
        )


def _view(machines: int, rng: np.random.Generator) -> View:
    cell = demo_machines(machines, rng)
    taken = demo_prefill(cell, SHARE_TAKEN, churn_s=CHURN_S, rng=rng)
    catalogue, codes = Catalogue().encode(cell)
    rows = replace(MachineRows.empty(cell.capacity), used=taken.used(machines))
    return View(Snapshot(rows, cell.names, catalogue, codes, mark=0, generation=1))


def _rows(
    machines: int, times_s: Mapping[tuple[str, int], Sequence[float]]
) -> list[dict[str, Any]]:
    return [
        {
            "machines": machines,
            "policy": policy,
            "tasks": tasks,
            "tasks_per_s": round(tasks / float(np.median(taken)), 1),
            **milliseconds(taken),
            "samples": len(taken),
        }
        for (policy, tasks), taken in times_s.items()
    ]


def _by_policy(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return tasks per second by policy, machines and tasks of a job."""
    found: dict[str, Any] = {policy: {} for policy in POLICIES}
    for row in rows:
        of_cell = found[row["policy"]].setdefault(str(row["machines"]), {})
        of_cell[str(row["tasks"])] = row["tasks_per_s"]
    return found


def command(
    machines: Annotated[
        str, typer.Option(metavar="N,...", help="Machines of the cell.")
    ] = "1000,10000,100000",
    tasks: Annotated[str, typer.Option(metavar="N,...", help="Tasks of a job.")] = "1,10,100,1000",
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Tasks that schedulers place a second on a local view, by policy and size of jobs.

    Takes a minute.
    """
    benchmark = Placement(
        machines=numbers(machines, option="--machines", most=MACHINES_MAX),
        tasks=numbers(tasks, option="--tasks", most=TASKS_MAX),
        seed=seed,
    )
    if smoke:
        benchmark = Placement(machines=(60,), tasks=(1, 5), seconds=0.1, seed=seed)
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
