"""A cell shared by tenants in virtual time, beside the shares that are fair.

The scheduler processes, the queue, the rule and the nodes are those that run live, on a cell in
memory. A task takes a whole GPU. All tasks of a job run for the same time, which is drawn from an
exponential distribution.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Event as Flag
from typing import Any, Final

import numpy as np

from benchmarks.choosy_tenants import Constraints, Site, labelled, site
from omega.cell.view import View
from omega.config import Settings
from omega.errors import InvariantBroken
from omega.events import Event, TransactionJudged, ignore
from omega.framework.rng import rng_for
from omega.model.arrays import Counts, Mask, Score
from omega.model.jobs import Constraint, JobSpec, Operator, TaskGroup
from omega.model.lanes import QueueOrder
from omega.model.machines import Machines
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.ordering.cmmf import LaneDemands, fair_shares, pooled
from omega.ordering.tenants import TenantTree
from omega.placement.feasibility import matching
from omega.sim.virtual_cell import VirtualCell
from schedulers.batch import BatchScheduler

TASK_CPU_MILLI: Final = 500
TASK_MEMORY_MIB: Final = 1_024
"""So little that GPUs are the dominant resource on every machine, and run out first."""
RAMP_S_MAX: Final = 20.0
"""Task times after which a newcomer that is still below its share is given up."""
FEEDS_EVERY: Final = 4
"""How many gaps are between two moments at which tenants submit jobs."""
LABEL: Final = "newcomers"
NEWCOMER: Final = "newcomer"


@dataclass(frozen=True, kw_only=True)
class Play:
    """The parameters that all runs have in common."""

    order: str
    seed: int
    openb: Path | None
    philly: Path | None
    every: int
    task_s: float
    """Mean duration of a task: T of Choosy."""
    gap_s: float
    """How often schedulers read what tenants use."""
    replicas: int

    @cached_property
    def site(self) -> Site:
        """The machines and tenants."""
        return site(self.openb, self.philly, every=self.every)


@dataclass(frozen=True, kw_only=True)
class SharesPlay(Play):
    """A run that compares shares with the fair ones."""

    constraints: str
    """BY_TENANT or BY_JOB."""
    load: float
    lasts: float
    """In mean durations of a task, as are the next two."""
    ramp: float
    look: float


@dataclass(frozen=True, kw_only=True)
class RampPlay(Play):
    """A run in which newcomers arrive in a full cell, one after the other."""

    pickiness: float
    arrivals: int


BY_TENANT: Final = "by tenant"  # all jobs of a tenant have the same constraints
BY_JOB: Final = "by job"  # each job has constraints of its own


class TenantCell:
    """A virtual cell whose tenants keep so many tasks queued or running."""

    def __init__(self, play: Play, machines: Machines) -> None:
        self.play, self.machines = play, machines
        self.rng = rng_for(play.seed, "choosy")
        gap_ms = max(1, round(play.gap_s * 1_000))
        settings = Settings.model_construct(share_gap_ms=gap_ms)
        self.cell = VirtualCell(machines, seed=play.seed, settings=settings)
        self.store = self.cell.store
        self.tenant_of: list[str] = [""]
        """By job; jobs are numbered from 1."""
        self.placed = 0
        """How many tasks have been placed."""
        for number in range(play.replicas):
            scheduler = BatchScheduler()
            scheduler.queue_order = QueueOrder(play.order)
            self.cell.schedule(scheduler, str(number), sink=self._hear)
        self.cell.live(VirtualNodes(ignore, speedup=1.0).life(Flag(), nothing_else))

    def job(
        self, tenant: str, tasks: int, constraints: Constraints, *, ends: bool = True
    ) -> JobSpec:
        """Return a job whose tasks take a GPU each, for a time that is drawn."""
        lasts_ms = max(1, round(1_000 * self.rng.exponential(self.play.task_s)))
        group = TaskGroup(
            tasks=tasks,
            cpu_milli=TASK_CPU_MILLI,
            memory_mib=TASK_MEMORY_MIB,
            gpus=1,
            duration_ms=lasts_ms if ends else None,
            constraints=constraints,
        )
        return JobSpec(name="job", scheduler=BatchScheduler.kind, tenant=tenant, groups=(group,))

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Submit jobs; return their ids."""
        self.tenant_of += [spec.tenant for spec in specs]
        return self.store.submit(specs)

    def held(self) -> Counter[str]:
        """Return how many GPUs each tenant holds."""
        jobs, tasks = np.unique(self.store.allocations().job, return_counts=True)
        held: Counter[str] = Counter()
        for job, number in zip(jobs.tolist(), tasks.tolist(), strict=True):
            held[self.tenant_of[job]] += number
        return held

    def _hear(self, event: Event) -> None:
        if isinstance(event, TransactionJudged):
            self.placed += event.accepted

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.cell.run(self.cell.clock.now() + seconds)


