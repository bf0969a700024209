"""A scheduler process that plans by rounds.

Goal     Run a scheduler's rounds against a store for as long as it is wanted.
Promise  Of several replicas one plays each round; whichever comes next goes on from what the last
         one noted. Stops after the commit under way; jobs that are being planned run on.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md; omega.framework.runner.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from omega.errors import BadInput, InvariantBroken
from omega.events import MemoRefused
from omega.framework.attempt import Replica
from omega.framework.driver import Driver
from omega.framework.progress import Attempted, Ending
from omega.framework.round_play import commit_round, plan_round
from omega.framework.rounds import RoundPlan, Rounds, RoundState
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.store.base import HandBack, Parking
from omega.store.rounds import NotYet, Round

JOBS_MAX = 10_000
"""Waiting jobs that a round looks at, those of highest precedence first."""
ID_MAX = 2**63 - 1
"""What a store can ask for; a memo may hold any number."""


class RoundDriver(Driver):
    """Plays rounds on a store."""

    def play(
        self,
        replica: Replica,
        rounds: Rounds,
        state: RoundState,
        note: Callable[[RoundPlan], bool],
    ) -> list[Attempted]:
        """Plan a round, note it, commit it, report it; nothing if another has begun by then."""
        self._thought_s = 0.0
        view, plan = self._driven(plan_round(replica, rounds, state))
        if not note(plan):
            return []
        attempted = self._driven(commit_round(replica, rounds, state, view, plan))
        # A job that goes on where it is was not attempted, though the round was about it, too.
        self._reported([one for one in attempted if one.tries or one.left])
        return attempted


@dataclass(kw_only=True, eq=False)
class RoundProcess(SchedulerProcess):
    """One replica of a scheduler that has `rounds`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheduler.rounds is None:
            raise InvariantBroken(f"{self.scheduler.kind} does not plan by rounds")
        self._rounds = self.scheduler.rounds
        refresher = self.refresher(self.store, self.clock, self._sink)
        self._driver = self._player = RoundDriver(
            self.store, refresher, self.clock, self._sink, self._patiently
        )
        self._jobs_max = JOBS_MAX
        self._due_in_ms = 0

    def step(self) -> int:
        """Play the next round if it is due; return how many jobs it was about."""
        self._housekeep()
        begun = self._patiently(
            "begin_round",
            lambda: self.store.begin_round(
                self.scheduler.kind, holder=self._holder, length_ms=self._rounds.length_ms
            ),
        )
        if isinstance(begun, NotYet):
            self._due_in_ms = begun.due_in_ms
            return 0
        state = self._state(begun)
        note = partial(self._note, state)
        self._settle(self._player.play(self._replica, self._rounds, state, note))
        self._give_back([*state.waiting, *state.running])
        self._due_in_ms = self._rounds.length_ms
        return len(state.waiting) + len(state.running)

    def _note(self, state: RoundState, plan: RoundPlan) -> bool:
        """Keep what the next round is to know, before anything of this one is applied."""
        jobs = sorted({*plan.recall, *state.away})
        # Submitted jobs may need a larger memo than a store keeps, and must not end this process.
        # Without `plan` the shares begin anew; without `jobs` the next round recalls all that run.
        for memo in ({"jobs": jobs, "plan": plan.memo}, {"jobs": jobs, "plan": {}}):
            try:
                return self._kept(state.number, memo)
            except BadInput as refusal:
                self._sink(MemoRefused(refusal.sentence))
        return self._kept(state.number, {})

    def _kept(self, number: int, memo: Mapping[str, object]) -> bool:
        note = partial(self.store.note_round, self.scheduler.kind, number, memo)
        return self._patiently("note", note)

    def _state(self, begun: Round) -> RoundState:
        """Recall what the last round knew of, and lease what waits."""
        told, memo = _told(begun.memo)
        # First of all, for by its holder's name our own leases of now are those of the last round.
        recalled = self._patiently(
            "recall",
            lambda: self.store.recall(
                self.scheduler.kind, begun.number, told, lease_ms=self.settings.lease_ms
            ),
        )
        self.leases.take(recalled)
        running = [job for job in recalled if len(job.placed_task)]
        waiting = [job for job in recalled if not len(job.placed_task)]
        waiting += self._lease()
        known = sorted({*(told or ()), *(job.id for job in running)})
        live = self._patiently("allocations_of", partial(self.store.allocations_of, known))
        trains = [job.id for job in (*running, *waiting) if job.spec.training is not None]
        unfinished = self._patiently("unfinished", partial(self.store.unfinished, known))
        return RoundState(
            number=begun.number,
            began_ms=begun.began_ms,
            memo=memo,
            waiting=waiting,
            running=running,
            allocations=live,
            training=self._patiently("training", partial(self.store.training, integers(trains))),
            away=sorted(unfinished - {job.id for job in (*running, *waiting)}),
        )

    def _settle(self, attempted: Sequence[Attempted]) -> None:
        """Park whom waiting cannot help; all others stay with us, in line or where they run."""
        parkings = [parking for one in attempted if (parking := _parking(one)) is not None]
        self._park(parkings)

    def _give_back(self, jobs: Sequence[LeasedJob]) -> None:
        """End the leases that the round has left: with its places a job runs on."""
        held = self.leases.held()
        # The next round looks at all of them again, so nothing is held against anybody.
        backs = [HandBack(j.id, j.token, 0, progressed=True) for j in jobs if j.id in held]
        if backs:
            self._patiently("hand_back", lambda: self.store.hand_back(backs))
        self.leases.drop(job.id for job in jobs)

    def _idle(self) -> None:
        """Wait for the next round, or for as long as the queue is left alone at most."""
        self.clock.sleep(min(self.settings.poll_interval_ms, self._due_in_ms) / 1_000)


def _parking(attempted: Attempted) -> Parking | None:
    job, diagnosis = attempted.job, attempted.diagnosis
    if attempted.ending is Ending.OVER_QUOTA:
        whose = f"tenant {job.spec.tenant} or of scheduler {job.spec.scheduler}"
        detail = f"not enough is left of the quota of {whose}"
        return Parking(job.id, job.token, ParkReason.OVER_QUOTA, detail)
    if diagnosis is not None and diagnosis.reason.is_permanent:
        return Parking(job.id, job.token, diagnosis.reason, diagnosis.detail)
    return None


def _told(memo: Mapping[str, object]) -> tuple[list[int] | None, Mapping[str, object]]:
    """Read what `_note` kept; without a list of jobs, as in the first round, it may be any."""
    jobs, plan = memo.get("jobs"), memo.get("plan")
    ids = None
    if isinstance(jobs, list):
        ids = [job for job in jobs if type(job) is int and 0 < job <= ID_MAX]
    return ids, plan if isinstance(plan, dict) else {}
