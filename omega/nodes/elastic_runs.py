"""One elastic job at work: which worker processes which activity, and when it is done.

Goal     Process the activities of a job exactly, whenever and however often that is computed.
Promise  A worker processes one activity at a time. A phase begins when the one before it has ended.
         The activity of a worker that is gone is processed again, from its beginning. Times between
         two calls do not matter: ends are handled in their order.
Source   Omega (EuroSys 2013), section 6; docs/decisions/0043-elastic-jobs.md.
"""

from collections.abc import Collection
from heapq import heappop, heappush
from math import inf

from omega.model.elastic import PhaseProgress

Worker = tuple[int, int, int]
"""The job of a task, the task, and when it was started, in milliseconds of the store's clock."""


class ElasticRun:
    """The workers and activities of one elastic job. Times are of the store's clock."""

    def __init__(self, progress: PhaseProgress, *, speedup: float, now_ms: int) -> None:
        self.elastic = progress.elastic
        self.phases = progress.phases
        self.done = list(progress.done)
        self.busy_ms = list(progress.busy_ms)
        """By phase, the time that workers took, in the job's time, which the speed-up shortens."""
        self._speedup = speedup
        self._waiting = [
            max(0, phase.activities - done)
            for phase, done in zip(self.phases, self.done, strict=True)
        ]
        """By phase, the activities that nobody processes yet."""
        names = [phase.name for phase in self.phases]
        self._after = [
            None if phase.after is None else names.index(phase.after) for phase in self.phases
        ]
        self._busy: dict[Worker, int] = {}
        """The phase of the activity that each busy worker processes."""
        self._idle: dict[Worker, None] = {}
        """Workers that have nothing to do now; in the order in which they became idle."""
        self._ends: list[tuple[float, Worker]] = []
        """When the activities of workers end; a heap. Of workers that are gone it has some, too."""
        self._now_ms: float = now_ms

    @property
    def is_done(self) -> bool:
        """Whether no activity is left."""
        return all(
            done >= phase.activities for done, phase in zip(self.done, self.phases, strict=True)
        )

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self._busy) + len(self._idle)

    def next_end_ms(self) -> float:
        """Return when the next activity ends, if its worker stays; infinity if none is at work."""
        return self._ends[0][0] if self._ends else inf

    def staff(self, named: Collection[Worker]) -> None:
        """Let exactly these workers process the activities from now on.

        A new worker begins at its start, but not before what was computed already.
        """
        workers = set(named)
        gone = [worker for worker in self._busy if worker not in workers]
        for worker in gone:
            self._waiting[self._busy.pop(worker)] += 1
        for worker in [worker for worker in self._idle if worker not in workers]:
            del self._idle[worker]
        if gone:
            self._begin_idle(self._now_ms)
        known = self._busy.keys() | self._idle.keys()
        for worker in sorted(workers - known, key=lambda worker: (worker[-1], worker)):
            self._begin(worker, max(float(worker[-1]), self._now_ms))

    def advance(self, now_ms: int) -> None:
        """End the activities that are over by then, and begin the next ones at these moments."""
        while self._ends and self._ends[0][0] <= now_ms:
            end_ms, worker = heappop(self._ends)
            phase = self._busy.pop(worker, None)
            if phase is None:
                continue  # the worker is gone
            self.done[phase] += 1
            self.busy_ms[phase] += self.phases[phase].duration_ms
            self._now_ms = end_ms
            self._begin(worker, end_ms)
            if self.done[phase] == self.phases[phase].activities:
                self._begin_idle(end_ms)
        self._now_ms = max(self._now_ms, now_ms)

    def _begin_idle(self, at_ms: float) -> None:
        """Give what there is to do to idle workers."""
        for worker in list(self._idle):
            if self._open_phase() is None:
                return
            del self._idle[worker]
            self._begin(worker, at_ms)

    def _begin(self, worker: Worker, at_ms: float) -> None:
        phase = self._open_phase()
        if phase is None:
            self._idle[worker] = None
            return
        self._waiting[phase] -= 1
        self._busy[worker] = phase
        heappush(self._ends, (at_ms + self.phases[phase].duration_ms / self._speedup, worker))

    def _open_phase(self) -> int | None:
        """Return the first phase with an activity that may begin; None if there is none."""
        for phase, waiting in enumerate(self._waiting):
            before = self._after[phase]
            if waiting and (before is None or self.done[before] >= self.phases[before].activities):
                return phase
        return None