def compare_shares(play: SharesPlay) -> Mapping[str, Any]:
    """Run a cell whose tenants always ask for more; return how far shares are from fair ones."""
    return _Comparison(play).run()


class _Comparison:
    """Tenants of a site that keep their part of the load queued or running."""

    def __init__(self, play: SharesPlay) -> None:
        self._play, self._site = play, play.site
        self._tenants = TenantCell(play, self._site.machines)
        rng, mix = self._tenants.rng, self._site.mix
        self._gpus = int(self._site.gpus.sum())
        self._wanted = [
            self._lanes(mix if play.constraints == BY_JOB else [mix[int(rng.integers(len(mix)))]])
            for _ in self._site.tenants
        ]
        """By tenant, how many tasks with which constraints it keeps queued or running."""
        self._reference = Reference(self._site.machines, self._site.tenants, self._site.gpus)
        self._looks: list[dict[str, Any]] = []

    def run(self) -> Mapping[str, Any]:
        """Run to the end; return the figures."""
        cell, play = self._tenants.cell, self._play
        cell.at(0.0, self._feed)
        cell.at(play.look * play.task_s, self._look)
        cell.run(play.lasts * play.task_s)
        cell.check()
        late = [look for look in self._looks if look["at"] >= play.ramp]
        relative = np.array([look["relative"] for look in late])
        return {
            "relative_mean": float(relative.mean()),
            "rms_p90": float(np.percentile([look["rms"] for look in late], 90)),
            "rms_mean": float(np.mean([look["rms"] for look in late])),
            "used_mean": float(np.mean([look["used"] for look in late])),
            "smallest_over_fair": float(np.mean([look["smallest"] for look in late])),
            "tasks_placed": self._tenants.placed,
            "looks": self._looks,
        }

    def _feed(self) -> None:
        """Submit jobs for tasks that have ended, and plan the next time."""
        cell, rng = self._tenants.cell, self._tenants.rng
        there: Counter[tuple[str, Constraints]] = Counter()
        for row in self._tenants.store.unfinished_tasks():
            there[row.tenant, row.shape.constraints] += row.running + row.waiting
        specs = []
        for tenant, sizes, wanted in zip(
            self._site.tenants, self._site.sizes, self._wanted, strict=True
        ):
            for constraints, tasks_min in wanted.items():
                lane = tenant, constraints
                while there[lane] < tasks_min:
                    tasks = int(rng.choice(sizes))
                    specs.append(self._tenants.job(tenant, tasks, constraints))
                    there[lane] += tasks
        if specs:
            self._tenants.submit([specs[at] for at in rng.permutation(len(specs))])
        cell.at(cell.clock.now() + FEEDS_EVERY * self._play.gap_s, self._feed)

    def _lanes(self, mix: Sequence[Constraints]) -> Counter[Constraints]:
        """Draw the constraints of a tenant's tasks; return how many tasks have which."""
        wanted = max(1, round(self._play.load * self._gpus / len(self._site.tenants)))
        drawn = self._tenants.rng.integers(len(mix), size=wanted)
        return Counter(mix[at] for at in drawn.tolist())

    def _look(self) -> None:
        """Compare the shares with the fair ones, and plan the next time."""
        cell = self._tenants.cell
        held = self._tenants.held()
        share = np.array([held[name] for name in self._site.tenants]) / self._gpus
        fair = self._reference.shares(self._tenants)
        gap, able = share - fair, fair > 0
        self._looks.append(
            {
                "at": round(cell.clock.now() / self._play.task_s, 3),
                "relative": float(np.mean(np.abs(gap[able]) / fair[able])),
                "rms": float(np.sqrt(np.mean(gap**2))),
                "used": float(share.sum()),
                "smallest": float((share[able] / fair[able]).min()),
                "share": share.round(5).tolist(),
                "fair": fair.round(5).tolist(),
            }
        )
        cell.at(cell.clock.now() + self._play.look * self._play.task_s, self._look)


