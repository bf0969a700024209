"""The operations of a store for agents, which run the programs of tasks on real machines.

Goal     Tell an agent what to run on its machine; record how programs ended and what they wrote.
Promise  A login hears and reports of its own machines alone. Every call may be repeated: nothing is
         counted twice. What an agent polls is read by a primary key.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from omega.model.arrays import Ids, Index, Mask
from omega.model.exits import PastExit, TaskExit, TaskOutput
from omega.model.jobs import JobSpec
from omega.model.machines import Machines


class AgentStore(Protocol):
    """The calls of an agent. Each names at most `LIMITS.tasks_per_release_max` tasks or jobs."""

    def machine_revision(self, machine: int) -> tuple[int, int]:
        """Return the revision of an own machine's row, and the mark of the read.

        Every change of what runs there raises the revision. Raises BadInput for a machine that
        never existed.
        """
        ...

    def running(self, job: Ids, task: Index, started_ms: Ids) -> Mask:
        """Return which of these tasks have the allocation that began then, on own machines."""
        ...

    def programs(self, jobs: Ids) -> Mapping[int, JobSpec]:
        """Return those of these jobs that have a task on an own machine, ascending by id.

        One that this program cannot read is left out. So are large jobs beyond
        `LIMITS.lease_bytes_max` in all: ask again for the rest.
        """
        ...

    def addresses(self, jobs: Ids) -> Mapping[int, Mapping[int, str]]:
        """Return where the tasks of those of these gangs run, by job and task.

        Only gangs that need all of their tasks, and have one on an own machine. The address is what
        the agent of the task's machine said when it registered, or the machine's name.
        """
        ...

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        """End those of these tasks whose allocation began then; return how many there were.

        The first exit of each task is recorded. Once the last task of a job has ended, the job has
        failed if a task has. A gang fails with its first task that fails: what runs of it ends, and
        what is unplaced is dropped. Raises NotAllowed, and changes nothing, if one of the tasks
        runs elsewhere.
        """
        ...

    def report_outputs(self, outputs: Sequence[TaskOutput]) -> None:
        """Keep the ends of outputs of tasks that run on own machines, or exited there.

        Other tasks are passed over. An earlier start does not replace a later one, nor a shorter
        output a longer one.
        """
        ...

    def register_machine(self, machine: Machines, address: str | None = None) -> int:
        """Add one machine, or bring the one of its name up to date; return its id.

        The login stands for what it adds. A machine that is there already gets this capacity, these
        attributes and, unless it is None, this address, by which tasks on other machines reach it.
        One that is down stays down: an operator may have taken it down. Raises NotAllowed if it is
        not the login's own, and BadInput if it has left the cell, the login stands for too many, or
        `is_address` is False of the address.
        """
        ...

    def hold_machine(self, machine: int, holder: UUID, *, lease_ms: int) -> bool:
        """Have this agent hold an own machine until `lease_ms` from now, by the store's clock.

        An agent prolongs its own lease, run out or not, and takes one that nobody has or that has
        run out. False, and nothing changes, if another agent holds the machine. A machine that
        `expire_machines` or `leave_machine` took down returns to its state before, unless the owner
        has set its state since. Raises BadInput for a machine that never existed, and unless
        `lease_ms` is within 0 and `LIMITS.lease_ms_max`; a lease of 0 has run out at once.
        """
        ...

    def leave_machine(self, machine: int, holder: UUID) -> int:
        """Give up an own machine: end this agent's lease, and take the machine down.

        Its tasks are evicted, as `lose_tasks` does; returns how many. A lease that has run out is
        given up as well. 0, and nothing changes, if another agent has the lease, or none. If the
        call breaks off, the machine may be down with its tasks still there: schedulers clear it,
        and so does another call.
        """
        ...

    def free_machine(self, machine: int, holder: UUID) -> bool:
        """Remove the lease of an own machine, which then stays up however long its agent is silent.

        Removes this agent's lease, or one that has run out. A machine that `expire_machines` or
        `leave_machine` took down returns to its state before, as by `hold_machine`; its tasks keep
        their places. False, and nothing changes, if another agent holds the machine.
        """
        ...


class ExitReader(Protocol):
    """What became of programs, for users."""

    def exits(self, job: int, *, exits_max: int = 100) -> list[PastExit]:
        """Return how tasks of a job ended: those that failed first, and the newest first."""
        ...

    def output(self, job: int, task: int, stream: str) -> TaskOutput | None:
        """Return the end of an output of a task, as far as it was reported."""
        ...

    def output_sizes(self, job: int) -> list[TaskOutput]:
        """Return all outputs of a job without their tails, by task and stream."""
        ...
