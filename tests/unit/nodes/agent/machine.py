"""A machine with an agent, on a store in memory, whose programs tests end."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from omega.clock import ManualClock
from omega.errors import StoreBusy, StoreUnavailable
from omega.events import Event
from omega.framework.effects import Call, Effect, drive
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.jobs import LeasedJob
from omega.model.programs import Program
from omega.nodes.agent.agent import Agent
from omega.nodes.agent.background_driver import BackgroundDriver
from omega.nodes.agent.machine_lease import MachineLease
from omega.nodes.agent.own_machine import OwnMachine, TaskDrivers
from omega.nodes.agent.records import Records
from omega.nodes.agent.task_driver import Probe, TaskKey
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_leased_job, add_a_cell, grant
from tests.unit.nodes.agent.fake_driver import FakeDriver

LOCK_WAIT_S: Final = 2.0
RUN: Final = Program(command=("true",), stop_grace_ms=10_000)


class Locking(PassThrough):
    """The store while somebody has locked jobs."""

    def __init__(self, store: Store, machine: "Machine") -> None:
        super().__init__(store)
        self._machine = machine

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        jobs = [it.job for it in exits]
        self._machine.reports.append(jobs)
        if self._machine.locked & set(jobs):
            self._machine.clock.advance(LOCK_WAIT_S)
            raise StoreBusy("canceling statement due to lock timeout")
        return super().report_exits(exits)


@dataclass
class Machine:
    """A store with two machines of four cores, and an agent on the first."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    driver: FakeDriver = field(default_factory=FakeDriver)
    events: list[Event] = field(default_factory=list)
    lease: MachineLease | None = None
    deadlines: list[float] = field(default_factory=list)
    """When nothing may run any more, as the agent said it."""
    disk_is_full: bool = False
    answers: tuple[str, ...] = ()
    """While the store is away: the operations that it answers nevertheless."""
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens while a call of an operation is answered."""
    checks: "list[Future[str | None]]" = field(default_factory=list)
    checks_hang: bool = False
    locked: set[int] = field(default_factory=set)
    """Jobs that somebody has locked: a report that names one waits, and is refused."""
    reports: list[list[int]] = field(default_factory=list)
    """The jobs of each report of exits."""
    absences: int = 0
    """How many calls the store does not answer."""
    poll_s: float = 0.1
    containers: FakeDriver | None = None
    engine: str = ""
    in_background: bool = False
    """Whether a thread of its own works the driver, as that of containers; `close` ends it."""

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.id, self.other = add_a_cell(self.store, 2)
        self.background = BackgroundDriver(self.driver, self.clock) if self.in_background else None
        self.restart_agent()

    def restart_agent(self) -> None:
        """Have another agent go on with the same folder, as after kill -9."""
        capacity = self.store.snapshot().rows.capacity[0]
        self.agent = Agent(
            OwnMachine(id=self.id, name="m1", capacity=capacity),
            TaskDrivers(
                processes=self.background or self.driver,
                containers=self.containers,
                engine=self.engine,
                in_background=self._check,
            ),
            Records(self.folder),
            clock=self.clock,
            sink=self.events.append,
            poll_s=self.poll_s,
            lease=self.lease,
            write_deadline=self._put_off,
        )

    def close(self) -> None:
        """Let the driver do what it was told, and end its thread."""
        if self.background is not None:
            self.background.close()

    def _check(self, probe: Probe) -> "Future[str | None]":
        """Check at once, unless checks hang."""
        future: Future[str | None] = Future()
        self.checks.append(future)
        if not self.checks_hang:
            future.set_result(probe())
        return future

    def _put_off(self, deadline_s: float) -> bool:
        if self.disk_is_full:
            return False
        self.deadlines.append(deadline_s)
        return True

    def step(self, after_s: float = 0.2) -> None:
        self.clock.advance(after_s)
        drive(self.agent.step(), self.answer)

    def answer(self, effect: Effect) -> object:
        assert isinstance(effect, Call)
        if self.absences and effect.operation not in self.answers:
            self.absences -= 1
            raise StoreUnavailable("the server is away")
        self.meanwhile.get(effect.operation, lambda: None)()
        return effect.make(Locking(self.store, self) if effect.operation == "exits" else self.store)

    def place(
        self, program: Program | None = RUN, *, tasks: int = 1, on: int | None = None
    ) -> LeasedJob:
        job = a_leased_job(self.store, a_spec(tasks, program=program))
        grant(self.store, job, range(tasks), [on or self.id] * tasks)
        return job

    def place_gang(self, program: Program = RUN) -> LeasedJob:
        """Place four tasks that need each other: two here, the others elsewhere."""
        job = a_leased_job(self.store, a_spec(4, minimum=4, program=program))
        grant(self.store, job, range(4), [self.id, self.other] * 2)
        return job

    def keys(self, job: LeasedJob) -> list[TaskKey]:
        live = self.store.allocations_of([job.id])
        columns = (live.job.tolist(), live.task.tolist(), live.started_ms.tolist())
        return sorted(TaskKey(*row) for row in zip(*columns, strict=True))

    def end_elsewhere(self, key: TaskKey) -> None:
        """Have a task of another machine succeed."""
        ended = Exit(cause=ExitCause.EXITED, code=0)
        assert self.store.report_exits([TaskExit(key.job, key.task, key.started_ms, ended)])

    def exits(self, job: LeasedJob) -> list[Exit]:
        return [it.exit for it in self.store.exits(job.id)]
