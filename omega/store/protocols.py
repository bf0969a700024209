"""What a store must do: one protocol for each role, and one for the whole store.

Goal     The loop, the nodes and the command line depend on these protocols and on no store.
Promise  A role's protocol has what its login may call. Each method is declared once: in its role's
         protocol or, if several roles need it, in a small one that theirs inherit. Every
         implementation of `Store` passes the contracts in `omega.testing.contracts`.
Source   docs/decisions/0002-one-store-protocol.md, docs/decisions/0017-roles.md.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from omega.cell.partition import WHOLE, Parts
from omega.lifecycle.states import State
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index
from omega.model.claims import Transaction
from omega.model.elastic import PhaseProgress
from omega.model.jobs import JobSpec
from omega.model.machines import Changes, Machines, MachineState, Snapshot
from omega.model.occupants import Occupants, Yielding
from omega.model.outcomes import Outcome
from omega.model.progress import JobProgress
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.ordering.tenants import Tenant
from omega.store.agents import AgentStore, ExitReader
from omega.store.elastic import HelperStore
from omega.store.holdings import Holdings, IdleJob
from omega.store.inquiries import LineReader
from omega.store.lanes import LaneStore, TenantReader
from omega.store.leases import JobLeases
from omega.store.pipelines import PipelineReader, PipelineStore
from omega.store.planned import PlannedJob, PlannedOutcome
from omega.store.rounds import RoundReader, RoundStore
from omega.store.status import CellUse, JobStatus, Notice, ProcessReport, Violation
from omega.store.stories import StoryReader
from omega.store.turns import TurnStore
from omega.store.usage import Usage, UsageBy
from omega.store.waiting import WaitingJobStore
from omega.store.watching import CellWatching, QueueReader


class SnapshotSource(Protocol):
    """The cell at one moment, and the time."""

    def snapshot(self) -> Snapshot:
        """Read the whole cell."""
        ...

    def now_ms(self) -> int:
        """Return the time by the store's clock, in milliseconds since the epoch."""
        ...


class ViewSource(SnapshotSource, Protocol):
    """The store as views are synchronised from it."""

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Read the rows in these parts that transactions from number `mark` on have written."""
        ...


class SharedViewSource(ViewSource, TurnStore, Protocol):
    """What a refresher needs whose scheduler reads only its turn's parts of the cell."""


class ProgressReader(Protocol):
    """The progress of jobs in steps, and of those with phases."""

    def phases(self, job: Ids) -> list[PhaseProgress]:
        """Return the progress of those of these jobs that have phases or help such a job.

        They are ascending by id.
        """
        ...

    def progress(self, job: Ids) -> JobProgress:
        """Return the progress of those of these jobs that have `work`, ascending by id."""
        ...


class QuotaReader(Protocol):
    """The quotas and their balances."""

    def quotas(self) -> list[QuotaUse]:
        """Return all quotas with their balances, by scope and name."""
        ...


class ProcessRegistry(Protocol):
    """The reports of the processes on one store."""

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace the report of this process."""
        ...

    def own_report(self, kind: str, replica: str) -> ProcessReport | None:
        """Return the last report of this process under the caller's login, None without any."""
        ...

    def forget(self, kind: str, replica: str) -> None:
        """Remove the report of a process that has ended cleanly."""
        ...


class CommitStore(Protocol):
    """The judge of claims."""

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now; apply the granted ones, atomically.

        A repeated id returns the recorded outcome with rows as they are now, and applies nothing.
        Raises StoreUnavailable if no answer came: the transaction may have been applied or not;
        committing it again returns its outcome.
        """
        ...


class OccupantReader(Protocol):
    """Who runs on machines and yields, for schedulers that look for victims."""

    def occupants(self, machine: Ids) -> Occupants:
        """Read who runs on these machines, at most `LIMITS.occupied_machines_max`."""
        ...

    def yielding(self, precedence: int) -> Yielding:
        """Read how much of each machine is held by tasks that yield to a precedence."""
        ...


class ForcedEvictionStore(Protocol):
    """Forced evictions from machines that have failed, left or shrunk.

    The owner changes the state or capacity of a machine, or the lease of its agent runs out; the
    owner or any scheduler then evicts its tasks.
    """

    def expire_machines(self) -> list[int]:
        """Take down the machines whose lease has run out; return them, ascending.

        Open and draining ones are taken down; their agents bring them back, by `hold_machine`. All
        others stay as they are, and so does a machine that no agent has held. Tasks are not
        evicted: that is for `lose_tasks`. Waits for no agent: a lease that is in use is left for
        the next call.
        """
        ...

    def lose_tasks(self, machine: Ids) -> int:
        """Evict the tasks on those of the machines that are down or gone; return how many.

        These tasks are unplaced again, and so are all tasks of gangs that fall below their minimum.
        Jobs that another transaction has locked keep theirs. If all are locked, one is waited for.
        """
        ...

    def enforce_notices(self) -> int:
        """Evict tasks above capacity on machines whose notice has ended; return how many.

        Lowest precedence comes first, then the latest start. A notice that is no longer needed is
        removed. Tasks of jobs that another transaction has locked are left, and so is the notice.
        """
        ...


class AllocationReader(Protocol):
    """What runs of given jobs."""

    def allocations_of(self, jobs: Sequence[int]) -> Allocations:
        """Read the live allocations of these jobs."""
        ...


class ProcessStore(AllocationReader, SnapshotSource, ProgressReader, ProcessRegistry, Protocol):
    """The calls of both schedulers and nodes."""

    def close(self) -> None:
        """Close all connections; closing twice is harmless."""
        ...


class SchedulerStore(
    ProcessStore,
    SharedViewSource,
    QuotaReader,
    JobLeases,
    LaneStore,
    CommitStore,
    OccupantReader,
    ForcedEvictionStore,
    RoundStore,
    HelperStore,
    Protocol,
):
    """The calls of a scheduler process; the role omega_scheduler."""


class NodeStore(ProcessStore, AgentStore, Protocol):
    """The calls of a process that stands for machines; the role omega_node."""

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read allocations granted by transactions not ended at `mark`, and the next mark."""
        ...

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End those of these tasks that run, and free their amounts; return how many ran.

        With `started_ms` only the allocations that began then, as they were read, are ended: a task
        that was evicted and placed again since is left.
        """
        ...

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Note how far jobs in steps have come since they were submitted.

        Less than is on record changes nothing. Jobs that are over, or not in steps, are passed
        over.
        """
        ...

    def report_phases(self, job: Ids, phase: Index, done: Ids, busy_ms: Ids) -> None:
        """Note the activities that elastic jobs have done, and the time that workers took for them.

        Both are counted since the job was submitted, by phase from 0. Less than is on record
        changes nothing. Jobs that are over, or have no such phase, are passed over.
        """
        ...


