"""An agent at work: it registers its machine, and its life is answered by a store in real time.

Goal     Run an agent against a store for as long as it is wanted.
Promise  A call that the store does not answer is not repeated here: the agent goes on and asks
         again, so that timeouts hold while the store is away.
Source   docs/decisions/0044-programs-and-agents.md.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from omega.clock import BootClock, Clock
from omega.errors import StoreUnavailable
from omega.events import AgentWarned, ProcessReported, Sink
from omega.framework.effects import Call, Effect, Effects, Wait, drive
from omega.framework.retry import Retry
from omega.framework.timer import Timer
from omega.model.arrays import Amounts
from omega.model.machines import Machines
from omega.nodes.agent.agent import Agent
from omega.nodes.agent.child_wait import ChildWait
from omega.nodes.agent.machine_lease import Deadline, MachineLease, holder_of
from omega.nodes.agent.own_machine import OwnMachine, TaskDrivers
from omega.nodes.agent.records import RECORDS, Records
from omega.nodes.calling import called
from omega.reports.processes import AGENT
from omega.store.protocols import Store

REPORT_INTERVAL_MS: Final = 4_000
"""Less than half of SILENT_AFTER_MS. In a large cell, reports are a part of what agents cost."""
EACH_SECOND_MS: Final = 1_000


def register(
    store: Store,
    retry: Retry,
    name: str,
    *,
    capacity: Amounts,
    attributes: Mapping[str, str],
    address: str | None = None,
) -> OwnMachine:
    """Have a machine of this name, capacity (kinds,) and attributes in the cell.

    Tasks on other machines reach it by its address.

    Raises NotAllowed if another login stands for it, BadInput if it has left the cell.
    """
    one = Machines((name,), capacity[None, :], {key: [it] for key, it in attributes.items()})
    number = retry("register", lambda: store.register_machine(one, address))
    return OwnMachine(id=number, name=name, capacity=capacity)


def keep_tasks(store: Store, retry: Retry, machine: OwnMachine, folder: Path) -> None:
    """Let the tasks of a machine go on, and keep their places, however long the store is away.

    An earlier agent with this folder may have had a lease, which would run out. Until the store has
    answered, its watchdog still stops the tasks in time.

    Raises NotAllowed if another agent holds the machine.
    """
    holder = holder_of(folder, uuid4())
    if not retry("free", lambda: store.free_machine(machine.id, holder)):
        raise machine.held_by_another()
    Deadline(folder).remove()


class LiveAgent:
    """An agent on a store. Call `run`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sink: Sink,
        *,
        machine: OwnMachine,
        drivers: TaskDrivers,
        folder: Path,
        poll_s: float,
        lease: MachineLease | None,
    ) -> None:
        """`folder` is the agent's own; `poll_s` and `lease` are those of `Agent`."""
        self._store = store
        self._clock = clock
        self._sink = sink
        self._name = machine.name
        self._machine = machine.id
        self._lease = lease
        self._deadline = Deadline(folder)
        # If no earlier agent left a deadline, this one acts as if it held a lease until its first
        # is granted. The watchdog must know when that time ends; else the lease counts as over.
        if lease is not None and self._deadline.read() is None:
            is_written = self._deadline.write(lease.kill_due_s)
            lease.asked_s = lease.asked_s if is_written else float("-inf")
        self._agent = Agent(
            machine,
            drivers,
            Records(folder / RECORDS, lambda why: sink(AgentWarned(why))),
            clock=clock,
            sink=sink,
            poll_s=poll_s,
            lease=lease,
            write_deadline=self._deadline.write,
        )
        self._reports = Timer(clock, REPORT_INTERVAL_MS)
        self._seconds = Timer(clock, EACH_SECOND_MS)

    def run(self, stop: threading.Event, each_second: Callable[[], None]) -> None:
        """Work until the stop event is set, which a signal may do. Call it from the main thread."""

        def report() -> Effects[None]:
            if self._seconds.due():
                each_second()
            if self._reports.due():
                yield from self._report()

        with ChildWait() as children:
            drive(self._agent.life(stop, report), partial(self._answer, wait=children.wait))

    def end_tasks(self) -> None:
        """End the tasks, then give the machine up: they are placed anew, here or elsewhere.

        Raises StoreUnavailable if the store is away.
        """
        assert self._lease is not None, "only who holds the machine can give it up"
        # The stop event is set, which would end every sleep of the clock used so far.
        self._clock = BootClock()
        drive(self._agent.wind_down(), partial(self._answer, wait=self._clock.sleep))
        self._store.leave_machine(self._machine, self._lease.holder)
        self._deadline.remove()

    def be_absent(self, absence_s: float) -> None:
        """Hold the machine for a while, in which the next agent takes the tasks up."""
        lease = self._lease
        if lease is None:
            return
        away = MachineLease(lease.holder, absence_s, asked_s=self._clock.now())
        lease_ms = round(absence_s * 1_000)
        with suppress(StoreUnavailable):  # then the lease runs out as it is
            if self._store.hold_machine(self._machine, lease.holder, lease_ms=lease_ms):
                self._deadline.write(away.kill_due_s)

    def leave(self) -> None:
        """Remove the agent's report."""
        with suppress(StoreUnavailable):  # a report that remains is soon shown as silent
            self._store.forget(AGENT, self._name)

    def _report(self) -> Effects[None]:
        facts = {"tasks": self._agent.running}
        yield from called(
            "report", lambda cell: cell.report(AGENT, self._name, pid=os.getpid(), facts=facts)
        )
        self._sink(ProcessReported())

    def _answer(self, effect: Effect, wait: Callable[[float], None]) -> object:
        match effect:
            case Call(_, make):
                return make(self._store)
            case Wait(seconds):
                wait(seconds)
                return None
            case _:
                raise AssertionError(f"an agent yields no {type(effect).__name__}")
