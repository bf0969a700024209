"""The thread that renews the leases of a live process.

Goal     Let a scheduler take any time to decide, and let other replicas lease its jobs soon after
         its process dies.
Promise  A lost lease is noticed at the next beat, and no attempt at its job begins after that. The
         thread has its own store connection, so it never waits for a commit, nor a commit for it.
Source   docs/decisions/0004-the-job-queue.md; sync code only, threads for heartbeats.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from omega.errors import StoreUnavailable
from omega.events import Sink, StoreCallFailed
from omega.framework.leasing import Leases
from omega.store.protocols import SchedulerStore


def renew(leases: Leases, store: SchedulerStore, *, lease_ms: int) -> None:
    """Renew all leases once and drop those that are lost.

    Raises StoreUnavailable; then no lease is dropped.
    """
    held = leases.held()
    kept = store.renew(held, lease_ms=lease_ms) if held else set()
    leases.lose({job: token for job, token in held.items() if job not in kept})


class Heartbeat:
    """Renews leases in a thread of its own, inside a `with` block."""

    def __init__(
        self,
        leases: Leases,
        open_store: Callable[[], SchedulerStore],
        sink: Sink,
        *,
        lease_ms: int,
        interval_ms: int,
        report: Callable[[SchedulerStore], None] = lambda _: None,
    ) -> None:
        """`report` is called at each beat with the store, and may raise StoreUnavailable."""
        self._leases = leases
        self._open_store = open_store
        self._sink = sink
        self._lease_ms = lease_ms
        self._report = report
        self._interval_s = interval_ms / 1_000
        self._store: SchedulerStore | None = None
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        # A call that takes longer than a lease is useless; a daemon thread ends with the process.
        self._thread.join(timeout=self._lease_ms / 1_000)

    def beat(self) -> None:
        """Renew all leases once and drop those that are lost.

        While the store is unavailable no lease is dropped. The next beat, or the verdict of a
        commit, shows which were lost.
        """
        try:
            if self._store is None:
                self._store = self._open_store()
            renew(self._leases, self._store, lease_ms=self._lease_ms)
            self._report(self._store)
        except StoreUnavailable as error:
            self._sink(StoreCallFailed("renew", str(error)))
            self._let_go()

    def check(self) -> None:
        """Raise the exception that ended the thread, if one did."""
        if self._failure is not None:
            raise self._failure

    def _keep_beating(self) -> None:
        try:
            while not self._over.wait(self._interval_s):
                self.beat()
        except Exception as failure:  # `check` raises it again, in the scheduler's thread
            self._failure = failure
        finally:
            self._let_go()

    def _let_go(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