class JobReader(
    ProgressReader, QuotaReader, ExitReader, LineReader, QueueReader, RoundReader, Protocol
):
    """Jobs, and the processes at work: where a job runs, or why it waits."""

    def job(self, job: int) -> JobStatus | None:
        """Return one job's status."""
        ...

    def jobs(
        self,
        *,
        state: State | None = None,
        scheduler: str | None = None,
        tenant: str | None = None,
        name: str | None = None,
        jobs_max: int = 100,
    ) -> list[JobStatus]:
        """Return jobs, newest first; without those of helpers.

        In `name`, a star stands for any text.
        """
        ...

    def jobs_named(self, name: str, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return jobs of this name, newest first; without those of helpers."""
        ...

    def helpers(self, job: int, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return the jobs of helpers of an elastic job, newest first."""
        ...

    def placements(self, job: int) -> Mapping[int, str]:
        """Return the machine name of each running task of a job."""
        ...

    def reports(self) -> list[ProcessReport]:
        """Return the last report of each process, oldest start first."""
        ...


class SubmitterStore(JobReader, WaitingJobStore, PipelineStore, Protocol):
    """The calls of a user with jobs; the role omega_submitter."""

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs, all or none; return their ids in order."""
        ...

    def cancel(self, job: int) -> bool:
        """Cancel a job and free its amounts; return False if it has ended or never existed."""
        ...


class ReaderStore(
    AllocationReader,
    ViewSource,
    JobReader,
    OccupantReader,
    StoryReader,
    CellWatching,
    TenantReader,
    PipelineReader,
    Protocol,
):
    """Reads that show and check a cell; the role omega_reader."""

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        ...

    def allocations_on(self, machine: Ids) -> Allocations:
        """Read the live allocations on these machines."""
        ...

    def precedence_gap(self) -> int:
        """Return by how much a job's precedence must be higher to evict another's tasks."""
        ...

    def notices(self) -> list[Notice]:
        """Return the notices of machines that are used above their capacity, ascending by id."""
        ...

    def use(self) -> CellUse:
        """Sum up the cell and its queue."""
        ...

    def holdings(self, over_ms: int) -> Holdings:
        """Return what jobs held in the last so many milliseconds, by tenant and kind.

        Of tasks that have ended, the amounts are those that their group asks for.
        """
        ...

    def usage(self, over_ms: int, by: UsageBy) -> Usage:
        """Return what was used in the last so many milliseconds, the largest shares first.

        Amounts are as in `holdings`. Waits are those for the first attempts of jobs, without jobs
        of helpers.
        """
        ...

    def idle_jobs(self, idle_ms: int) -> list[IdleJob]:
        """Return jobs that have held room for so long without getting on, the longest first."""
        ...

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        ...


class OwnerStore(ReaderStore, ForcedEvictionStore, Protocol):
    """The calls of the cell's owner: reads, and changes of machines and quotas."""

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name already in use."""
        ...

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed.

        Tasks on a machine that is down or gone still hold their amounts until `lose_tasks` is
        called. Gone is final. Raises BadInput for an id that never existed.
        """
        ...

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity; claims are judged by the new one at once.

        Use above the new capacity is tolerated for `notice_ms`, and after that until the next call
        of `enforce_notices`. Raises BadInput for an id that never existed and for a machine that
        is gone.
        """
        ...

    def submit_planned(self, planned: PlannedJob) -> PlannedOutcome:
        """Submit a job and commit its claims, all of them by the sequence rule, or change nothing.

        Nothing is changed either if anything else would be evicted than is planned. It goes past
        every scheduler, and so is the owner's.
        """
        ...

    def set_precedence_gap(self, gap: int) -> None:
        """Change the gap for every commit from now on. Raises BadInput unless it is positive.

        A change raises the cell's generation, so that parked jobs are looked at again.
        """
        ...

    def set_quota(self, quota: Quota) -> None:
        """Limit what the jobs of a tenant or of a kind of scheduler hold, or change the limits.

        Every commit from now on is judged by it. Tasks above a limit go on, and none are added.
        """
        ...

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Remove a quota; return False if there was none."""
        ...

    def set_tenant(self, tenant: Tenant) -> None:
        """Set a tenant's weight and parent. Raises BadInput if tenants would make no tree."""
        ...

    def remove_tenant(self, name: str) -> bool:
        """Forget a tenant's settings; return False if there were none. Parents are BadInput."""
        ...


class Store(SchedulerStore, NodeStore, SubmitterStore, OwnerStore, Protocol):
    """All operations of a store, in one object with one connection at a time."""
