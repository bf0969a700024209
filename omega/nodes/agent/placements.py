"""What the cell has placed on a machine, as its agent reads it.

Goal     Keep an agent's tasks as the cell has them, for one read by a primary key while nothing
         changes.
Promise  A task is taken in once. One without a program is left to virtual nodes.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Callable, Sequence
from typing import Final

from omega.framework.effects import Effects
from omega.model.allocations import Allocations
from omega.model.jobs import JobSpec
from omega.nodes.agent.agent_task import AgentTask, Phase
from omega.nodes.agent.store_calls import addresses_of, if_running, progress_of, specs_of
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.calling import called, parts_for_calls

SPECS_KEPT: Final = 16
"""Of so many jobs without a task here the agent still knows what they are: in a job of short tasks
that run in waves, the next one may come at once."""


class Placements:
    """The tasks that are placed on one machine."""

    def __init__(
        self,
        machine: int,
        tasks: dict[TaskKey, AgentTask],
        refuse: Callable[[AgentTask, str], None],
    ) -> None:
        """`tasks` are the agent's, to which new ones are added.

        `refuse` is given each task that cannot be started, and why.
        """
        self._machine = machine
        self._tasks = tasks
        self._refuse = refuse
        self._specs: dict[int, JobSpec] = {}
        """By job, for those with tasks here, and for some that had."""
        self._revision = -1
        self._mark = 0  # everything that is live, the first time

    @property
    def are_known(self) -> bool:
        """Whether they were read once."""
        return self._revision >= 0

    def reported(self, ended: Sequence[AgentTask]) -> None:
        """Note that a report ended at least one of these tasks, and did nothing else here.

        It raised the revision by one, so a machine with that revision is not read again. Not noted
        are failures, which end the other tasks of a gang, and the ends of elastic jobs, which end
        their helpers.
        """
        ends_others = (
            task.exit is None
            or not task.exit.is_success
            or task.spec is None
            or task.spec.workers is not None
            for task in ended
        )
        if not any(ends_others):
            self._revision += 1

    def read(self, lose: Callable[[AgentTask], None], *, in_any_case: bool) -> Effects[bool]:
        """Give tasks that have lost their place to `lose`, and then take in those that are new.

        The new ones may have got the room of those that were lost, so these are lost to the agent
        too, whether or not a later call is answered. Returns False if the machine's row has not
        changed since the last read; it is read all the same if `in_any_case`.
        """
        machine = self._machine
        revision, mark = yield from called(
            "revision", lambda store: store.machine_revision(machine)
        )
        if revision == self._revision and not in_any_case:
            self._mark = mark  # whatever commits later has at least this number
            return False
        since = self._mark
        found, next_mark = yield from called(
            "allocations", lambda store: store.allocations_since(since)
        )
        for task in (yield from self._lost()):
            lose(task)
        yield from self._accept(found.only(found.machine == machine))
        self._mark, self._revision = next_mark, revision
        self._forget_jobs()
        return True

    def _forget_jobs(self) -> None:
        """Drop what is known of jobs without tasks here, if they are many."""
        jobs = {key.job for key in self._tasks}
        if len(self._specs.keys() - jobs) > SPECS_KEPT:
            self._specs = {job: spec for job, spec in self._specs.items() if job in jobs}

    def _lost(self) -> Effects[list[AgentTask]]:
        """Return the tasks of which the store has no allocation any more."""
        live = [task for task in self._tasks.values() if task.is_live]
        keys = [task.key for task in live]
        lost: list[AgentTask] = []
        for part in parts_for_calls(len(keys)):
            runs = yield from called("running", if_running(keys[part]))
            still = runs.tolist()
            lost += [task for task, runs in zip(live[part], still, strict=True) if not runs]
        return lost

    def _accept(self, found: Allocations) -> Effects[None]:
        """Take in the tasks that are new, and read the jobs that are not known."""
        columns = (found.job.tolist(), found.task.tolist(), found.started_ms.tolist())
        for row, named in enumerate(zip(*columns, strict=True)):
            key = TaskKey(*named)
            if key not in self._tasks:
                self._tasks[key] = AgentTask(key, found.amounts[row])
        unknown = {
            task.key.job
            for task in self._tasks.values()
            if task.spec is None and task.is_live and task.key.job not in self._specs
        }
        self._specs.update((yield from specs_of(unknown)))
        for task in list(self._tasks.values()):
            if task.spec is None and task.is_live:
                self._describe(task)
        yield from self._find_peers()
        yield from self._find_progress()

    def _describe(self, task: AgentTask) -> None:
        """Give a task its job; one without a program is left to virtual nodes."""
        task.spec = self._specs.get(task.key.job)
        if task.spec is None:
            if task.phase is Phase.WAITING:
                self._refuse(task, "this agent cannot read its job")
        elif task.program is None:
            del self._tasks[task.key]

    def _find_peers(self) -> Effects[None]:
        """Read where the gangs run whose tasks wait to be told."""
        waiting = [
            task
            for task in self._waiting()
            if task.spec and task.spec.needs_all_tasks and task.addresses is None
        ]
        found = yield from addresses_of({task.key.job for task in waiting})
        for task in waiting:
            where = found.get(task.key.job, {})
            if task.spec is not None and where:  # else it is about to be lost
                task.addresses = tuple(where.get(peer, "") for peer in range(task.spec.tasks))

    def _find_progress(self) -> Effects[None]:
        """Read how far the jobs in steps have come whose tasks wait to be told."""
        waiting = [
            task
            for task in self._waiting()
            if task.spec and task.spec.work and task.steps_done is None
        ]
        found = yield from progress_of({task.key.job for task in waiting})
        for task in waiting:
            if task.key.job in found:
                task.steps_done, task.run_ms = found[task.key.job]

    def _waiting(self) -> list[AgentTask]:
        return [task for task in self._tasks.values() if task.phase is Phase.WAITING]
