"""The one reason that holds a job up now.

Goal     Of all that is in a job's way, name what has to change first.
Promise  One finding for each job. A permanent reason is given only if placement fails even in the
         empty cell with every machine up: for a gang, fewer tasks than it lacks are placed, for
         another job none; or if a gang lacks more tasks than one commit can place. Of a gang of
         several groups this may be unproven, and the finding then says so. A reason whose
         `has_room` is true is given only if the machines and quotas would take the job as they
         are. Such a job gets another reason only if it is a gang that one commit cannot place, if
         a user holds it, or if no scheduler of its kind is at work.
Source   omega/placement/diagnosis.py, for what is permanent; docs/decisions/0054.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from omega.cell.view import View
from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.model.lanes import QueueOrder
from omega.placement.diagnosis import (
    Diagnosis,
    constraint_text,
    diagnose,
    emptied,
    has_room,
    too_large_to_commit,
    with_no_task_placed,
)
from omega.placement.feasibility import room
from omega.placement.groups import waiting_groups
from omega.placement.patience import patience_left_ms, patient_groups, with_preferences_required
from omega.reports.why.evictions import Evictions
from omega.reports.why.findings import Finding
from omega.reports.why.full import why_full
from omega.reports.why.quotas import QuotaNeed, raised
from omega.reports.why.reasons import Reason
from omega.reports.why.shares import FairPosition
from omega.reports.wording import duration, things
from omega.store.inquiries import LINE_MAX, JobTransaction, Line
from omega.store.status import JobStatus, Notice


@dataclass(frozen=True, eq=False)
class Situation:
    """All that was read about a job that has not ended, or about a spec."""

    view: View
    job: LeasedJob
    status: JobStatus | None
    """None for a spec that is not submitted."""
    waits_ms: int
    """For how much longer the job may not be leased."""
    kinds_running: frozenset[str]
    """The kinds of scheduler that have reported lately."""
    needs: Sequence[QuotaNeed]
    line: Line
    """The jobs of its kind that are leased before it, by precedence and age; under an order by
    start deadlines only those of higher precedence. Empty if the job is not pending, or under a
    fair order."""
    fair_position: FairPosition | None
    """The position of its tenant, if the job is pending and its kind has a fair order."""
    order: QueueOrder
    """The order of its kind, if the job is pending; FIFO otherwise."""
    transactions: Sequence[JobTransaction]
    """What was decided about the job's claims in its last transactions, newest first. One attempt
    may have several transactions."""
    notices: Sequence[Notice]
    evictions: Evictions | None
    """None if there is room."""
    after_notices: View | None
    """The cell once all notices have ended; None if there are none, or if there is room."""
    round_due_s: float | None = None
    """Seconds until the next round of its kind of scheduler; None if that has no rounds."""

    @property
    def state(self) -> State:
        """The job's state; a spec counts as pending."""
        return State.PENDING if self.status is None else self.status.state


def find_reason(about: Situation) -> Finding:
    """Return the dominant reason, from what cannot be waited for to what passes by itself."""
    steps: tuple[Callable[[Situation], Finding | None], ...] = (
        _placed,
        _never,
        _held,
        _no_scheduler,
        _over_quota,
        _full,
        _prefers,
        _refused,
        _waits,
    )
    found = (step(about) for step in steps)
    return next(finding for finding in found if finding is not None)


def group_that_waits(view: View, job: LeasedJob) -> int:
    """Return the group that holds a job up: the one with least room for what it wants.

    Groups that could never fit come last, except in a gang that lacks tasks: there such a group may
    be the one that holds the job up.
    """
    empty, unplaced = emptied(view), with_no_task_placed(job)

    def rank(group: int) -> tuple[bool, float, int]:
        hopeless = not len(room(empty, unplaced, group).at)
        wanted = max(1, len(job.unplaced_in(group)))
        return hopeless and not job.lacking, room(view, job, group).total / wanted, group

    return min(waiting_groups(job) or [0], key=rank)


def _placed(about: Situation) -> Finding | None:
    if about.state is State.RUNNING or not len(about.job.unplaced):
        return Finding(Reason.PLACED, "Every task has a place or has ended.", "Nothing.")
    return None


def _never(about: Situation) -> Finding | None:
    """Return a permanent reason, if there is one."""
    large = too_large_to_commit(about.job, LIMITS.claims_per_transaction_max)
    if large is not None:
        return _permanent(about, large, "Ask for a smaller minimum")
    found = diagnose(about.view, about.job)
    if found is None or not found.reason.is_permanent:
        return None
    match found.reason:
        case ParkReason.UNKNOWN_ATTRIBUTE:
            step = "Correct the attribute, or load machines that have it: omega cell load FILE"
        case ParkReason.NO_MACHINE_MATCHES:
            step = "Correct the constraint, or load a machine that meets it: omega cell load FILE"
        case ParkReason.NEVER_FITS:
            step = "Ask for less a task, or load a machine that has as much: omega cell load FILE"
        case _:
            step = "Lower its minimum or the size of its tasks, or load machines: omega cell load"
    proven = found.reason is not ParkReason.GANG_TOO_LARGE or _is_too_large(about)
    return _permanent(about, found, step, proven=proven)


