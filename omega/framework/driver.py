"""The live driver: answers a process's effects with a store and a clock.

Goal     Be the only place where a running scheduler accesses the cell.
Promise  A call is repeated until the store answers. A commit whose answer was lost is sent again
         under the same id.
Source   Omega (EuroSys 2013), section 3.4; omega.framework.effects.
"""

from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Call, Commit, Effect, PlaceAtRandom, Refresh, Think, Wait
from omega.framework.retry import Retry
from omega.store.protocols import Store
from omega.sync.refresher import Refresher


class Driver:
    """Answers effects from a store, and keeps the view between them."""

    def __init__(
        self, store: Store, clock: Clock, retry: Retry, refresher: Refresher | None = None
    ) -> None:
        """Without a refresher the process must not yield `Refresh`."""
        self._store = store
        self._refresher = refresher
        self._clock = clock
        self._retry = retry
        self._view: View | None = None

    def answer(self, effect: Effect) -> object:
        """Carry out an effect and return its answer, however long the store is unavailable.

        Raises StoreUnavailable only if the store is unavailable when the process is to stop.
        """
        match effect:
            case Refresh():
                assert self._refresher is not None, "somebody asks for a view and has none"
                refresher = self._refresher
                self._view = self._retry("refresh", lambda: refresher.refresh(self._view))
                return self._view
            case Commit(transaction):
                return self._retry("commit", lambda: self._store.commit(transaction))
            case Call(operation, make):
                return self._retry(operation, lambda: make(self._store))
            case Think(seconds) | PlaceAtRandom(seconds):  # this driver does not place jobs
                if seconds > 0:
                    self._clock.sleep(seconds)
            case Wait(seconds):
                self._clock.sleep(seconds)
        return None

    def answer_once(self, effect: Effect) -> object:
        """Make a call to the store once; raise StoreUnavailable if it does not answer."""
        assert isinstance(effect, Call), "the end of a process only calls the store"
        return effect.make(self._store)
