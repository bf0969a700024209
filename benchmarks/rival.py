"""A rival: one process that runs a scheduler of the product in several contests.

It runs what `omega scheduler run` runs. As the paper's scheduler, it leases one job at a time,
commits each job by itself, and may refresh its view less often. A process serves all contests,
because the start of 32 interpreters takes longer than most contests.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, Final

from benchmarks.client import serve
from omega.cell.view import View
from omega.clock import Clock, RealClock
from omega.config import load_settings
from omega.errors import InvariantBroken
from omega.events import Sink, ignore
from omega.framework.registry import find_scheduler
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import DecisionTime
from omega.model.claims import ConflictRule, Granularity
from omega.store.opening import store_at
from omega.store.protocols import SharedViewSource
from omega.sync.choice import Sync
from omega.sync.delta import DeltaRefresher
from omega.sync.refresher import Refresher
from omega.sync.turns import Turn

POLL_MS: Final = 50
"""Interval at which an idle scheduler polls for jobs; it adds to the wait of jobs."""
MS_PER_S: Final = 1_000
NOT_RUNNING: Final = "a scheduler of the benchmark ended before its time"


class ThrottledRefresher:
    """A refresher that calls another one at most once per gap."""

    def __init__(self, inner: Refresher, clock: Clock, gap_s: float) -> None:
        self._inner = inner
        self._clock = clock
        self._gap_s = gap_s
        self._due: float | None = None

    def refresh(self, view: View | None) -> View:
        """Return the view unchanged until a refresh is due; outcomes patch it meanwhile."""
        now = self._clock.now()
        if view is not None and self._due is not None and now < self._due:
            return view
        fresh = self._inner.refresh(view)
        self._due = now + self._gap_s
        return fresh

    def close(self) -> None:
        """Close the inner refresher."""
        self._inner.close()


@dataclass(frozen=True, kw_only=True)
class Role:
    """The settings of one rival."""

    kind: str
    replica: str
    rule: str
    granularity: str
    t_job_ms: int
    t_task_ms: int
    gap_ms: int
    """Time between two refreshes; 0 refreshes before each attempt."""
    seed: int
    as_paper: bool = True
    """Whether it is the paper's scheduler; otherwise it is what `omega scheduler run` runs."""
    sync: str = Sync.DELTA.value
    """Way to synchronise, if it is not the paper's scheduler."""
    turn: tuple[int, int] = (0, 1)
    """Its turn (i, N) in that, from 0."""
    sync_gap_s: float = 1.0
    """Seconds in which it reads each part of the cell once."""
    one_job_a_commit: bool = False
    """Whether it commits each job by itself, as the paper's scheduler always does."""
    settings: dict[str, str] = field(default_factory=dict)
    """The scheduler's own settings, as `--set` has them."""

    @property
    def refresher(self) -> Callable[[SharedViewSource, Clock, Sink], Refresher]:
        """The function that creates its refresher."""

        def seldom(store: SharedViewSource, clock: Clock, sink: Sink) -> Refresher:
            return ThrottledRefresher(
                DeltaRefresher(store, clock, sink), clock, self.gap_ms / MS_PER_S
            )

        if not self.as_paper:
            turn = Turn(*self.turn, self.sync_gap_s)
            return partial(Sync(self.sync).refresher, turn=turn)
        return seldom if self.gap_ms else DeltaRefresher

    @property
    def decision_time(self) -> DecisionTime:
        """The decision time. It is slept, so that many schedulers can decide on few processors."""
        return DecisionTime(job_s=self.t_job_ms / MS_PER_S, task_s=self.t_task_ms / MS_PER_S)


class Rival:
    """The messages that a rival answers, one method each."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._stop = Event()
        self._process: SchedulerProcess | None = None
        self._running: Future[None] | None = None

    def start(self, url: str, role: dict[str, Any]) -> dict[str, Any]:
        """Begin to schedule on the cell, until `stop`."""
        self._stop.clear()
        self._process = _scheduler(url, Role(**role), self._stop)
        self._running = self._thread.submit(_run, self._process)
        return {}

    def facts(self) -> dict[str, Any]:
        """Return what was done since the start."""
        assert self._process is not None
        assert self._running is not None
        if self._running.done():
            self._running.result()
            raise InvariantBroken(NOT_RUNNING)
        return {"facts": self._process.fold.facts()}

    def stop(self) -> dict[str, Any]:
        """End after the current commit, return all leases, and return what was done in all."""
        self._stop.set()
        if self._process is None or self._running is None:
            return {}
        self._running.result()
        return {"facts": self._process.fold.facts()}

    def close(self) -> None:
        """End the process's thread."""
        self._stop.set()
        self._thread.shutdown()


def _scheduler(url: str, role: Role, stop: Event) -> SchedulerProcess:
    paper = {"jobs_per_lease_max": 1, "poll_interval_ms": POLL_MS}
    settings = load_settings(**(paper if role.as_paper else {}))
    scheduler = find_scheduler(role.kind).configured(role.settings)
    scheduler.rule = ConflictRule(role.rule)
    scheduler.granularity = Granularity(role.granularity)
    if role.as_paper or role.one_job_a_commit:
        scheduler.jobs_per_transaction = 1
    name = f"omega benchmark {role.kind}/{role.replica}"
    return SchedulerProcess(
        scheduler=scheduler,
        store=store_at(url, settings, name),
        open_store=lambda: store_at(url, settings, f"{name} heartbeat"),
        clock=RealClock(stop),
        settings=settings,
        sink=ignore,
        replica=role.replica,
        run_seed=role.seed,
        stop=stop,
        decision_time=role.decision_time,
        refresher=role.refresher,
    )


def _run(process: SchedulerProcess) -> None:
    with closing(process.store):
        process.run()


def main() -> None:
    """Answer messages until there are no more, then end in order."""
    with closing(Rival()) as rival:
        serve(rival)


if __name__ == "__main__":
    main()
