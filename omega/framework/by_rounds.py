"""Planning by rounds: the planner of schedulers that have `rounds`.

Goal     Plan all jobs of a kind at once, those that run too, again and again.
Promise  Of several replicas one plays each round; whichever comes next goes on from what the last
         one noted. Jobs that are being planned run on.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence

from omega.config import Settings
from omega.errors import BadInput
from omega.events import MemoRefused, Sink
from omega.framework.attempt import Replica
from omega.framework.disposition import over_quota
from omega.framework.effects import Steps, asked
from omega.framework.leasing import Leasing
from omega.framework.metering import Meter, NoMeter
from omega.framework.progress import Attempted, Ending
from omega.framework.round_commit import commit_round, plan_round
from omega.framework.rounds import RoundPlan, Rounds, RoundState
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.store.leases import HandBack, Parking
from omega.store.rounds import NotYet, Round

JOBS_MAX = 10_000
"""Waiting jobs that a round looks at, those of highest precedence first."""
ID_MAX = 2**63 - 1
"""What a store can ask for; a memo may hold any number."""


class ByRounds:
    """Plays the rounds of one process."""

    def __init__(
        self,
        replica: Replica,
        rounds: Rounds,
        leasing: Leasing,
        meter: Meter | NoMeter,
        settings: Settings,
        sink: Sink,
    ) -> None:
        self._replica = replica
        self._rounds = rounds
        self._leasing = leasing
        self._meter = meter
        self._poll_ms = settings.poll_interval_ms
        self._sink = sink
        self._due_in_ms = 0

    def turn(self) -> Steps[int]:
        """Play the next round if it is due; return how many jobs it was about."""
        kind, holder = self._leasing.kind, self._leasing.holder
        length_ms = self._rounds.length_ms
        begun = yield from asked(
            "begin_round",
            lambda store: store.begin_round(kind, holder=holder, length_ms=length_ms),
        )
        if isinstance(begun, NotYet):
            self._due_in_ms = begun.due_in_ms
            return 0
        state = yield from self._state(begun)
        jobs = [*state.waiting, *state.running]
        yield from self._play(state)
        yield from self._give_back(jobs)
        self._due_in_ms = length_ms
        return len(jobs)

    def idle_s(self) -> float:
        """Say how long to wait: for the next round, or until the queue is looked at again."""
        # A millisecond at least: what is left of a round may be less, and virtual time would stand.
        return max(1, min(self._poll_ms, self._due_in_ms)) / 1_000

    def _play(self, state: RoundState) -> Steps[None]:
        """Plan a round, note it, commit it and settle it; if another has begun by then, nothing."""
        planned = plan_round(self._replica, self._rounds, state)
        view, plan = yield from self._meter.over(planned)
        if not (yield from self._note(state, plan)):
            self._meter.report([])
            return
        steps = commit_round(self._replica, self._rounds, state, view, plan)
        attempted = yield from self._meter.over(steps)
        # A job that goes on where it is was not attempted, though the round was about it, too.
        self._meter.report([one for one in attempted if one.tries or one.left])
        # Only jobs that waiting cannot help are parked; the others wait, or run where they are.
        parkings = [parking for one in attempted if (parking := _parking(one)) is not None]
        yield from self._leasing.park(parkings)

    def _note(self, state: RoundState, plan: RoundPlan) -> Steps[bool]:
        """Keep what the next round is to know, before anything of this one is applied."""
        jobs = sorted({*plan.recall, *state.away})
        # Submitted jobs may need a larger memo than a store keeps, and must not end this process.
        # Without `plan` the shares begin anew; without `jobs` the next round recalls all that run.
        for memo in ({"jobs": jobs, "plan": plan.memo}, {"jobs": jobs, "plan": {}}):
            try:
                return (yield from self._kept(state.number, memo))
            except BadInput as refusal:
                self._sink(MemoRefused(refusal.sentence))
        return (yield from self._kept(state.number, {}))

    def _kept(self, number: int, memo: Mapping[str, object]) -> Steps[bool]:
        kind = self._leasing.kind
        kept = yield from asked("note", lambda store: store.note_round(kind, number, memo))
        return kept

    def _state(self, begun: Round) -> Steps[RoundState]:
        """Recall what the last round knew of, and lease what waits."""
        told, memo = _told(begun.memo)
        # First of all, for by its holder's name our own leases of now are those of the last round.
        recalled = yield from self._leasing.recall(begun.number, told)
        running = [job for job in recalled if len(job.placed_task)]
        waiting = [job for job in recalled if not len(job.placed_task)]
        waiting += yield from self._leasing.lease(JOBS_MAX)
        known = sorted({*(told or ()), *(job.id for job in running)})
        live = yield from asked("allocations_of", lambda store: store.allocations_of(known))
        in_steps = [job.id for job in (*running, *waiting) if job.spec.work is not None]
        unfinished = yield from asked("unfinished", lambda store: store.unfinished(known))
        progress = yield from asked("progress", lambda store: store.progress(integers(in_steps)))
        return RoundState(
            number=begun.number,
            began_ms=begun.began_ms,
            memo=memo,
            waiting=waiting,
            running=running,
            allocations=live,
            progress=progress,
            away=sorted(unfinished - {job.id for job in (*running, *waiting)}),
        )

    def _give_back(self, jobs: Sequence[LeasedJob]) -> Steps[None]:
        """End the leases that the round has left: with its places a job runs on."""
        held = self._leasing.leases.held()
        # The next round looks at all of them again, so nothing is held against anybody.
        backs = [HandBack(j.id, j.token, 0, progressed=True) for j in jobs if j.id in held]
        yield from self._leasing.hand_back(backs)
        self._leasing.leases.drop(job.id for job in jobs)


def _parking(attempted: Attempted) -> Parking | None:
    job, diagnosis = attempted.job, attempted.diagnosis
    if attempted.ending is Ending.OVER_QUOTA:
        return Parking(job.id, job.token, ParkReason.OVER_QUOTA, over_quota(job.spec))
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
