"""What agents ask and report, in a memory store.

Goal     Do what `exits.sql` and `registration.sql` do, on plain records.
Promise  Every machine is the caller's own: a memory store has no logins.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from omega.errors import BadInput
from omega.lifecycle.states import FINAL, Trigger
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index, Mask, integers
from omega.model.exits import PastExit, TaskExit, TaskOutput
from omega.model.jobs import JobSpec
from omega.model.machines import Machines, MachineState
from omega.model.names import ADDRESS_RULE, is_address
from omega.store.memory.elastic import MemoryElasticJobs
from omega.store.memory.exits import ExitTable
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import milliseconds
from omega.store.memory.pipelines import MemoryPipelines
from omega.store.readable import readable_sentence


class MemoryAgents(MemoryElasticJobs, MemoryPipelines):
    """A job queue whose tasks end, of themselves or as agents report it."""

    _exits: ExitTable

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End those of these tasks that run, and free their amounts; return how many ran."""
        now_s = self._clock.now()
        meant = [None] * len(job) if started_ms is None else started_ms.tolist()
        named: dict[tuple[int, int], None] = {}
        for number, index, began in zip(job.tolist(), task.tolist(), meant, strict=True):
            if self._slot(number, index, began) is not None:
                named[number, index] = None
        slots: list[int] = []
        took_ms = self._took_ms(named)
        for number, index in named:
            slot = self._jobs[number].end(index, now_s)
            if slot is None:
                continue  # a helper, which has ended with its parent
            slots.append(slot)
            if self._jobs[number].state in FINAL:
                self._leased.pop(number, None)
                slots += self._finish_helpers(number, Trigger.END_ALL)
        self._free(np.array(slots, dtype=np.intp))
        self._end_stages((self._jobs[number], it) for number, it in took_ms.items())
        return len(named)

    def _took_ms(self, tasks: Collection[tuple[int, int]]) -> dict[int, int]:
        """Return for how long the first of these tasks of each stage of a pipeline has run."""
        now_ms, took_ms = milliseconds(self._clock.now()), dict[int, int]()
        for number, index in tasks:
            job = self._jobs[number]
            if job.pipeline is not None:
                began_ms = int(self._allocations.rows["started_ms"][job.slot[index]])
                took_ms[number] = max(took_ms.get(number, 0), now_ms - began_ms)
        return took_ms

    def machine_revision(self, machine: int) -> tuple[int, int]:
        """Return the revision of an own machine's row, and the mark of the read."""
        if not len(self._machines.named(integers([machine]))):
            raise BadInput(f"there is no machine {machine}", field="machine")
        return int(self._machines.revision[machine - 1]), self._transactions

    def running(self, job: Ids, task: Index, started_ms: Ids) -> Mask:
        """Return which of these tasks have the allocation that began then."""
        _refuse_too_many(job)
        named = zip(job.tolist(), task.tolist(), started_ms.tolist(), strict=True)
        return np.array([self._slot(*one) is not None for one in named], dtype=np.bool_)

    def programs(self, jobs: Ids) -> Mapping[int, JobSpec]:
        """Return those of these jobs that have a task that runs, ascending by id."""
        _refuse_too_many(jobs)
        known = (self._jobs[number] for number in sorted(self._jobs.keys() & set(jobs.tolist())))
        return {job.id: job.spec for job in known if len(job.running)}

    def addresses(self, jobs: Ids) -> Mapping[int, Mapping[int, str]]:
        """Return where the tasks of those of these gangs run, by job and task."""
        _refuse_too_many(jobs)
        found: dict[int, dict[int, str]] = {}
        for number in sorted(self._jobs.keys() & set(jobs.tolist())):
            job = self._jobs[number]
            if len(job.running) and job.spec.needs_all_tasks:
                machines = self._allocations.rows["machine"][job.slot[job.running]].tolist()
                tasks = job.running.tolist()
                found[number] = dict(zip(tasks, map(self._machines.address, machines), strict=True))
        return found

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        """End those of these tasks whose allocation began then; return how many there were."""
        _refuse_too_many(exits)
        first: dict[tuple[int, int], TaskExit] = {}
        for it in exits:
            if self._slot(it.job, it.task, it.started_ms) is not None:
                first.setdefault((it.job, it.task), it)
        broken: set[int] = set()
        for it in first.values():
            self._record_exit(it)
            job = self._jobs[it.job]
            job.failed += not it.exit.is_success
            if job.failed and job.spec.minimum:
                broken.add(job.id)
        slots: list[int] = []
        for number in sorted(broken):
            slots += self._stop(self._jobs[number], Trigger.FAIL, of_helpers=Trigger.END_ALL)
        self._free(np.array(slots, dtype=np.intp))
        rest = [(job, task) for job, task in first if job not in broken]
        tasks = np.array([task for _, task in rest], dtype=np.intp)
        self.end_tasks(integers([job for job, _ in rest]), tasks)
        return len(first)

    def report_outputs(self, outputs: Sequence[TaskOutput]) -> None:
        """Keep the ends of outputs of tasks that run, or whose exits were reported."""
        _refuse_too_many(outputs)
        for it in outputs:
            name = it.job, it.task, it.started_ms
            if self._slot(*name) is not None or self._exits.has(*name):
                self._exits.keep(it)

    def register_machine(self, machine: Machines, address: str | None = None) -> int:
        """Add one machine, or bring the one of its name up to date; return its id."""
        (name,) = machine.names
        if address is not None and not is_address(address):
            raise BadInput(f"bad address: {ADDRESS_RULE}", field="address")
        if name not in self._machines.names:
            number = int(self._machines.add(machine, self._next_transaction())[0])
            self._machines.has_address(number, address)
            return number
        number = self._machines.names.index(name) + 1
        if self._machines.state[number - 1] == MachineState.GONE:
            raise BadInput(f"machine {number} has left the cell", field="machine")
        if (self._machines.capacity[number - 1] != machine.capacity[0]).any():
            self.resize(number, machine.capacity[0], notice_ms=0)
        self._machines.describe(number, machine)
        self._machines.has_address(number, address)
        return number

    def exits(self, job: int, *, exits_max: int = 100) -> list[PastExit]:
        """Return how tasks of a job ended: those that failed first, and the newest first."""
        return self._exits.of(job)[:exits_max]

    def output(self, job: int, task: int, stream: str) -> TaskOutput | None:
        """Return the end of an output of a task, as far as it was reported."""
        return self._exits.output(job, task, stream)

    def output_sizes(self, job: int) -> list[TaskOutput]:
        """Return all outputs of a job without their tails, by task and stream."""
        return self._exits.output_sizes(job)

    def _slot(self, number: int, task: int, started_ms: int | None = None) -> int | None:
        """Return the slot of a task's allocation; None if the task does not run.

        With a start, also None if the allocation began at another time.
        """
        job = self._jobs.get(number)
        if job is None or not 0 <= task < len(job.slot) or job.slot[task] < 0:
            return None
        slot = int(job.slot[task])
        began = self._allocations.rows["started_ms"][slot]
        return slot if started_ms in (None, began) else None

    def _stop(self, job: JobRecord, trigger: Trigger, *, of_helpers: Trigger) -> list[int]:
        """End a job, whatever it does, and its helpers; return the slots that they held."""
        slots: list[int] = job.slot[job.running].tolist()
        job.ended = job.placed
        job.finish(trigger, self._clock.now())
        self._leased.pop(job.id, None)
        self._parked.pop(job.id, None)
        self._end_stages([(job, None)])
        return slots + self._finish_helpers(job.id, of_helpers)

    def _record_exit(self, it: TaskExit) -> None:
        slot = self._jobs[it.job].slot[it.task]
        machine = int(self._allocations.rows["machine"][slot])
        self._exits.add(
            PastExit(
                job=it.job,
                task=it.task,
                machine=self._machines.names[machine - 1],
                started_ms=it.started_ms,
                ended_ms=milliseconds(self._clock.now()),
                exit=replace(it.exit, detail=readable_sentence(it.exit.detail)),
            )
        )


def _refuse_too_many(named: Ids | Collection[object]) -> None:
    if len(named) > LIMITS.tasks_per_release_max:
        raise BadInput(f"bad tasks: a list of at most {LIMITS.tasks_per_release_max}")
