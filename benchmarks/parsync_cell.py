"""A cell shared by ParSync's schedulers in virtual time, with the figures of each phase of load.

The schedulers, the loop, the rule and the nodes are those that run live, on a cell in memory. Each
scheduler has a queue of its own and decides on one job at a time, whose tasks are those that arrive
in one tick. A decision takes so long that a scheduler can try a little more than its nominal rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event as Flag
from typing import Any, Final

import numpy as np

from omega.config import Settings
from omega.events import Event, TransactionJudged, ignore
from omega.framework.scheduler import DecisionTime
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import machine_capacity
from omega.nodes.virtual import STEP_S, VirtualNodes, nothing_else
from omega.sim.virtual_cell import VirtualCell
from omega.sync.choice import Sync
from omega.sync.turns import Turn
from schedulers.parsync import ParSyncScheduler, scores

GROUPS: Final = "AB"
SLOT_MILLI: Final = 1_000
TASK_S: Final = 5.0
SPEED: Final = 1.25
"""Rate at which a scheduler can try tasks, relative to its nominal rate."""
LAST: Final = 0.2
"""Share of a phase, at its end, over which delays are averaged."""
LOOKS_EVERY_S: Final = 2.0
"""Interval of the reads of new allocations: shorter than any task."""

WHOLE: Final = "whole"  # all read the whole cell once per gap; there are no parts to choose
AT_ONCE: Final = "at once"  # likewise, but parts are chosen: StateSync
SAME: Final = "same"  # all read the same part in a round
APART: Final = "apart"  # each reads a different part in a round: ParSync


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The size of a cell, and of the load that fills it."""

    schedulers: int = 20
    slots: int = 10_000
    parts: int = 40
    gap_s: float = 1.0
    tasks: int = 5
    """Tasks of a job: those that arrive in a tick at the nominal rate."""

    @property
    def nominal_per_s(self) -> float:
        """Tasks per second of each scheduler at which all together fill the cell."""
        return self.slots / TASK_S / self.schedulers


@dataclass(frozen=True, kw_only=True)
class Play:
    """The parameters of one run."""

    strategy: str
    reads: str
    scale: Scale
    loads: tuple[tuple[float, float], ...]
    """Load of groups A and B in each phase, as shares of the nominal rate."""
    phase_s: float
    seed: int
    learn: bool = True
    score: str = "machine"
    threshold_s: float = 1.5

    def turn(self, number: int) -> Turn:
        """Return the turn of a scheduler, by which it reads."""
        if self.reads == WHOLE:
            return Turn(gap_s=self.scale.gap_s)
        if self.reads == AT_ONCE:
            return Turn(gap_s=self.scale.gap_s, parts=self.scale.parts)
        number = 0 if self.reads == SAME else number
        return Turn(number, self.scale.schedulers, self.scale.gap_s, self.scale.parts)


def play(one: Play) -> Mapping[str, Any]:
    """Run one simulation to its end; return one row per phase and group."""
    return {"phases": _Stage(one).run()}


@dataclass
class _Count:
    """The numbers of claims of a group in a phase."""

    claims: int = 0
    refused: int = 0


