"""The same rounds in virtual time: the same schedulers and nodes, on a cell in memory.

Only waiting takes time here. The difference from the live run is the cost of processes and server.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

import numpy as np

from benchmarks.postgres.rounds import Intervals
from benchmarks.shares import compared
from omega.errors import InvariantBroken
from omega.events import TransactionJudged, ignore
from omega.framework.registry import find_scheduler
from omega.model.jobs import JobSpec
from omega.model.machines import Machines
from omega.nodes.stepper import StepRates
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.virtual import VirtualProcess
from omega.sim.virtual_cell import VirtualCell
from omega.store.rounds import Round
from schedulers.ml_gpu.gang_rates import TableRates
from schedulers.ml_gpu.throughputs import Throughputs

STEP_S: Final = 0.05
LENGTH_S_MAX: Final = 3_600.0
"""Longest round."""
SILENT_ROUNDS_MAX: Final = 10
"""Time limit without a new round, in longest rounds."""


@dataclass(frozen=True, kw_only=True)
class Play:
    """The parameters of the run."""

    cell: Machines
    machines: Sequence[int]
    """Machines of each type."""
    training: Sequence[JobSpec]
    kind: str
    settings: Mapping[str, str]
    """Settings of the scheduler by rounds."""
    rates: Throughputs
    others: Sequence[str]
    other: Callable[[int], JobSpec]
    others_per_s: float
    rounds: int
    kill_after: int
    seed: int


def in_virtual_time(play: Play) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run all rounds; return the result of `compared` on them."""
    stage = _Stage(play)
    stage.run()
    ran = stage.intervals()  # before `memo` advances the clock
    plan = stage.memo()["plan"]
    return compared(ran, stage.commits, plan, stage.ids, machines=play.machines)


class _Stage:
    """A virtual cell, its schedulers and nodes, and their commits."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._cell = VirtualCell(play.cell, seed=play.seed)
        self._fed = 0
        self._ran: list[tuple[float, np.ndarray[Any, np.dtype[np.int64]]]] = []
        self.commits: dict[str, list[dict[str, Any]]] = {play.kind: []}
        self.commits |= {kind: [] for kind in play.others}
        self.ids = self._cell.store.submit(play.training)
        self._replicas = {name: self._begin(play.kind, name) for name in "ab"}
        for kind in play.others:
            self._begin(kind, "0")
        nodes = VirtualNodes(ignore, speedup=1.0, rates=StepRates(model=TableRates(play.rates)))
        self._cell.live(nodes.life(Event(), nothing_else))

    def run(self) -> None:
        """Advance virtual time until all rounds are done."""
        rounds = self.commits[self._play.kind]
        while len(rounds) <= self._play.rounds:
            if self._cell.clock.now() > (len(rounds) + SILENT_ROUNDS_MAX) * LENGTH_S_MAX:
                raise InvariantBroken(f"no round has begun after round {len(rounds)}")
            self._cell.run(self._cell.clock.now() + STEP_S)
        self._cell.check()

    def memo(self) -> dict[str, Any]:
        """Return the memo of the last round."""
        while True:
            begun = self._cell.store.begin_round(self._play.kind, holder="end", length_ms=0)
            if isinstance(begun, Round):
                return dict(begun.memo)
            self._cell.run(self._cell.clock.now() + begun.due_in_ms / 1_000)

    def intervals(self) -> Intervals:
        """Return where tasks ran from each round to the next."""
        parts = []
        ends = [at for at, _ in self._ran[1:]] + [self._cell.clock.now()]
        for (began_s, rows), ended_s in zip(self._ran, ends, strict=True):
            length = len(rows)
            parts.append((rows, np.full(length, began_s), np.full(length, ended_s)))
        rows = np.concatenate([rows for rows, _, _ in parts])
        return Intervals(
            rows[:, 0],
            rows[:, 1],
            rows[:, 2],
            np.concatenate([began for _, began, _ in parts]),
            np.concatenate([ended for _, _, ended in parts]),
        )

    def _begin(self, kind: str, replica: str) -> VirtualProcess:
        settings = self._play.settings if kind == self._play.kind else {}
        scheduler = find_scheduler(kind).configured(settings)
        return self._cell.schedule(
            scheduler, replica, sink=lambda event: self._take(replica, event)
        )

    def _feed(self) -> None:
        """Submit the next job of the others, and plan the next submission."""
        now_s = self._cell.clock.now()
        self._cell.submit(now_s, [self._play.other(self._fed)])
        self._fed += 1
        self._cell.at(now_s + 1 / self._play.others_per_s, self._feed)

    def _take(self, replica: str, event: object) -> None:
        if not isinstance(event, TransactionJudged):
            return
        now_s = self._cell.clock.now()
        if event.scheduler == self._play.kind:
            live = self._cell.store.allocations_of(self.ids)
            rows = np.column_stack([live.job, live.task, live.machine])
            self._ran.append((now_s, rows))
            number = len(self._ran)
            if number == 1 and self._play.others_per_s:
                self._feed()
            if number == self._play.kill_after:
                self._cell.at(now_s, self._replicas[replica].kill)
        self.commits[event.scheduler].append(
            {
                "at_s": now_s,
                "replica": replica,
                "granted": event.accepted,
                "refused": sum(event.refused.values()),
                "evicted": event.evicted,
            }
        )
