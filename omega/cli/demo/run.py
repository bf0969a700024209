"""The run of a demo: submits jobs, watches processes, draws the screen, waits for an empty queue.

Goal     Run the schedulers of a demo against its cell for so many seconds; return what happened.
Promise  A run ends by itself: after the last arrival, the queue gets a bounded time to become
         empty. It ends early, but in order, when a stop is asked for or when no scheduler is left.
         Calls to a store that is unavailable are repeated.
Source   docs/decisions/0013-processes.md.
"""

import threading
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from omega.cli.demo.screen import Moment
from omega.clock import Clock
from omega.errors import OmegaError
from omega.events import Event, StoreCallFailed
from omega.framework.retry import Retry
from omega.framework.timer import Timer
from omega.model.claims import ConflictRule
from omega.processes.supervisor import Child, ChildState, Supervisor
from omega.reports.printable import printable
from omega.reports.processes import (
    NOT_SCHEDULERS,
    LatestFacts,
    ProcessState,
    SchedulerLine,
    is_alive,
    name_of,
    scheduler_line,
    total_line,
)
from omega.store.feeding import Feeder
from omega.store.protocols import ReaderStore
from omega.store.status import CellUse, ProcessReport

TICK_S: Final = 0.05
LOOK_INTERVAL_MS: Final = 500
START_S_MAX: Final = 60.0
DRAIN_S_MIN: Final = 20.0
"""Least time that the queue gets to become empty; it gets the plan's `seconds` if this is more."""
SETTLE_S: Final = 1.5
"""Time from an empty queue until every process has reported all that it did."""
NOT_RUNNING: Final = {
    ChildState.WAITING: ProcessState.CRASHED,
    ChildState.GIVEN_UP: ProcessState.CRASHED,
    ChildState.ENDED: ProcessState.ENDED,
}


@dataclass(frozen=True)
class DemoReplica:
    """A scheduler of the demo: its identity in the store, and its process."""

    kind: str
    replica: str
    rule: ConflictRule
    child: Child

    @property
    def name(self) -> str:
        """The name of the replica on the screen."""
        return name_of(self.kind, self.replica)


@dataclass(frozen=True)
class DemoProcesses:
    """The processes of a demo, and what has happened to them."""

    supervisor: Supervisor
    members: Sequence[DemoReplica]
    events: list[str]

    def tell(self, event: Event) -> None:
        """Record that the store did not answer; this is the event sink of the demo's own calls."""
        if isinstance(event, StoreCallFailed):
            why = printable(event.why)
            self.events.append(f"the store did not answer ({event.what}), asking again: {why}")


@dataclass(frozen=True)
class Played:
    """The result of a run."""

    ledger: LatestFacts
    use: CellUse
    load_s: float
    """Seconds from the first arrival until the queue was empty, or its time was over."""
    dry: bool
    submitted: int


class DemoRun:
    """One run of a demo."""

    def __init__(
        self,
        store: ReaderStore,
        processes: DemoProcesses,
        feeder: Feeder,
        *,
        clock: Clock,
        stop: threading.Event,
        show: Callable[[Moment], None],
        seconds: float,
        retry: Retry,
    ) -> None:
        self._store = store
        self._supervisor = processes.supervisor
        self._members = processes.members
        self._events = processes.events
        self._feeder = feeder
        self._clock = clock
        self._stop = stop
        self._show = show
        self._seconds = seconds
        self._retry = retry
        self._look = Timer(clock, LOOK_INTERVAL_MS)
        self._began = clock.now()
        self._ledger = LatestFacts()
        self._reports: dict[tuple[str, str], ProcessReport] = {}
        self._use = retry("use", store.use)

    def wait_for_start(self) -> None:
        """Wait until every scheduler has reported.

        Raises OmegaError if not all report in time, or if a process is given up.
        """
        wanted = {(member.kind, member.replica) for member in self._members}
        self._until("start", lambda elapsed_s: self._came_up(wanted, elapsed_s))

    def play(self) -> Played:
        """Submit the jobs, wait for the queue to become empty, and return the result."""
        self._began = self._clock.now()
        self._until("load", self._is_fed)
        fed_s = self._clock.now() - self._began
        limit_s = fed_s + max(DRAIN_S_MIN, self._seconds)
        self._observe()
        self._until("drain", lambda elapsed_s: self._is_dry or elapsed_s > limit_s)
        load_s = self._clock.now() - self._began

        # While the last reports come in, freed capacity may return parked jobs to the queue:
        # the run waits until these have been tried, too.
        def settled(elapsed_s: float) -> bool:
            return elapsed_s > load_s + SETTLE_S and (self._is_dry or elapsed_s > limit_s)

        self._until("settle", settled)
        return Played(self._ledger, self._use, load_s, self._is_dry, self._feeder.submitted)

    def _until(self, phase: str, over: Callable[[float], bool]) -> None:
        """Watch and draw until `over` is true, a stop is asked for, or no scheduler is left."""
        while not self._stop.is_set():
            elapsed_s = self._clock.now() - self._began
            self._supervisor.look()
            if over(elapsed_s) or not self._some_go_on:
                return
            if self._look.due():
                self._observe()
                self._show(self._moment(phase, elapsed_s))
            self._clock.sleep(TICK_S)

    def _came_up(self, wanted: Set[tuple[str, str]], elapsed_s: float) -> bool:
        for child in self._supervisor.given_up:
            raise OmegaError(
                f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
            )
        if elapsed_s > START_S_MAX:
            raise OmegaError(f"the schedulers did not come up within {START_S_MAX:g} s")
        return wanted <= self._reports.keys()

    def _is_fed(self, elapsed_s: float) -> bool:
        self._retry("submit", lambda: self._feeder.feed(elapsed_s))
        return self._feeder.done and elapsed_s >= self._seconds

    @property
    def _is_dry(self) -> bool:
        return self._feeder.done and not self._use.jobs_waiting

    @property
    def _some_go_on(self) -> bool:
        return any(
            member.child.state in (ChildState.RUNNING, ChildState.WAITING)
            for member in self._members
        )

    def _observe(self) -> None:
        reports = self._retry("reports", self._store.reports)
        self._ledger.note(reports)
        self._reports = {(report.kind, report.replica): report for report in reports}
        self._use = self._retry("use", self._store.use)

    def _moment(self, phase: str, elapsed_s: float) -> Moment:
        lines = [self._line(member) for member in self._members]
        up = [
            report.facts
            for (kind, _), report in self._reports.items()
            if kind not in NOT_SCHEDULERS and is_alive(report)
        ]
        return Moment(
            phase=phase,
            elapsed_s=elapsed_s,
            seconds=self._seconds,
            submitted=self._feeder.submitted,
            to_submit=self._feeder.total,
            lines=lines,
            total=total_line(up),
            use=self._use,
            events=self._events,
        )

    def _line(self, member: DemoReplica) -> SchedulerLine:
        report = self._reports.get((member.kind, member.replica))
        if member.child.state is not ChildState.RUNNING:
            return SchedulerLine(name=member.name, state=NOT_RUNNING[member.child.state])
        if report is None or report.pid != member.child.pid:
            return SchedulerLine(name=member.name, state=ProcessState.STARTING)
        return scheduler_line(member.name, report)