@dataclass
class _Stage:
    """A virtual cell, its schedulers and its jobs."""

    play: Play
    _submitted_s: list[float] = field(default_factory=lambda: [0.0])
    """Time of submission, by job; jobs are numbered from 1."""
    _group: list[int] = field(default_factory=lambda: [0])
    """Group of the scheduler, by job."""
    _started: list[Any] = field(default_factory=list)
    _mark: int = 0

    def __post_init__(self) -> None:
        scale = self.play.scale
        capacity = np.tile(machine_capacity(SLOT_MILLI, 0, 0, 0), (scale.slots, 1))
        names = tuple(f"slot-{number}" for number in range(scale.slots))
        tick_ms = round(1_000 * scale.tasks / scale.nominal_per_s)
        settings = Settings(
            losers_first=True,
            jobs_per_lease_max=1,
            poll_interval_ms=max(1, tick_ms // 2),
            backoff_initial_ms=max(1, tick_ms),
        )
        cell = Machines(names, capacity, {})
        self._cell = VirtualCell(cell, seed=self.play.seed, settings=settings)
        self._counts = [[_Count() for _ in GROUPS] for _ in self.play.loads]

    def run(self) -> list[dict[str, Any]]:
        """Run all phases; return the rows."""
        rng = np.random.default_rng(self.play.seed)
        tick_s = self.play.scale.tasks / self.play.scale.nominal_per_s
        for number in range(self.play.scale.schedulers):
            self._begin(number, first_s=float(rng.uniform(0, tick_s)))
        nodes = VirtualNodes(ignore, speedup=1.0)
        self._cell.live(nodes.life(Flag(), nothing_else))
        self._cell.at(LOOKS_EVERY_S, self._look)
        self._cell.run(len(self.play.loads) * self.play.phase_s)
        self._look()
        self._cell.check()
        return self._rows()

    def _begin(self, number: int, *, first_s: float) -> None:
        scale, group = self.play.scale, number % len(GROUPS)
        scheduler = ParSyncScheduler.configured(
            {
                "strategy": self.play.strategy,
                "learn": str(self.play.learn),
                "score": self.play.score,
                "threshold": str(self.play.threshold_s),
            }
        )
        scheduler.kind = f"parsync-{number}"
        self._cell.schedule(
            scheduler,
            "0",
            sync=Sync.PARTITIONED,
            turn=self.play.turn(number),
            decision_time=DecisionTime(task_s=1 / (SPEED * scale.nominal_per_s)),
            sink=partial(self._hear, group),
        )
        # Nodes end tasks in steps, half a step late on average: slots are held for TASK_S.
        lasts_ms = round((TASK_S - STEP_S / 2) * 1_000)
        tasks = TaskGroup(tasks=scale.tasks, cpu_milli=SLOT_MILLI, duration_ms=lasts_ms)
        job = JobSpec(name="tick", scheduler=scheduler.kind, groups=(tasks,))
        self._cell.at(first_s, partial(self._feed, job, group))

    def _feed(self, job: JobSpec, group: int) -> None:
        """Submit a job, and plan the next submission."""
        now_s = self._cell.clock.now()
        self._cell.store.submit([job])
        self._submitted_s.append(now_s)
        self._group.append(group)
        rate = self.play.loads[self._phase()][group] * self.play.scale.nominal_per_s
        self._cell.at(now_s + self.play.scale.tasks / rate, partial(self._feed, job, group))

    def _phase(self) -> int:
        now = int(self._cell.clock.now() / self.play.phase_s)
        return min(now, len(self.play.loads) - 1)

    def _hear(self, group: int, event: Event) -> None:
        if isinstance(event, TransactionJudged):
            count, refused = self._counts[self._phase()][group], sum(event.refused.values())
            count.claims += event.accepted + refused
            count.refused += refused

    def _look(self) -> None:
        """Record the tasks that have started since the last call, and plan the next call."""
        heard, self._mark = self._cell.store.allocations_since(self._mark)
        self._started.append(np.column_stack([heard.job, heard.machine, heard.started_ms]))
        self._cell.at(self._cell.clock.now() + LOOKS_EVERY_S, self._look)

    def _rows(self) -> list[dict[str, Any]]:
        job, machine, started_ms = np.concatenate(self._started).T
        delay_s = started_ms / 1_000 - np.array(self._submitted_s)[job]
        group, quality = integers(self._group)[job], scores(machine, 0)
        in_phases = started_ms / 1_000 / self.play.phase_s
        rows = []
        for phase, counts in enumerate(self._counts):
            for number, count in enumerate(counts):
                mine = (group == number) & (in_phases >= phase) & (in_phases < phase + 1)
                late = mine & (in_phases >= phase + 1 - LAST)
                rows.append(
                    {
                        "phase": phase + 1,
                        "group": GROUPS[number],
                        "load": self.play.loads[phase][number],
                        "placed": int(mine.sum()),
                        "claims": count.claims,
                        "conflict_fraction": count.refused / max(1, count.claims),
                        "delay_s": _mean(delay_s[late]),
                        "quality": _mean(quality[mine]),
                        "quality_sd": float(quality[mine].std()) if mine.any() else None,
                    }
                )
        return rows


def _mean(values: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    """Return the mean; None without values."""
    return float(values.mean()) if len(values) else None


def loads_of_all(shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return phases in which both groups have the same load."""
    return tuple((share, share) for share in shares)
