"""The agent of a machine: starts what is placed there, and reports how it ended.

Goal     Make placed tasks run on a real machine, and the cell know how they ended.
Promise  A task starts when there is room by the agent's own count: the cell gives the room of an
         evicted task away at once. Exits are kept until the store has them. What an agent that was
         killed had started is taken up again. While the store is away, timeouts hold, and tasks go
         on until half of the lease on the machine is over: then they are asked to stop, and nothing
         is started. At three quarters they are killed.
Source   docs/decisions/0044-programs-and-agents.md; Nomad's client and the kubelet.
"""

from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Final

import numpy as np

from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.events import AgentWarned, ProgramEnded, Sink, StoreCallFailed
from omega.framework.effects import Effects, Wait
from omega.model.arrays import all_true
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.agent_task import AgentTask, Phase, StopReason, room_for
from omega.nodes.agent.checks import Checks
from omega.nodes.agent.exit_reporter import ExitReporter
from omega.nodes.agent.launch import launch_of
from omega.nodes.agent.machine_lease import MachineLease
from omega.nodes.agent.output_reporter import OutputReporter
from omega.nodes.agent.own_machine import OwnMachine, TaskDrivers
from omega.nodes.agent.placements import Placements
from omega.nodes.agent.records import Records
from omega.nodes.agent.step_reporter import StepReporter
from omega.nodes.agent.task_driver import DiskFull, Launch, NotStarted, Probe, TaskDriver, TaskKey
from omega.nodes.calling import called
from omega.reports.exits import sentence_of

PAUSE_S_MIN: Final = 0.01
PAUSE_S_MAX: Final = 0.1
"""The time between two looks at the tasks grows from one to the other while nothing happens. The
end of a child process ends it."""
POLL_PAUSE_S_MIN: Final = 0.003
"""The first pause between two looks at the machine's row, after room was freed or tasks have
started. Those after it grow up to the agent's `poll_s`."""
PAUSE_GROWTH: Final = 1.3
"""By how much each pause is longer than the one before."""
STORE_PAUSE_S_MAX: Final = 2.0
"""The longest time until a store that did not answer is asked again."""
STARTS_PER_STEP: Final = 50
"""Programs started in one step: ends are still seen and reported meanwhile."""

LOST: Final = Exit(cause=ExitCause.LOST)


