"""A store in front of a store: it passes every call on.

Goal     The base of wrappers between a caller and a store: auditor, faults, recorders.
Promise  It changes nothing and keeps nothing; override the calls to be observed or disturbed.
Source   omega/store/protocols.py, method for method.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from omega.cell.partition import WHOLE, Parts
from omega.lifecycle.states import State
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index, Mask
from omega.model.claims import Transaction
from omega.model.elastic import PhaseProgress
from omega.model.elastic_jobs import ElasticJob
from omega.model.exits import PastExit, TaskExit, TaskOutput
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.machines import Changes, Machines, MachineState, Snapshot
from omega.model.occupants import Occupants, Yielding
from omega.model.outcomes import Outcome
from omega.model.progress import JobProgress
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.store.holdings import Holdings, IdleJob
from omega.store.leases import HandBack, ParkedJob, Parking
from omega.store.planned import PlannedJob, PlannedOutcome
from omega.store.rounds import LastRound, NotYet, Round
from omega.store.status import CellUse, JobStatus, Notice, ProcessReport, Violation
from omega.store.turns import NoTurn, TurnGrant, TurnRequest
from omega.store.usage import Usage, UsageBy
from omega.testing.pass_through_inquiries import InquiriesPassThrough
from omega.testing.pass_through_lanes import LanesPassThrough
from omega.testing.pass_through_pipelines import PipelinesPassThrough


class PassThrough(InquiriesPassThrough, LanesPassThrough, PipelinesPassThrough):
    """A store that passes every call to another store."""

    def add_machines(self, machines: Machines) -> Ids:
        """Pass on."""
        return self._store.add_machines(machines)

    def snapshot(self) -> Snapshot:
        """Pass on."""
        return self._store.snapshot()

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Pass on."""
        return self._store.changes_since(mark, parts)

    def commit(self, transaction: Transaction) -> Outcome:
        """Pass on."""
        return self._store.commit(transaction)

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """Pass on."""
        return self._store.end_tasks(job, task, started_ms)

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Pass on."""
        self._store.report_progress(job, steps, run_ms)

    def progress(self, job: Ids) -> JobProgress:
        """Pass on."""
        return self._store.progress(job)

    def report_phases(self, job: Ids, phase: Index, done: Ids, busy_ms: Ids) -> None:
        """Pass on."""
        self._store.report_phases(job, phase, done, busy_ms)

    def phases(self, job: Ids) -> list[PhaseProgress]:
        """Pass on."""
        return self._store.phases(job)

    def add_helpers(
        self,
        scheduler: str,
        parent: int,
        tasks: int,
        *,
        precedence: int,
        holder: str,
        lease_ms: int,
    ) -> LeasedJob | None:
        """Pass on."""
        return self._store.add_helpers(
            scheduler, parent, tasks, precedence=precedence, holder=holder, lease_ms=lease_ms
        )

    def end_helpers(self, scheduler: str, job: Ids, task: Index) -> int:
        """Pass on."""
        return self._store.end_helpers(scheduler, job, task)

    def elastic_jobs(self, scheduler: str, *, jobs_max: int) -> list[ElasticJob]:
        """Pass on."""
        return self._store.elastic_jobs(scheduler, jobs_max=jobs_max)

    def machine_revision(self, machine: int) -> tuple[int, int]:
        """Pass on."""
        return self._store.machine_revision(machine)

    def running(self, job: Ids, task: Index, started_ms: Ids) -> Mask:
        """Pass on."""
        return self._store.running(job, task, started_ms)

    def programs(self, jobs: Ids) -> Mapping[int, JobSpec]:
        """Pass on."""
        return self._store.programs(jobs)

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        """Pass on."""
        return self._store.report_exits(exits)

    def report_outputs(self, outputs: Sequence[TaskOutput]) -> None:
        """Pass on."""
        self._store.report_outputs(outputs)

    def addresses(self, jobs: Ids) -> Mapping[int, Mapping[int, str]]:
        """Return where the tasks of those of these gangs run, by job and task."""
        return self._store.addresses(jobs)

    def register_machine(self, machine: Machines, address: str | None = None) -> int:
        """Pass on."""
        return self._store.register_machine(machine, address)

    def hold_machine(self, machine: int, holder: UUID, *, lease_ms: int) -> bool:
        """Pass on."""
        return self._store.hold_machine(machine, holder, lease_ms=lease_ms)

    def leave_machine(self, machine: int, holder: UUID) -> int:
        """Pass on."""
        return self._store.leave_machine(machine, holder)

    def free_machine(self, machine: int, holder: UUID) -> bool:
        """Pass on."""
        return self._store.free_machine(machine, holder)

    def expire_machines(self) -> list[int]:
        """Pass on."""
        return self._store.expire_machines()

    def exits(self, job: int, *, exits_max: int = 100) -> list[PastExit]:
        """Pass on."""
        return self._store.exits(job, exits_max=exits_max)

    def output(self, job: int, task: int, stream: str) -> TaskOutput | None:
        """Pass on."""
        return self._store.output(job, task, stream)

    def output_sizes(self, job: int) -> list[TaskOutput]:
        """Pass on."""
        return self._store.output_sizes(job)

    def jobs_named(self, name: str, *, jobs_max: int = 100) -> list[JobStatus]:
        """Pass on."""
        return self._store.jobs_named(name, jobs_max=jobs_max)

    def helpers(self, job: int, *, jobs_max: int = 100) -> list[JobStatus]:
        """Pass on."""
        return self._store.helpers(job, jobs_max=jobs_max)

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Pass on."""
        return self._store.set_state(machine, state)

    def lose_tasks(self, machine: Ids) -> int:
        """Pass on."""
        return self._store.lose_tasks(machine)

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Pass on."""
        self._store.resize(machine, capacity, notice_ms=notice_ms)

    def enforce_notices(self) -> int:
        """Pass on."""
        return self._store.enforce_notices()

    def occupants(self, machine: Ids) -> Occupants:
        """Pass on."""
        return self._store.occupants(machine)

    def yielding(self, precedence: int) -> Yielding:
        """Pass on."""
        return self._store.yielding(precedence)

    def precedence_gap(self) -> int:
        """Pass on."""
        return self._store.precedence_gap()

    def set_precedence_gap(self, gap: int) -> None:
        """Pass on."""
        self._store.set_precedence_gap(gap)

    def set_quota(self, quota: Quota) -> None:
        """Pass on."""
        self._store.set_quota(quota)

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Pass on."""
        return self._store.remove_quota(scope, name)

    def quotas(self) -> list[QuotaUse]:
        """Pass on."""
        return self._store.quotas()

    def notices(self) -> list[Notice]:
        """Pass on."""
        return self._store.notices()

    def allocations(self) -> Allocations:
        """Pass on."""
        return self._store.allocations()

    def allocations_on(self, machine: Ids) -> Allocations:
        """Pass on."""
        return self._store.allocations_on(machine)

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Pass on."""
        return self._store.allocations_since(mark)

    def now_ms(self) -> int:
        """Pass on."""
        return self._store.now_ms()

    def verify(self) -> Sequence[Violation]:
        """Pass on."""
        return self._store.verify()

    def begin_round(self, scheduler: str, *, holder: str, length_ms: int) -> Round | NotYet:
        """Pass on."""
        return self._store.begin_round(scheduler, holder=holder, length_ms=length_ms)

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        """Pass on."""
        return self._store.note_round(scheduler, number, memo)

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Pass on."""
        return self._store.take_turn(request, lease_ms=lease_ms)

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        """Pass on."""
        return self._store.recall(scheduler, number, jobs, lease_ms=lease_ms)

    def last_rounds(self) -> list[LastRound]:
        """Pass on."""
        return self._store.last_rounds()

    def unfinished(self, jobs: Sequence[int]) -> set[int]:
        """Pass on."""
        return self._store.unfinished(jobs)

    def allocations_of(self, jobs: Sequence[int]) -> Allocations:
        """Pass on."""
        return self._store.allocations_of(jobs)

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Pass on."""
        return self._store.submit(specs)

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Pass on."""
        return self._store.renew(leases, lease_ms=lease_ms)

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Pass on."""
        return self._store.hand_back(jobs)

    def park(self, jobs: Sequence[Parking]) -> int:
        """Pass on."""
        return self._store.park(jobs)

    def parked(self, scheduler: str, *, jobs_max: int, by_lane: bool = False) -> list[ParkedJob]:
        """Pass on."""
        return self._store.parked(scheduler, jobs_max=jobs_max, by_lane=by_lane)

    def wake(self, jobs: Sequence[int]) -> list[int]:
        """Pass on."""
        return self._store.wake(jobs)

    def rescue(self) -> list[int]:
        """Pass on."""
        return self._store.rescue()

    def cancel(self, job: int) -> bool:
        """Pass on."""
        return self._store.cancel(job)

    def hold(self, job: int) -> bool:
        """Pass on."""
        return self._store.hold(job)

    def release(self, job: int) -> bool:
        """Pass on."""
        return self._store.release(job)

    def requeue(self, job: int) -> bool:
        """Pass on."""
        return self._store.requeue(job)

    def set_precedence(self, job: int, precedence: int) -> bool:
        """Pass on."""
        return self._store.set_precedence(job, precedence)

    def job(self, job: int) -> JobStatus | None:
        """Pass on."""
        return self._store.job(job)

    def jobs(
        self,
        *,
        state: State | None = None,
        scheduler: str | None = None,
        tenant: str | None = None,
        name: str | None = None,
        jobs_max: int = 100,
    ) -> list[JobStatus]:
        """Pass on."""
        return self._store.jobs(
            state=state, scheduler=scheduler, tenant=tenant, name=name, jobs_max=jobs_max
        )

    def placements(self, job: int) -> Mapping[int, str]:
        """Pass on."""
        return self._store.placements(job)

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Pass on."""
        self._store.report(kind, replica, pid=pid, facts=facts)

    def reports(self) -> list[ProcessReport]:
        """Pass on."""
        return self._store.reports()

    def own_report(self, kind: str, replica: str) -> ProcessReport | None:
        """Pass on."""
        return self._store.own_report(kind, replica)

    def forget(self, kind: str, replica: str) -> None:
        """Pass on."""
        self._store.forget(kind, replica)

    def use(self) -> CellUse:
        """Pass on."""
        return self._store.use()

    def holdings(self, over_ms: int) -> Holdings:
        """Pass on."""
        return self._store.holdings(over_ms)

    def usage(self, over_ms: int, by: UsageBy) -> Usage:
        """Pass on."""
        return self._store.usage(over_ms, by)

    def idle_jobs(self, idle_ms: int) -> list[IdleJob]:
        """Pass on."""
        return self._store.idle_jobs(idle_ms)

    def submit_planned(self, planned: PlannedJob) -> PlannedOutcome:
        """Pass on."""
        return self._store.submit_planned(planned)

    def close(self) -> None:
        """Pass on."""
        self._store.close()
