"""A scheduler process on a simulated cell.

Goal     Run the code that runs live, `omega.framework.process`, and answer its effects with virtual
         time and a cell of arrays.
Promise  An attempt has one try, unless the limits say otherwise. The decision time passes between
         reading the cell and placing.
Source   docs/papers/omega.md, one attempt at one job; omega.framework.effects.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import partial

from omega.cell.view import View
from omega.framework.effects import (
    Call,
    Commit,
    Effect,
    Effects,
    PlaceAtRandom,
    Refresh,
    Think,
    Wait,
)
from omega.framework.process import Process
from omega.model.claims import ConflictRule, Transaction
from omega.model.outcomes import Outcome
from omega.sim.actor import Actor, Resume
from omega.sim.engine import Order
from omega.sim.ledger import Ledger, SimulatedJob
from omega.sim.queue import GiveUpPolicy, Queue
from omega.sim.rows import Look
from omega.sim.world import World


class CellActor(Actor):
    """One scheduler and its queue."""

    def __init__(
        self,
        process: Process,
        world: World,
        *,
        reads_current_state: bool,
        give_up: GiveUpPolicy,
        horizon_s: float,
    ) -> None:
        """Drive a process.

        With `reads_current_state` placement reads the cell as it is when the decision time is over,
        which is right for a scheduler that is alone on its machines. Without it placement reads
        the cell as it was when the attempt began.
        """
        super().__init__()
        self._world = world
        self._sees_the_present = reads_current_state
        self._horizon_s = horizon_s
        self.ledger = Ledger(process.replica)
        self._queue = Queue(world.engine, give_up, self.ledger, self._wake)
        self._by_sequence = process.scheduler.rule is ConflictRule.SEQUENCE
        self._view = world.cell.view
        self._look: Look | None = None
        """The moment as of which placement reads the cell; None if it reads the cell as it is."""
        self._waits = False
        self._thinks_s = 0.0
        self._claimed = False
        self._start(process.life())

    def submit(self, job: SimulatedJob) -> None:
        """Put a job into the queue; start to decide at once if the scheduler is idle."""
        self._queue.join(job)

    @property
    def load(self) -> int:
        """How many jobs are queued or are being decided on."""
        return len(self._queue) + (self._queue.leased is not None)

    def _wake(self) -> None:
        if self._waits:
            self._waits = False
            self._resume(None)

    def _next(self, life: Effects[None], effect: Effect) -> Resume | None:
        if isinstance(effect, Wait):
            self._waits = True
            return None
        if isinstance(effect, PlaceAtRandom | Think):
            self._think(effect)
            return None
        return partial(life.send, self._answer(effect))

    def _think(self, effect: Think | PlaceAtRandom) -> None:
        self._thinks_s = effect.seconds
        now_s = self._world.engine.now_s
        self.ledger.begin(effect.seconds, before_s=self._horizon_s - now_s)
        decide = self._decide if isinstance(effect, Think) else partial(self._draw, effect)
        self._world.engine.at(now_s + effect.seconds, Order.DECISION, decide)

    def _draw(self, effect: PlaceAtRandom) -> None:
        """Place and commit a job in one step if all of it fits; otherwise place it as usual."""
        job = self._queue.leased
        assert job is not None
        machine = self._world.cell.draw_and_claim(
            effect.job, effect.seed, self._look, by_sequence=self._by_sequence
        )
        if machine is None:
            self._decide()
            return
        job.attempts += 1
        self._claimed = True
        self.ledger.grant(len(machine), self._thinks_s)
        self._world.run_whole(job, machine)
        self._resume(self._queue.place_all(machine))

    def _decide(self) -> None:
        assert self._queue.leased is not None
        self._queue.leased.attempts += 1
        life = self._steps
        assert life is not None
        self._live(life, partial(self._placed, life))

    def _placed(self, life: Effects[None]) -> Effect:
        """Resume the process, whose placement then reads the cell as of its last look."""
        with self._as_seen():
            return life.send(None)

    def _as_seen(self) -> AbstractContextManager[None]:
        return nullcontext() if self._look is None else self._view.as_of(self._look)

    def _answer(self, effect: Effect) -> object:
        match effect:
            case Call("lease", make):
                self._claimed = False
                return make(self._queue)
            case Refresh():
                return self._refresh()
            case Commit(transaction):
                return self._commit(transaction)
            case Call("hand_back", make):
                self._forget()
                if not self._claimed:
                    self.ledger.found_no_room += 1
                return make(self._queue)
        raise AssertionError(f"a simulated scheduler has no answer to {effect}")

    def _refresh(self) -> View:
        self._forget()
        if not self._sees_the_present:  # with `reads_current_state` placement reads the cell later
            self._look = self._view.look()
        return self._view

    def _forget(self) -> None:
        if self._look is not None:
            self._view.forget(self._look)
            self._look = None

    def _commit(self, transaction: Transaction) -> Outcome:
        job = self._queue.leased
        assert job is not None
        outcome = self._world.cell.commit(transaction, job.lease)
        self._claimed = True
        if self._look is not None:
            self._view.look_again(self._look, transaction.claims.machines)
        self.ledger.judge(outcome, self._thinks_s)
        if outcome.refused < len(outcome.verdicts):
            self._world.run(job, transaction.claims, outcome, lose=self._queue.lose)
            self._queue.place(transaction.claims, outcome.machine, outcome.accepted)
        return outcome
