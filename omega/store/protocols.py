"""What a store must do, in one protocol for each role and one for all of it.

Goal     The protocols that the loop, the nodes and the command line are written against.
Promise  A role's protocol is what its login may call. Each method is declared once: in the protocol
         of its role or, where several roles need it, in a small one that theirs inherit. Every
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
from omega.model.jobs import JobSpec
from omega.model.machines import Changes, Machines, MachineState, Snapshot
from omega.model.outcomes import Outcome
from omega.model.progress import JobProgress
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.store.leases import JobLeases
from omega.store.rounds import RoundStore
from omega.store.status import CellUse, JobStatus, Notice, ProcessReport, Violation
from omega.store.turns import TurnStore


class SnapshotSource(Protocol):
    """The cell at one moment, and the time."""

    def snapshot(self) -> Snapshot:
        """Read the whole cell."""
        ...

    def now_ms(self) -> int:
        """Return the time by the store's clock, in milliseconds since the epoch."""
        ...


class ViewSource(SnapshotSource, Protocol):
    """What a view is synchronised from."""

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Read the rows changed by transactions that were not over at `mark`, in these parts."""
        ...


class SharedViewSource(ViewSource, TurnStore, Protocol):
    """What views are synchronised from by schedulers that share out their reading."""


class ProgressReader(Protocol):
    """The progress of jobs in steps."""

    def progress(self, job: Ids) -> JobProgress:
        """Read how far those of these jobs have come whose work is counted in steps."""
        ...


class QuotaReader(Protocol):
    """The quotas and what is left of them."""

    def quotas(self) -> list[QuotaUse]:
        """Return all quotas with what is left of each, by scope and name."""
        ...


class ProcessRegistry(Protocol):
    """What the processes on one store say of themselves."""

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace what this process said of itself."""
        ...

    def forget(self, kind: str, replica: str) -> None:
        """Remove a process that has ended cleanly."""
        ...


class CommitStore(Protocol):
    """What judges claims."""

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now and apply those that stand, atomically.

        The same id again gives the recorded outcome, but with rows as they are now, and applies
        nothing. Raises StoreUnavailable if no answer came: the transaction may or may not have been
        applied, and committing the same one again tells.
        """
        ...


class ForcedEnds(Protocol):
    """Ends of tasks on machines that have failed, left or shrunk.

    The owner says what becomes of a machine; the owner or any scheduler then ends its tasks.
    """

    def lose_tasks(self, machine: Ids) -> int:
        """End by force what runs on those of the machines that are down or gone; return how many.

        The tasks are unplaced again, and with them the gangs that fall below their minimum.
        """
        ...

    def enforce_notices(self) -> int:
        """End by force what no longer fits where a notice has run out; return how many tasks.

        Lowest precedence first, then those started last. Notices that are no longer needed end.
        """
        ...


class ProcessStore(SnapshotSource, ProgressReader, ProcessRegistry, Protocol):
    """What schedulers and nodes both call."""

    def allocations_of(self, jobs: Sequence[int]) -> Allocations:
        """Read the live allocations of these jobs."""
        ...

    def close(self) -> None:
        """Let go of connections; harmless when repeated."""
        ...


class SchedulerStore(
    ProcessStore,
    SharedViewSource,
    QuotaReader,
    JobLeases,
    CommitStore,
    ForcedEnds,
    RoundStore,
    Protocol,
):
    """What a scheduler process calls; the role omega_scheduler."""


class NodeStore(ProcessStore, Protocol):
    """What a process that stands for machines calls; the role omega_node."""

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read live allocations granted by transactions not over at `mark`, and the next mark."""
        ...

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End the live ones among these tasks, free their room; return how many were live.

        `started_ms` tells which allocation of the task is meant, as it was read: one that has
        been evicted and placed anew since is left alone.
        """
        ...

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Note how far jobs in steps have come since they were submitted.

        Less than is on record changes nothing. Jobs that are over, or not in steps, are passed
        over.
        """
        ...


class JobReader(ProgressReader, QuotaReader, Protocol):
    """Jobs, and the processes at work: where a job runs, or why it waits."""

    def job(self, job: int) -> JobStatus | None:
        """Return one job's status."""
        ...

    def jobs(
        self, *, state: State | None = None, scheduler: str | None = None, jobs_max: int = 100
    ) -> list[JobStatus]:
        """Return jobs, newest first."""
        ...

    def placements(self, job: int) -> Mapping[int, str]:
        """Return the machine name of each running task of a job."""
        ...

    def reports(self) -> list[ProcessReport]:
        """Return the last report of each process, oldest start first."""
        ...


class SubmitterStore(JobReader, Protocol):
    """What a user with jobs calls; the role omega_submitter."""

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs, all or none; return their ids in order."""
        ...

    def cancel(self, job: int) -> bool:
        """End a job and free its room; False if it was over already or never was."""
        ...


class ReaderStore(ViewSource, JobReader, Protocol):
    """What is read to show and to check a cell; the role omega_reader."""

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        ...

    def allocations_on(self, machine: Ids) -> Allocations:
        """Read the live allocations on these machines."""
        ...

    def notices(self) -> list[Notice]:
        """Return the notices of machines that are used above their capacity, ascending by id."""
        ...

    def use(self) -> CellUse:
        """Sum up the cell and its queue."""
        ...

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        ...


class OwnerStore(ReaderStore, ForcedEnds, Protocol):
    """What the owner of the cell calls: its verbs read, and change machines and quotas."""

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name that is taken."""
        ...

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed.

        What runs on a machine that is down or gone is still counted until `lose_tasks`. Gone is
        for good. Raises BadInput for a machine that never was.
        """
        ...

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity, for claims at once.

        Use above the new capacity is tolerated for `notice_ms`, and longer until somebody calls
        `enforce_notices`. Raises BadInput for a machine that never was or is gone.
        """
        ...

    def set_quota(self, quota: Quota) -> None:
        """Limit what the jobs of a tenant or of a kind of scheduler hold, or change the limits.

        Judged with every commit from now on. What is held above a limit goes on; nothing is added.
        """
        ...

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Lift a quota; False if there was none."""
        ...


class Store(SchedulerStore, NodeStore, SubmitterStore, OwnerStore, Protocol):
    """All of a store; one object, one connection at a time."""