class Agent:
    """Runs the tasks of one machine: a life of effects, which a driver answers."""

    def __init__(
        self,
        machine: OwnMachine,
        drivers: TaskDrivers,
        records: Records,
        *,
        clock: Clock,
        sink: Sink,
        poll_s: float,
        lease: MachineLease | None = None,
        write_deadline: Callable[[float], bool] = lambda deadline_s: True,
    ) -> None:
        """Take up the tasks of the records.

        Args:
            machine: the machine that the agent stands for.
            drivers: what runs programs.
            records: where the agent keeps what the next one must know.
            clock: seconds since the boot, the same clock for every agent of this machine.
            sink: receives what happens.
            poll_s: how often an idle agent asks whether its machine has changed.
            lease: the lease to hold; None: tasks go on however long the store is away.
            write_deadline: writes the moment (seconds of `clock`) when the watchdog kills what
                runs; returns False if it could not, so that the one before holds.
        """
        self._machine = machine
        self._drivers = drivers
        self._records = records
        self._clock = clock
        self._sink = sink
        self._poll_s = poll_s
        self._lease = lease
        self._write_deadline = write_deadline
        self._is_current = lease is None
        """Whether the placements were read under the present lease, since it was last half over.
        Until then nothing is started. Without a lease it is always true."""
        self._is_ending = False
        self._outputs = OutputReporter(clock)
        self._checks = Checks(drivers.in_background)
        self._steps = StepReporter(clock, drivers)
        self._tasks = {task.key: task for task in records.read(clock.now())}
        self._held = sum(
            (task.amounts for task in self._tasks.values() if task.holds_room),
            start=np.zeros_like(machine.capacity),
        )
        self._placements = Placements(machine.id, self._tasks, self._refuse)
        self._exits = ExitReporter(self._placements, clock, sink)
        self._poll_due_s = 0.0
        self._poll_pause_s = POLL_PAUSE_S_MIN
        self._failures = 0
        self._pause_s = PAUSE_S_MIN

    def life(self, stop: Event, after_each: Callable[[], Effects[None]]) -> Effects[None]:
        """Take steps until the stop event is set; tasks that run go on after that."""
        while not stop.is_set():
            did_something = yield from self.step()
            try:
                yield from after_each()
            except StoreUnavailable as error:
                self._store_failed(error)
            grown_s = min(PAUSE_S_MAX, self._pause_s * PAUSE_GROWTH)
            self._pause_s = PAUSE_S_MIN if did_something else grown_s
            yield Wait(min(self._pause_s, max(0.0, self._poll_due_s - self._clock.now())))

    def wind_down(self) -> Effects[None]:
        """Stop all tasks, and take steps until nothing runs; nothing is started any more.

        The lease is held meanwhile: the tasks must not run elsewhere before they have ended here.
        """
        self._is_ending = True
        for task in self._tasks.values():
            if task.phase is Phase.RUNNING:
                self._stop(task, StopReason.FENCED)
        while self.running:
            yield from self.step()
            yield Wait(PAUSE_S_MAX)
        self._exits.hurry()
        yield from self.step()

    def step(self) -> Effects[bool]:
        """See what has changed, in the cell and on the machine, and act; return whether it did.

        A store that does not answer is asked again in a later step.
        """
        changed = False
        self._fence()  # before the lease is renewed: it may have run out since the last step
        try:
            is_poll_due = self._clock.now() >= self._poll_due_s
            if is_poll_due or (self._must_renew() and self._failures == 0):
                yield from self._renew()
            if is_poll_due:
                changed = yield from self._poll()
        except StoreUnavailable as error:
            self._store_failed(error)
        self._fence()  # and the calls may have taken long
        acted = self._see_ends()
        self._stop_late_tasks()
        self._check()
        reported = False
        if self._failures == 0:
            try:
                reported = yield from self._report()
            except StoreUnavailable as error:
                self._store_failed(error)
        started = self._start_waiting()
        if (reported or started) and self._failures == 0:  # soon there is more to do
            self._poll_due_s = self._clock.now()
            self._poll_pause_s = POLL_PAUSE_S_MIN
        return changed or acted or reported or started

    @property
    def running(self) -> int:
        """The number of tasks of which something runs."""
        return sum(task.runs for task in self._tasks.values())

    # The lease on the machine.

    def _renew(self) -> Effects[None]:
        """Renew the lease if that is due. Raises NotAllowed if another agent holds it."""
        lease, asked_s = self._lease, self._clock.now()
        if lease is None or not (lease.is_due(asked_s) or not self._is_current):
            return
        holder, lease_ms = lease.holder, round(lease.length_s * 1_000)
        held = yield from called(
            "hold", lambda store: store.hold_machine(self._machine.id, holder, lease_ms=lease_ms)
        )
        if not held:
            raise self._machine.held_by_another()
        kill_due_s = replace(lease, asked_s=asked_s).kill_due_s
        if self._write_deadline(kill_due_s):  # else the watchdog goes by the deadline before
            if self._clock.now() >= lease.kill_due_s:
                self._fence()  # the watchdog may have killed before it knew the new one
            lease.asked_s = asked_s

    def _is_lease_fresh(self) -> bool:
        return self._lease is None or self._lease.is_fresh(self._clock.now())

    def _must_renew(self) -> bool:
        """Return whether renewal is due: long work then stops, and goes on in the next step."""
        return self._lease is not None and self._lease.is_due(self._clock.now())

    def _fence(self) -> None:
        """Stop all tasks if half of the lease is over."""
        lease = self._lease
        if lease is None or self._is_lease_fresh():
            return
        self._is_current = False
        for task in self._tasks.values():
            if (signal := task.fence(lease.kill_due_s)) is not None:
                self._records.write(task)
                self._signal(task, signal)

    def _poll(self) -> Effects[bool]:
        """Read the placements if the machine has changed: stop lost tasks, take in new ones."""
        has_changed = yield from self._placements.read(
            lambda task: self._stop(task, StopReason.LOST), in_any_case=not self._is_current
        )
        self._failures = 0
        self._poll_due_s = self._clock.now() + self._poll_pause_s
        self._poll_pause_s = min(self._poll_s, self._poll_pause_s * PAUSE_GROWTH)
        if has_changed:
            self._is_current = self._is_lease_fresh()
        return has_changed

    # Changes on the machine.

    def _see_ends(self) -> bool:
        """Look at the programs; record those that have ended."""
        now_s = self._clock.now()
        acted = False
        there: set[TaskKey] = set()
        looks = [(driver, driver.look()) for driver in self._drivers]
        self._fence()  # what the watchdog killed, while this process was stopped, did not fail
        for driver, shown in looks:
            for key, seen in shown.items():
                there.add(key)
                task = self._tasks.get(key)
                if task is None:
                    self._end_unrecorded(driver, key, is_over=seen is not None)
                else:
                    acted |= self._see(task, seen, now_s, self._drivers.engine_of(driver))
        for task in list(self._tasks.values()):
            if task.runs and task.key not in there:
                acted |= self._see(task, LOST, now_s, task.engine)
        return acted

    def _see(self, task: AgentTask, seen: Exit | None, now_s: float, engine: str) -> bool:
        """Note what the driver of an engine shows of a task; return whether it has ended."""
        had_room = task.holds_room
        if task.shown_in(engine, now_s, runs=seen is None):
            self._held += 0 if had_room else task.amounts
            self._records.write(task)
        if seen is None or not task.runs:
            return False
        task.ended(seen, now_s)
        self._after_end(task)
        return True

    def _end_unrecorded(self, driver: TaskDriver, key: TaskKey, *, is_over: bool) -> None:
        """End what runs and no record tells of, or remove what is left of it."""
        if not self._placements.are_known:
            return  # it may be placed here, and its record be lost
        if is_over:
            driver.forget(key)
        else:
            driver.signal(key, "KILL")

    def _after_end(self, task: AgentTask) -> None:
        if not task.holds_room:
            self._held -= task.amounts
        if task.phase is Phase.OVER:
            self._drop(task)
        else:
            self._records.write(task)
        if task.exit is not None:
            job, number, how = task.key.job, task.key.task, sentence_of(task.exit)
            self._sink(ProgramEnded(job, number, how, task.exit.is_success))

    def _stop_late_tasks(self) -> None:
        """Stop tasks that run too long, and kill those that do not stop in time."""
        now_s = self._clock.now()
        for task in self._tasks.values():
            if task.is_too_long(now_s):
                self._stop(task, StopReason.TIMEOUT)
            elif task.is_to_be_killed(now_s):
                self._signal(task, "KILL")

    def _check(self) -> None:
        """Stop the programs whose checks fail; they are started again as other failures are."""
        for task, why in self._checks.step(self._tasks.values(), self._clock.now(), self._probe_of):
            self._stop(task, StopReason.UNHEALTHY, why)

    def _probe_of(self, task: AgentTask, check: Check) -> Probe:
        driver = self._drivers.of(task)
        assert driver is not None, "it runs"
        return driver.probe_of(self._launch_of(task), check)

    def _launch_of(self, task: AgentTask) -> Launch:
        return launch_of(task, machine=self._machine.name)

    def _stop(self, task: AgentTask, reason: StopReason, why: str = "") -> None:
        held = task.holds_room
        signal = task.stop(reason, self._clock.now(), why)
        if task.phase is Phase.OVER:
            if held:
                self._held -= task.amounts
            self._drop(task)
            return
        self._records.write(task)
        if signal is not None:
            self._signal(task, signal)

    def _signal(self, task: AgentTask, signal: str) -> None:
        # Of a task whose job is not known any more the driver is not known either.
        for driver in self._drivers:
            driver.signal(task.key, signal)

    def _drop(self, task: AgentTask) -> None:
        """Forget a task of which nothing runs and nothing is to be reported."""
        for driver in self._drivers:
            driver.forget(task.key)
        self._records.remove(task.key)
        self._outputs.forget(task.key)
        del self._tasks[task.key]

    def _start_waiting(self) -> bool:
        """Start waiting tasks, those first that were placed first, as far as there is room.

        One that was evicted from here, and placed here again, waits until nothing of it runs.
        """
        if self._is_ending or not self._is_current:
            return False
        now_s, tasks = self._clock.now(), self._tasks.values()
        waiting = sorted(
            (t for t in tasks if t.phase is Phase.WAITING and t.is_described),
            key=lambda task: (task.key.started_ms, task.key),
        )
        if not waiting:
            return False
        room, started = room_for(tasks, self._machine.capacity), 0
        running = {task.key.of_job for task in tasks if task.runs}
        for task in waiting:
            # When the lease is to be renewed, a step starts one task at most, under a fresh lease.
            is_late = self._must_renew() and (started > 0 or not self._is_lease_fresh())
            if started == STARTS_PER_STEP or is_late:
                break
            needed = 0 if task.holds_room else task.amounts
            has_room = all_true(self._held + needed <= room)
            if task.start_due_s <= now_s and has_room and task.key.of_job not in running:
                self._start(task)
                started += 1
        return bool(started)

    def _start(self, task: AgentTask) -> None:
        """Start a task; its record comes first, so that no program runs that nothing tells of."""
        if not task.holds_room:
            self._held += task.amounts
        driver = self._drivers.of(task)
        try:
            if driver is None:
                raise NotStarted("this machine runs no containers")
            launch = self._launch_of(task)  # counts the starts before this one
            task.started(self._clock.now(), self._drivers.engine_of(driver))
            if self._records.write(task):
                driver.start(launch)
                return
            self._put_off(task)
        except DiskFull as error:
            if not task.was_put_off:
                warning = f"task {task.key} is started when the disk has room: {error}"
                self._sink(AgentWarned(warning))
            self._put_off(task)
        except NotStarted as error:
            task.failed_to_start(str(error))
            self._after_end(task)

    def _refuse(self, task: AgentTask, why: str) -> None:
        """Record that a waiting task cannot be started."""
        self._held += 0 if task.holds_room else task.amounts
        task.failed_to_start(why)
        self._after_end(task)

    def _put_off(self, task: AgentTask) -> None:
        """Give back the room of a task whose start the disk refused; it is tried again soon."""
        task.put_off(self._clock.now())
        self._held -= 0 if task.holds_room else task.amounts

    def _report(self) -> Effects[bool]:
        """Report outputs and steps, and the exits of tasks that have ended; drop these."""
        there = [task for task in self._tasks.values() if task.was_started]
        ended = [task for task in self._tasks.values() if task.phase is Phase.ENDED]
        yield from self._outputs.report(there, self._drivers, at_once=bool(ended))
        told = [*(task for task in there if task.runs), *ended]
        yield from self._steps.report(told, at_once=bool(ended))
        return (yield from self._exits.report(ended, self._drop))

    def _store_failed(self, error: StoreUnavailable) -> None:
        self._failures += 1
        pause_s = min(STORE_PAUSE_S_MAX, self._poll_s * 2 ** min(self._failures, 10))
        self._poll_due_s = self._clock.now() + pause_s
        self._sink(StoreCallFailed("agent", str(error)))
