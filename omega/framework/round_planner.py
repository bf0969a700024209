"""Planning by rounds: the planner of schedulers that have `rounds`.

Goal     Plan all jobs of a kind at once, running ones too, in each round.
Promise  One of several replicas carries out each round and starts from the memo of the previous
         round. Running jobs keep running while they are planned.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Collection, Sequence

from omega.config import Settings
from omega.events import Sink
from omega.framework.attempt import PlanningContext
from omega.framework.attempt_meter import AttemptMeter, NoAttemptMeter
from omega.framework.disposition import over_quota
from omega.framework.effects import Effects, called
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.leasing import Leasing
from omega.framework.round_commit import commit_round, plan_round
from omega.framework.round_memo import read_memo, save_memo
from omega.framework.rounds import RoundPlan, Rounds, RoundState
from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.store.leases import HandBack, Parking
from omega.store.rounds import NotYet, Round

JOBS_MAX = 10_000
"""How many pending jobs a round leases at most, those of highest precedence first."""


class RoundPlanner:
    """Carries out the rounds of one process."""

    def __init__(
        self,
        context: PlanningContext,
        rounds: Rounds,
        leasing: Leasing,
        meter: AttemptMeter | NoAttemptMeter,
        settings: Settings,
        sink: Sink,
    ) -> None:
        self._context = context
        self._rounds = rounds
        self._leasing = leasing
        self._meter = meter
        self._poll_ms = settings.poll_interval_ms
        self._sink = sink
        self._due_in_ms = 0

    def cycle(self) -> Effects[int]:
        """Carry out the next round if it is due; return how many jobs were planned."""
        kind, holder = self._leasing.kind, self._leasing.holder
        length_ms = self._rounds.length_ms
        begun = yield from called(
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
        """Return the seconds to wait: until the next round, at most the poll interval."""
        # At least a millisecond: the rest of a round may be less, and virtual time would not move.
        return max(1, min(self._poll_ms, self._due_in_ms)) / 1_000

    def _play(self, state: RoundState) -> Effects[None]:
        """Plan a round, save its memo, commit it and park jobs.

        If the next round has begun by the time the memo is saved, nothing is committed.
        """
        planned = plan_round(self._context, self._rounds, state)
        view, plan = yield from self._meter.over(planned)
        if not (yield from self._note(state, plan)):
            self._meter.report([])
            return
        steps = commit_round(self._context, self._rounds, state, view, plan)
        attempted = yield from self._meter.over(steps)
        # A job that keeps its machines was planned, but that does not count as an attempt.
        self._meter.report([one for one in attempted if one.tries or one.left])
        # Jobs that waiting cannot help and jobs over their quota are parked; others wait or run.
        # Jobs for which victims were looked for in vain are parked with that for a reason; the next
        # round wakes them.
        parkings = [parking for one in attempted if (parking := _parking(one)) is not None]
        yield from self._leasing.park(parkings, [view.open_room()] if parkings else [])

    def _note(self, state: RoundState, plan: RoundPlan) -> Effects[bool]:
        """Save the memo for the next round before this one is committed.

        Returns whether it was saved: it is not if the next round has begun already.
        """
        jobs = sorted({*plan.recall, *state.away, *(job.id for job in plan.wanting)})
        # If not even `jobs` can be saved, the next round recalls all running jobs.
        kind, number = self._leasing.kind, state.number
        saved = yield from save_memo(kind, number, jobs, plan.memo, self._sink, plan.summary)
        return saved

    def _state(self, begun: Round) -> Effects[RoundState]:
        """Recall the jobs of the last round, lease pending jobs, and read their state."""
        # None: the memo has no jobs, as in the first round. Then all running jobs are recalled.
        last, memo = read_memo(begun.memo)
        # `recall` takes over the leases that the last round's holder has. If that was this process,
        # leases taken before would be among them, so `recall` comes first.
        recalled = yield from self._leasing.recall(begun.number, last)
        running = [job for job in recalled if len(job.placed_task)]
        waiting = [job for job in recalled if not len(job.placed_task)]
        waiting += yield from self._leasing.lease(JOBS_MAX)
        known = sorted({*(last or ()), *(job.id for job in running)})
        unfinished = yield from called("unfinished", lambda store: store.unfinished(known))
        away = unfinished - {job.id for job in (*running, *waiting)}
        if away and (yield from self._woken(away)):
            waiting += yield from self._leasing.lease(max(0, JOBS_MAX - len(waiting)))
            waiting.sort(key=lambda job: (-job.spec.precedence, job.id))
            away -= {job.id for job in waiting}
        live = yield from called("allocations_of", lambda store: store.allocations_of(known))
        in_steps = [job.id for job in (*running, *waiting) if job.spec.work is not None]
        progress = yield from called("progress", lambda store: store.progress(integers(in_steps)))
        # The oldest sum will do: weights and parents are those of now, and use is not read.
        old_ms = LIMITS.window_ms_max
        use = yield from called("tenant_use", lambda store: store.tenant_use(age_ms_max=old_ms))
        return RoundState(
            number=begun.number,
            began_ms=begun.began_ms,
            memo=memo,
            waiting=waiting,
            running=running,
            allocations=live,
            progress=progress,
            tenants=use.tenants,
            away=sorted(away),
        )

    def _woken(self, away: Collection[int]) -> Effects[int]:
        """Wake those of the jobs that are parked for want of room; return how many."""
        kind = self._leasing.kind
        parked = yield from called("parked", lambda store: store.parked(kind, jobs_max=JOBS_MAX))
        ids = [one.id for one in parked if one.id in away and one.reason is ParkReason.NO_ROOM]
        if not ids:
            return 0
        woken = yield from called("wake", lambda store: store.wake(ids))
        return len(woken)

    def _give_back(self, jobs: Sequence[LeasedJob]) -> Effects[None]:
        """Hand back the jobs whose leases are still held; placed tasks keep running."""
        held = self._leasing.leases.held()
        # The next round plans all of them again, so none counts as an attempt without progress.
        backs = [HandBack(j.id, j.token, 0, progressed=True) for j in jobs if j.id in held]
        yield from self._leasing.hand_back(backs)
        self._leasing.leases.drop(job.id for job in jobs)


def _parking(attempted: JobResult) -> Parking | None:
    job, diagnosis = attempted.job, attempted.diagnosis
    if attempted.ending is AttemptEnd.OVER_QUOTA:
        return Parking(job.id, job.token, ParkReason.OVER_QUOTA, over_quota(job.spec))
    if diagnosis is not None and (diagnosis.reason.is_permanent or attempted.looked_for_victims):
        return Parking(job.id, job.token, diagnosis.reason, diagnosis.detail)
    return None
