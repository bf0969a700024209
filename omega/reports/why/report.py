"""Everything that `omega why` tells of a job, of a task of it, or of a spec.

Goal     Read once what is needed, and hand values to screens, scripts and pages.
Promise  The reads are: the cell's rows (one per machine), the job by its keys, quotas, notices,
         reports of processes, rounds, the line and the story up to their limits, and, only if there
         is no room, who runs on at most `LIMITS.occupied_machines_max` machines. If its kind has a
         fair order, what tenants use is read in place of the line. All is judged as it is now; a
         reason that was stored when the job was parked is told beside, if it differs.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.lifecycle.states import FINAL, State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.lanes import QueueOrder
from omega.model.quotas import QuotaUse
from omega.placement.diagnosis import has_room
from omega.placement.patience import patient_groups, with_preferences_required
from omega.reports.jobs import row_of as job_row
from omega.reports.processes import live_kinds
from omega.reports.quotas import left_for
from omega.reports.rounds import next_round_s
from omega.reports.why.decide import Situation, find_reason, group_that_waits
from omega.reports.why.evictions import Evictions, evictions_for, machines_to_ask_of
from omega.reports.why.findings import Finding
from omega.reports.why.machines import (
    FunnelStep,
    MachineRule,
    NearMachine,
    funnel,
    nearest,
    rules_on,
)
from omega.reports.why.quotas import QuotaNeed, quota_needs
from omega.reports.why.reasons import Reason, agrees
from omega.reports.why.requirements import requirements_of
from omega.reports.why.shares import FairPosition, read_fair_position
from omega.reports.why.story import TransactionTold, told_transactions
from omega.reports.why.suppositions import after_notices
from omega.store.inquiries import JobTransaction, Line, WaitingJob
from omega.store.protocols import ReaderStore
from omega.store.status import JobStatus, Notice

NO_LEASE: Final = UUID(int=0)
"""In place of the token of a lease, which a reader has not."""
NOBODY: Final = Line(0, 0, ())
FIRST_TOLD: Final = 3
"""Jobs of the line that are told."""
TRANSACTIONS_TOLD: Final = 10

Preempts = Callable[[str], bool | None]
"""Returns whether a kind of scheduler evicts; None if that is not known here."""


@dataclass(frozen=True, eq=False)
class WhyReport:
    """Why a job, or a spec, is not placed; or where it is."""

    job: JobStatus | None
    """None for a spec that is not submitted."""
    spec: JobSpec | None
    """None of a job that is over, or that cannot be read."""
    finding: Finding
    differs: str | None
    """What was stored as the reason when it was parked, if that is not so any more."""
    group: int
    """The group that the funnel and the machines are about."""
    funnel: Sequence[FunnelStep]
    nearest: Sequence[NearMachine]
    needs: Sequence[QuotaNeed]
    quotas: Sequence[str]
    """A phrase for each quota: what is left of it."""
    line: Line
    fair_position: FairPosition | None
    """The position of its tenant, if the job is pending and its kind has a fair order: `line` is
    empty then."""
    evictions: Evictions | None
    transactions: Sequence[TransactionTold]
    placements: Mapping[int, str]
    """The machine of each running task."""
    machine: str | None = None
    """The machine that was asked about ..."""
    rules: Sequence[MachineRule] = ()
    """... and what it answers."""

    def rows(self) -> list[dict[str, object]]:
        """Return the steps of the funnel, as JSON types."""
        return [asdict(step) for step in self.funnel]

    def summary(self) -> dict[str, object]:
        """Return all the rest, as JSON types."""
        return {
            "job": None if self.job is None else job_row(self.job),
            "reason": self.finding.reason.value,
            "evidence": self.finding.evidence,
            "next_step": self.finding.next_step,
            "is_proven": self.finding.is_proven,
            "permanent": self.finding.reason.is_permanent,
            "stored_reason_differs": self.differs,
            "group": self.group,
            "nearest": [asdict(machine) for machine in self.nearest],
            "quotas": [
                {"quota": str(need), "need": need.need, "left": need.left, "holds": need.suffices}
                for need in self.needs
            ],
            "ahead": {
                "higher_precedence": self.line.higher,
                "older": self.line.older,
                "first": [status.id for status in self.line.first],
            },
            "fair_order": None if self.fair_position is None else self.fair_position.row(),
            "evictions": None if self.evictions is None else asdict(self.evictions),
            "transactions": [asdict(transaction) for transaction in self.transactions],
            "placements": [
                {"task": task, "machine": name} for task, name in sorted(self.placements.items())
            ],
            "machine": self.machine,
            "rules": [asdict(rule) for rule in self.rules],
        }


@dataclass(frozen=True, eq=False)
class _Facts:
    """What is asked, and what was read for it."""

    view: View
    job: LeasedJob
    status: JobStatus | None
    running: int
    waits_ms: int
    line: Line
    order: QueueOrder
    transactions: Sequence[JobTransaction]
    placements: Mapping[int, str]


def why_job(
    store: ReaderStore,
    status: JobStatus,
    preempts: Preempts,
    *,
    task: int | None = None,
    machine: str | None = None,
) -> WhyReport:
    """Return why a job is not placed; `task` chooses the group that the machines are judged for."""
    waiting = None if status.state in FINAL else store.waiting_job(status.id)
    if waiting is None:
        return _without_spec(store, status)
    line, order = NOBODY, QueueOrder.FIFO
    if status.state is State.PENDING:
        order = store.queue_orders().get(status.scheduler, order)
    if status.state is State.PENDING and not order.is_fair:
        line = store.line_before(
            status.scheduler, status.precedence, status.id, jobs_max=FIRST_TOLD
        )
        if order.is_by_key:
            line = line.above(status.precedence)
    facts = _Facts(
        View(store.snapshot()),
        _as_leased(waiting, status),
        status,
        waiting.running,
        waiting.waits_ms,
        line,
        order,
        store.transactions_of(status.id, transactions_max=TRANSACTIONS_TOLD),
        store.placements(status.id),
    )
    return _report(store, facts, preempts, task, machine)


def _without_spec(store: ReaderStore, status: JobStatus) -> WhyReport:
    """Return what is told of a job that is over, or that this version cannot read."""
    over = status.state in FINAL
    snapshot = store.snapshot()
    names = dict(zip(snapshot.rows.id.tolist(), snapshot.names, strict=True))
    return WhyReport(
        job=status,
        spec=None,
        finding=Finding(Reason.ENDED, f"It is {status.state.value}.", "Nothing.")
        if over
        else Finding(
            Reason.UNREADABLE,
            "This version of Omega cannot read its row.",
            f"omega cancel {status.id}, then submit it anew; and run: omega db verify",
        ),
        differs=None,
        group=0,
        funnel=(),
        nearest=(),
        needs=(),
        quotas=(),
        line=NOBODY,
        fair_position=None,
        evictions=None,
        transactions=told_transactions(
            store.transactions_of(status.id, transactions_max=TRANSACTIONS_TOLD), names
        ),
        placements={},
    )


def why_spec(
    store: ReaderStore,
    spec: JobSpec,
    preempts: Preempts,
    *,
    task: int | None = None,
    machine: str | None = None,
) -> WhyReport:
    """Return what a spec that is not submitted would wait for."""
    unplaced = np.arange(spec.tasks, dtype=np.intp)
    job = LeasedJob(id=0, token=NO_LEASE, spec=spec, unplaced=unplaced)
    facts = _Facts(View(store.snapshot()), job, None, 0, 0, NOBODY, QueueOrder.FIFO, (), {})
    return _report(store, facts, preempts, task, machine)


def why_rest(
    store: ReaderStore, view: View, job: LeasedJob, uses: Sequence[QuotaUse], preempts: Preempts
) -> WhyReport:
    """Return what the unplaced tasks of a planned job would wait for, on the view that is planned.

    `uses` are its quotas as they would be.
    """
    facts = _Facts(view, job, None, job.placed, 0, NOBODY, QueueOrder.FIFO, (), {})
    return _report(store, facts, preempts, None, None, uses=uses)


def _report(
    store: ReaderStore,
    facts: _Facts,
    preempts: Preempts,
    task: int | None,
    machine: str | None,
    *,
    uses: Sequence[QuotaUse] | None = None,
) -> WhyReport:
    view, job, status = facts.view, facts.job, facts.status
    uses = store.quotas() if uses is None else uses
    needs = quota_needs(job, facts.running, uses) if len(job.unplaced) else []
    situation = _situation(store, facts, needs, preempts)
    finding = find_reason(situation)
    asked = job
    if finding.reason is Reason.PATIENT:
        asked = with_preferences_required(job, patient_groups(view, job))
    group = group_that_waits(view, asked) if task is None else _group_of(job.spec, task)
    rules = requirements_of(view, asked, group)
    rules_there: Sequence[MachineRule] = ()
    if machine is not None:
        rules_there = [*rules_on(rules, view.names.index(machine)), *_quota_rules(needs)]
    names = dict(zip(view.id.tolist(), view.names, strict=True))
    return WhyReport(
        job=status,
        spec=job.spec,
        finding=finding,
        differs=None if status is None else _difference(status, finding.reason),
        group=group,
        funnel=funnel(view, rules),
        nearest=nearest(view, rules) if len(job.unplaced) else (),
        needs=needs,
        quotas=left_for(job.spec.tenant, job.spec.scheduler, uses),
        line=situation.line,
        fair_position=situation.fair_position,
        evictions=situation.evictions,
        transactions=told_transactions(facts.transactions, names),
        placements=facts.placements,
        machine=machine,
        rules=rules_there,
    )


def _situation(
    store: ReaderStore, facts: _Facts, needs: Sequence[QuotaNeed], preempts: Preempts
) -> Situation:
    view, job = facts.view, facts.job
    notices: Sequence[Notice] = ()
    evictions, over = None, None
    if len(job.unplaced) >= max(1, job.lacking) and not has_room(view, job):
        notices = store.notices()
        evictions = _evictions(store, view, job, preempts=preempts(job.spec.scheduler))
        over = _after_notices(store, view, notices)
    fair_position = None
    if facts.order.is_fair:
        tenant, fits = job.spec.tenant, evictions is None
        fair_position = read_fair_position(store, view, facts.order, tenant, has_room=fits)
    return Situation(
        view=view,
        job=job,
        status=facts.status,
        waits_ms=facts.waits_ms,
        kinds_running=frozenset(live_kinds(store.reports())),
        needs=needs,
        line=facts.line,
        fair_position=fair_position,
        order=facts.order,
        transactions=facts.transactions,
        notices=notices,
        evictions=evictions,
        after_notices=over,
        round_due_s=next_round_s(store, job.spec.scheduler),
    )


def _evictions(
    store: ReaderStore, view: View, job: LeasedJob, *, preempts: bool | None
) -> Evictions:
    asked, of = machines_to_ask_of(view, job)
    return evictions_for(
        view,
        job,
        store.occupants(asked),
        looked_at=len(asked),
        of=of,
        gap=store.precedence_gap(),
        preempts=preempts,
    )


def _after_notices(store: ReaderStore, view: View, notices: Sequence[Notice]) -> View | None:
    if not notices:
        return None
    some = notices[: LIMITS.occupied_machines_max]
    return after_notices(view, some, store.occupants(integers([it.machine for it in some])))


def _quota_rules(needs: Sequence[QuotaNeed]) -> list[MachineRule]:
    return [MachineRule("quota", str(need), need.suffices, need.figures) for need in needs]


def _group_of(spec: JobSpec, task: int) -> int:
    ends = np.cumsum([group.tasks for group in spec.groups])
    return int(np.searchsorted(ends, task, side="right"))


def _difference(status: JobStatus, now: Reason) -> str | None:
    if status.park_reason is None or agrees(status.park_reason, now):
        return None
    detail = f": {status.park_detail}" if status.park_detail else ""
    return f"{status.park_reason.value}{detail}"


def _as_leased(waiting: WaitingJob, status: JobStatus) -> LeasedJob:
    return LeasedJob(
        id=waiting.id,
        token=NO_LEASE,
        spec=waiting.spec,
        unplaced=waiting.unplaced,
        placed_task=waiting.placed_task,
        placed_machine=waiting.placed_machine,
        placed=waiting.placed,
        fruitless=status.fruitless,
        age_ms=waiting.age_ms,
    )