def _permanent(about: Situation, found: Diagnosis, step: str, *, proven: bool = True) -> Finding:
    """Return a finding that only another spec or other machines help."""
    unless = "" if proven else "; this is how schedulers pack it, and another packing may exist"
    sentence = f"{found.detail[:1].upper()}{found.detail[1:]}{unless}"
    end = (
        ""
        if about.status is None
        else f" To submit another spec, end this one: omega cancel {about.status.id}."
    )
    return Finding(
        Reason(found.reason.value),
        sentence if sentence.endswith("?") else f"{sentence}.",
        f"{step}.{end}",
        is_proven=proven,
    )


def _is_too_large(about: Situation) -> bool:
    """Return whether it is proven that no packing of the gang exists in the empty cell.

    Each group could place some tasks there if it were the only one. It is proven if these are, in
    sum, fewer than the gang lacks. It is also proven if the gang has only one group.
    """
    empty, job = emptied(about.view), with_no_task_placed(about.job)
    groups = waiting_groups(job)
    most = sum(min(room(empty, job, g).total, len(job.unplaced_in(g))) for g in groups)
    return most < job.lacking or len(groups) == 1


def _held(about: Situation) -> Finding | None:
    status = about.status
    if status is None or status.park_reason is not ParkReason.HELD:
        return None
    return Finding(
        Reason.HELD, "A user holds it, so no scheduler plans it.", f"omega release {status.id}"
    )


def _no_scheduler(about: Situation) -> Finding | None:
    kind = about.job.spec.scheduler
    if about.status is None or kind in about.kinds_running:
        return None
    return Finding(
        Reason.NO_SCHEDULER,
        f"No {kind} scheduler has been heard of lately.",
        f"omega scheduler run {quote(kind)}",
    )


def _over_quota(about: Situation) -> Finding | None:
    short = [need for need in about.needs if not need.suffices]
    if not short:
        return None
    first = [need for need in short if need.use is short[0].use]
    needed = "; ".join(f"{need}: {need.figures}" for need in short)
    if not short[0].use.counted:
        return Finding(
            Reason.OVER_QUOTA,
            f"The use of {short[0]} has not been counted, so that it grants nothing.",
            f"{raised(first)}",
        )
    return Finding(Reason.OVER_QUOTA, f"{needed}.", f"Wait until jobs end, or: {raised(first)}")


def _full(about: Situation) -> Finding | None:
    if about.evictions is None:
        return None
    view, job = about.view, about.job
    patient = patient_groups(view, job)
    # A gang that lacks several tasks evicts nobody as long as one of its groups is patient.
    waits_as_a_whole = job.lacking > 1 or len(patient) == len(waiting_groups(job))
    return why_full(
        view,
        job,
        about.evictions,
        about.notices,
        about.after_notices,
        group_that_waits(view, job),
        patience_ms=patience_left_ms(job, patient) if waits_as_a_whole else 0,
    )


def _prefers(about: Situation) -> Finding | None:
    """Return that a job waits for machines that it prefers, although others have room."""
    # A scheduler with rounds ignores patience. A parked job is woken as soon as any machines have
    # room for it, whether its patience is over or not.
    if about.state is not State.PENDING or about.round_due_s is not None:
        return None
    patient = patient_groups(about.view, about.job)
    if not patient or has_room(about.view, with_preferences_required(about.job, patient)):
        return None
    wanted = dict.fromkeys(
        constraint_text(preference.constraint)
        for group in sorted(patient)
        for preference in about.job.spec.groups[group].preferences
    )
    left = duration(patience_left_ms(about.job, patient) / 1_000)
    anew = "it" if about.status is None else "it anew"
    return Finding(
        Reason.PATIENT,
        f"There is room, but not where it prefers to run ({', '.join(wanted)}); it waits for that"
        f" for another {left}.",
        f"Wait: then it runs wherever there is room. To have it run at once, submit {anew} with"
        " less patience.",
    )


def _refused(about: Situation) -> Finding | None:
    """Return that the last claims were refused, although there is room."""
    status = about.status
    last = about.transactions[0] if about.transactions else None
    if status is None or last is None or last.granted or not last.refused:
        return None
    # At 0 no attempt has been in vain since the count began: at submission, and anew when tasks are
    # granted, and when the job is woken, released, requeued or given another precedence, or its
    # scheduler ends. A job that is parked after its first attempt (OMEGA_ATTEMPTS_MAX=1) has 0 too.
    if not status.fruitless and status.park_reason is not ParkReason.CONFLICTS:
        return None
    beaten = 0
    for transaction in about.transactions:
        if transaction.granted:
            break
        beaten += 1
    rivals = dict.fromkeys(_rivals(about.transactions[:beaten]))
    by = f"; {', '.join(rivals)} took the machines" if rivals else ""
    stale = any(claim.verdict.name == "STALE" for claim in last.claims)
    kind = quote(about.job.spec.scheduler)
    step = (
        f"Run its scheduler with the fit rule: omega scheduler run {kind} --rule fit"
        if stale
        else _wait_for_round(about)
        or f"Wait: it is tried again. Another replica tries oftener: omega scheduler run {kind}"
        " --replica another"
    )
    return Finding(
        Reason.CONFLICTS,
        f"There is room, but its last {things(beaten, 'transaction')} got nothing{by}.",
        step,
    )