class Reference:
    """The fair shares of GPUs, by the exact program, of what runs and waits at a moment."""

    def __init__(self, machines: Machines, tenants: Sequence[str], gpus: Counts) -> None:
        self._nodes = TenantTree().nodes(tenants)
        self._gpus = gpus[:, np.newaxis]
        self._machines = machines
        self._may_use: dict[Constraints, Mask] = {}

    def shares(self, tenants: TenantCell) -> Score:
        """Return the fair share of each tenant: (tenants,)."""
        tasks: Counter[tuple[int, Constraints]] = Counter()
        view = View(tenants.store.snapshot())
        for row in tenants.store.unfinished_tasks():
            constraints = row.shape.constraints
            if constraints not in self._may_use:
                self._may_use[constraints] = matching(view, row.shape)
            tasks[self._nodes.position[row.tenant], constraints] += row.running + row.waiting
        lanes = sorted(tasks, key=lambda lane: (lane[0], str(lane[1])))
        machines, may_use = pooled(
            self._gpus, np.array([self._may_use[constraints] for _, constraints in lanes])
        )
        demands = LaneDemands(
            tenant=np.array([tenant for tenant, _ in lanes], dtype=np.intp),
            demand=np.ones((len(lanes), 1), dtype=np.int64),
            tasks=np.array([tasks[lane] for lane in lanes], dtype=np.float64),
            may_use=may_use,
        )
        return fair_shares(demands, machines, self._nodes).share


def ramp_up(play: RampPlay) -> Mapping[str, Any]:
    """Let newcomers arrive in a full cell; return how long each took to get what it needs.

    It needs the given part of the machines that it may use, which are drawn at random. With so few
    tenants that is less than its fair share, if it is not very picky: if it were just that, others
    that have come to less by chance would be served before it in the end. Its own tasks do not end
    before it has got what it needs.
    """
    gpus = play.site.gpus
    shares = max(2, round(1 / play.pickiness))
    tenants = max(2, shares - 1)
    rng = rng_for(play.seed, "newcomers", str(play.pickiness))
    allowed = _some_machines(gpus, gpus.sum() / shares / play.pickiness, rng)
    cell = TenantCell(play, labelled(play.site.machines, LABEL, allowed.tolist()))
    wanted = int(play.pickiness * int(gpus[allowed].sum()) + 1e-9)
    others = [f"tenant-{number}" for number in range(1, tenants)]
    _keep_full(cell, others, int(gpus.sum()))
    cell.run(0.2 * play.task_s)
    took = [_arrive(cell, wanted) for _ in range(play.arrivals)]
    cell.cell.check()
    return {
        "tenants": tenants,
        "allowed": int(gpus[allowed].sum()),
        "wanted": wanted,
        "took": [round(one / play.task_s, 5) for one in took],
        "tasks_placed": cell.placed,
    }


def _arrive(cell: TenantCell, wanted: int) -> float:
    """Let a newcomer arrive, get its share and leave; return how many seconds it took."""
    play, store = cell.play, cell.store
    began_s = cell.cell.clock.now()
    constraints = (Constraint(LABEL, Operator.IN, ("yes",)),)
    specs = [cell.job(NEWCOMER, 1, constraints, ends=False) for _ in range(wanted)]
    jobs = cell.submit(specs)
    while cell.held()[NEWCOMER] < wanted:
        if cell.cell.clock.now() - began_s > RAMP_S_MAX * play.task_s:
            raise InvariantBroken(f"a newcomer has not got {wanted} GPUs in {RAMP_S_MAX:g} T")
        cell.run(play.task_s / 20)
    live = store.allocations()
    took_s = float(live.started_ms[np.isin(live.job, jobs)].max()) / 1_000 - began_s
    for job in jobs:
        store.cancel(job)
    cell.run(0.2 * play.task_s)
    return took_s


def _keep_full(cell: TenantCell, tenants: Sequence[str], gpus: int) -> None:
    """Keep the queues of tenants so full that no GPU stays idle; do so again every gap."""
    waiting: Counter[str] = Counter()
    for row in cell.store.unfinished_tasks():
        waiting[row.tenant] += row.waiting
    backlog = max(8, gpus // 4) if len(cell.tenant_of) > 1 else 2 * gpus // len(tenants)
    specs = [cell.job(name, 1, ()) for name in tenants for _ in range(backlog - waiting[name])]
    if specs:
        cell.submit(specs)
    now_s = cell.cell.clock.now()
    cell.cell.at(now_s + cell.play.task_s / 20, lambda: _keep_full(cell, tenants, gpus))


def _some_machines(gpus: Counts, wanted: float, rng: np.random.Generator) -> Mask:
    """Return machines drawn at random that have so many GPUs, or a few less."""
    chosen = np.zeros(len(gpus), dtype=np.bool_)
    have = 0
    for at in rng.permutation(len(gpus)).tolist():
        if have + gpus[at] <= wanted + 1e-9:
            chosen[at] = True
            have += int(gpus[at])
    return chosen
