"""A memory store in virtual time, and the processes that work on it.

Goal     Run any mix of live schedulers and nodes in virtual time, in a few lines.
Promise  The processes are those of `omega.framework`. The cell is a memory store with the rule that
         Postgres is tested against. The same seed gives the same run.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from omega.config import Settings
from omega.errors import InvariantBroken
from omega.events import Sink, ignore
from omega.framework.effects import Effects
from omega.framework.process import Process
from omega.framework.rng import rng_for
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec
from omega.model.machines import Machines
from omega.sim.engine import Engine, EngineClock, Order
from omega.sim.virtual import (
    Latency,
    StoreActor,
    Thinks,
    VirtualProcess,
    ignore_it,
    no_latency,
)
from omega.store.memory.store import MemoryStore
from omega.sync.choice import ALONE, Sync
from omega.sync.turns import Turn
from omega.workload.arrivals import Prefill

VIOLATIONS_TOLD_MAX = 20


class VirtualCell:
    """Machines, a queue and processes in virtual time."""

    def __init__(
        self,
        machines: Machines,
        *,
        seed: int,
        settings: Settings | None = None,
        latency: Latency = no_latency,
    ) -> None:
        """`settings` are those of all processes; `latency` gives the seconds of each answer."""
        self.engine = Engine()
        self.clock = EngineClock(self.engine)
        self._seed = seed
        self._rng = rng_for(seed, "virtual cell")
        self._settings = settings or Settings.model_construct()
        self._latency = latency
        self.store = MemoryStore(self.clock, new_token=self._new_id)
        self.store.add_machines(machines)

    def schedule(
        self,
        scheduler: Scheduler,
        replica: str,
        *,
        sync: Sync = Sync.DELTA,
        turn: Turn = ALONE,
        decision_time: DecisionTime = NO_DECISION_TIME,
        sink: Sink = ignore,
        thinks: Thinks = ignore_it,
        latency: Latency | None = None,
    ) -> VirtualProcess:
        """Start a replica of a scheduler now; `thinks` is called with each decision time.

        `latency` is that of this process, if it is not the cell's.
        """
        process = Process(
            scheduler=scheduler,
            clock=self.clock,
            settings=self._settings,
            sink=sink,
            replica=replica,
            run_seed=self._seed,
            new_id=self._new_id,
            stop=threading.Event(),
            decision_time=decision_time,
        )
        virtual = VirtualProcess(
            process,
            self.engine,
            self.store,
            lambda sink: sync.refresher(self.store, self.clock, sink, turn),
            latency=self._latency if latency is None else latency,
            thinks=thinks,
        )
        virtual.run()
        return virtual

    def live(self, life: Effects[None], sink: Sink = ignore) -> StoreActor:
        """Start another generator of effects now, for example that of virtual nodes."""
        actor = StoreActor(
            self.engine,
            self.store,
            self._rng,
            settings=self._settings,
            sink=sink,
            latency=self._latency,
        )
        actor.begin(life)
        return actor

    def start(self, prefill: Prefill) -> list[int]:
        """Submit and place a start state; return its jobs. No process may run yet.

        Raises InvariantBroken if a task does not fit its machine.
        """
        jobs = self.store.submit(prefill.jobs)
        leased = [
            job
            for kind in sorted({spec.scheduler for spec in prefill.jobs})
            for job in self.store.lease(
                kind, holder="start", jobs_max=len(jobs), lease_ms=LIMITS.lease_ms_max
            )
        ]
        token = {job.id: job.token for job in leased}
        ids = integers(range(1, 1 + len(self.store.snapshot().rows)))
        for rows in prefill.batches(
            jobs_max=LIMITS.jobs_per_transaction_max, claims_max=LIMITS.claims_per_transaction_max
        ):
            parts = [
                (jobs[at], token[jobs[at]], 0, prefill.claims(which, ids)) for at, which in rows
            ]
            transaction = Transaction.of(parts, id=self._new_id(), scheduler="start", replica="0")
            if not self.store.commit(transaction).accepted.all():
                raise InvariantBroken("the start state does not fit its machines")
        return jobs

    def at(self, time_s: float, action: Callable[[], object]) -> None:
        """Schedule an action, for example to kill a process or to change a machine."""

        def do() -> None:
            action()

        self.engine.at(time_s, Order.MACHINE, do)

    def submit(self, time_s: float, specs: Sequence[JobSpec]) -> None:
        """Schedule the submission of jobs."""
        self.when_jobs_arrive(time_s, partial(self.store.submit, specs))

    def when_jobs_arrive(self, time_s: float, action: Callable[[], object]) -> None:
        """Schedule an action after the machine events of the same moment."""

        def do() -> None:
            action()

        self.engine.at(time_s, Order.ARRIVAL, do)

    def run(self, until_s: float) -> None:
        """Execute events up to `until_s`, and as the last one the first event beyond it."""
        self.engine.run(until_s)

    def check(self) -> None:
        """Raise InvariantBroken if an invariant of the cell does not hold."""
        if violations := self.store.verify():
            story = [str(one) for one in violations[:VIOLATIONS_TOLD_MAX]]
            raise InvariantBroken("the cell is broken", story=story)

    def _new_id(self) -> UUID:
        return UUID(bytes=self._rng.bytes(16))
