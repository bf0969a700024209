"""The same rounds in virtual time: the same schedulers and nodes, on a cell in memory.

Each process is asked for a step at every tick, in an order drawn anew. Nobody waits for anybody,
and nothing takes time: what differs from the live run is what its processes and its server cost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final
from uuid import UUID

import numpy as np

from benchmarks.postgres.rounds import Intervals
from benchmarks.shares import compared
from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import InvariantBroken
from omega.events import TransactionJudged, ignore
from omega.framework.patience import Patience
from omega.framework.registry import find_scheduler
from omega.framework.runner import SchedulerProcess
from omega.model.jobs import JobSpec
from omega.model.machines import Machines
from omega.nodes.live import LiveNodes
from omega.nodes.trainer import TrainingRates
from omega.store.memory import MemoryStore
from omega.workload.throughputs import Throughputs

TICK_S: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Play:
    """What is played."""

    cell: Machines
    machines: Sequence[int]
    """Of each type."""
    training: Sequence[JobSpec]
    kind: str
    settings: Mapping[str, str]
    """Of the scheduler by rounds."""
    rates: Throughputs
    others: Sequence[str]
    other: Callable[[int], JobSpec]
    others_per_s: float
    rounds: int
    kill_after: int
    seed: int


def in_virtual_time(play: Play) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Play all rounds; return what `compared` makes of them."""
    stage = _Stage(play)
    stage.run()
    if violations := stage.store.verify():
        raise InvariantBroken("the cell is broken", story=[str(v) for v in violations[:20]])
    ran = stage.intervals()  # before the clock moves on for the last memo
    plan = stage.memo()["plan"]
    return compared(ran, stage.commits, plan, stage.ids, machines=play.machines)


class _Stage:
    """A cell in memory and everybody on it."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._clock = ManualClock()
        self._chance = np.random.default_rng(play.seed)
        self.store = MemoryStore(self._clock, new_token=self._new_id)
        self.store.add_machines(play.cell)
        self.ids = self.store.submit(play.training)
        self.commits: dict[str, list[dict[str, Any]]] = {play.kind: []}
        self.commits |= {kind: [] for kind in play.others}
        self._ran: list[tuple[float, np.ndarray[Any, np.dtype[np.int64]]]] = []
        self._rounds = [self._process(play.kind, name) for name in "ab"]
        self._others = [self._process(kind, "0") for kind in play.others]
        patience = Patience(self._clock, ignore, Settings(), self._chance, Event())
        self._nodes = LiveNodes(
            self.store,
            self._clock,
            ignore,
            patience,
            speedup=1.0,
            rates=TrainingRates(table=play.rates),
        )

    def run(self) -> None:
        """Let everybody take steps until all rounds are played."""
        play, fed, began_s = self._play, 0, self._clock.now()
        while len(self.commits[play.kind]) <= play.rounds:
            number = len(self.commits[play.kind])
            if number <= 1:
                began_s = self._clock.now()
            due = int((self._clock.now() - began_s) * play.others_per_s) - fed
            self.store.submit([play.other(fed + nth) for nth in range(max(0, due))])
            fed += max(0, due)
            self._nodes.step(self.store.now_ms())
            if play.kill_after and number == play.kill_after and len(self._rounds) > 1:
                dead = self.commits[play.kind][-1]["replica"]
                self._rounds = [one for one in self._rounds if one.replica != dead]
            everybody: list[SchedulerProcess] = [*self._rounds, *self._others]
            for at in self._chance.permutation(len(everybody)).tolist():
                everybody[at].step()
            self._clock.advance(TICK_S)

    def memo(self) -> dict[str, Any]:
        """Return what the last round noted."""
        begun = self.store.begin_round(self._play.kind, holder="end", length_ms=0)
        memo = getattr(begun, "memo", None)
        if memo is None:
            self._clock.advance(1e6)
            return self.memo()
        return dict(memo)

    def intervals(self) -> Intervals:
        """Return who ran where from each round to the next."""
        parts = []
        ends = [at for at, _ in self._ran[1:]] + [self._clock.now()]
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

    def _process(self, kind: str, replica: str) -> SchedulerProcess:
        settings = self._play.settings if kind == self._play.kind else {}
        return SchedulerProcess(
            scheduler=find_scheduler(kind).configured(settings),
            store=self.store,
            open_store=lambda: self.store,
            clock=self._clock,
            settings=Settings(),
            sink=lambda event: self._take(replica, event),
            replica=replica,
            run_seed=self._play.seed,
            stop=Event(),
            new_id=self._new_id,
        )

    def _take(self, replica: str, event: object) -> None:
        if not isinstance(event, TransactionJudged):
            return
        if event.scheduler == self._play.kind:
            live = self.store.allocations_of(self.ids)
            rows = np.column_stack([live.job, live.task, live.machine])
            self._ran.append((self._clock.now(), rows))
        self.commits[event.scheduler].append(
            {
                "at_s": self._clock.now(),
                "replica": replica,
                "granted": event.accepted,
                "refused": sum(event.refused.values()),
                "evicted": event.evicted,
            }
        )

    def _new_id(self) -> UUID:
        return UUID(bytes=self._chance.bytes(16))