def _rivals(transactions: Sequence[JobTransaction]) -> Iterator[str]:
    for transaction in transactions:
        for claim in transaction.claims:
            if claim.taken_by is not None:
                yield f"{claim.taken_by.scheduler} {claim.taken_by.replica}"


def _waits(about: Situation) -> Finding:
    """Return, for a job that would fit into the cell as it is now, what it waits for."""
    status = about.status
    if status is None:
        return Finding(
            Reason.WOULD_FIT, "The cell has room for it now.", "Submit it: omega submit SPEC.yaml"
        )
    if status.state is State.PLANNING:
        return Finding(
            Reason.BEING_PLANNED, f"{status.lease_holder} holds its lease.", "Wait a moment."
        )
    if status.state is State.PARKED:
        assert status.park_reason is not None
        return Finding(
            Reason.TO_BE_WOKEN,
            f"It was parked as {status.park_reason.value}, and would fit now.",
            "Wait a moment: a scheduler of its kind wakes it when it looks again.",
        )
    if about.waits_ms:
        return Finding(
            Reason.BACKING_OFF,
            f"{_last_attempts(status.fruitless)}; the next is"
            f" {duration(about.waits_ms / 1_000)} away.",
            "Wait: it is tried again by itself.",
        )
    return _in_line(about)


def _last_attempts(fruitless: int) -> str:
    if not fruitless:
        return "The last attempt left tasks without a place"
    return f"{things(fruitless, 'attempt')} in a row placed nothing"


def _in_line(about: Situation) -> Finding:
    """Return, for a job that may be leased, what it waits for."""
    if about.fair_position is not None:
        return _in_share(about.fair_position)
    if about.line.ahead:
        return _behind(about)
    if about.order.is_by_key:
        return Finding(
            Reason.QUEUED,
            "There is room, and no job of higher precedence is before it. Jobs of its precedence go"
            f" by their keys, the smallest first (order {about.order.value}).",
            "Wait a moment: the next scheduler of its kind leases those with the smallest keys.",
        )
    return Finding(
        Reason.QUEUED,
        "There is room, and no other job of its kind is before it.",
        _wait_for_round(about)
        or "Wait a moment: the next scheduler of its kind that asks leases it.",
    )


def _in_share(position: FairPosition) -> Finding:
    if not position.before:
        return Finding(
            Reason.QUEUED,
            "There is room, and no tenant that waits has a smaller share: only jobs of its own"
            " tenant can be before it.",
            "Wait a moment: the next scheduler of its kind that asks leases it.",
        )
    tenant = quote(position.own.tenant)
    more = f"omega tenant set {tenant} --weight {position.own.weight + 1}"
    return Finding(
        Reason.BEHIND_OTHERS,
        "There is room, but tenants that have less, or whose parents have, come first (order"
        f" {position.order.value}; equal shares go by name): {position.named_before}. Its own"
        f" tenant: {position.own}.",
        f"Wait until they have more, or give its tenant a larger weight: {more}",
    )


def _wait_for_round(about: Situation) -> str:
    """Return the advice to wait for the next round; empty if the job's kind has no rounds.

    A round plans all jobs of the kind, so another replica would not help.
    """
    if about.round_due_s is None:
        return ""
    due = f"in {duration(about.round_due_s)}" if about.round_due_s else "now"
    return f"Wait: the next round is due {due}, and plans all jobs of its kind together."


def ahead(line: Line) -> str:
    """Return in words how many jobs come first, if there are any."""
    parts = [
        f"{_at_least(line.higher, 'job')} of higher precedence" if line.higher else "",
        f"{_at_least(line.older, 'older job')} of the same precedence" if line.older else "",
    ]
    return " and ".join(part for part in parts if part)


def _at_least(number: int, noun: str) -> str:
    """Return how many are in line, in words; "or more" from LINE_MAX on, where counting ends."""
    return f"{number:,} or more {noun}s" if number >= LINE_MAX else things(number, noun)


def _behind(about: Situation) -> Finding:
    line, kind = about.line, quote(about.job.spec.scheduler)
    first = ahead(line)
    if waits := _wait_for_round(about):
        return Finding(Reason.BEHIND_OTHERS, f"There is room, but it is behind {first}.", waits)
    step = f"Start another replica: omega scheduler run {kind} --replica another"
    if line.higher and line.first:
        above = line.first[0].precedence + 1
        step = f"{step}; or submit it anew with precedence: {above}"
    return Finding(Reason.BEHIND_OTHERS, f"There is room, but it is behind {first}.", f"{step}.")
