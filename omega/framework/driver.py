"""Answers a scheduler process for real: with a store and a clock.

Goal     Be the only place where a running scheduler touches the cell.
Promise  A call is repeated until the store answers: a commit whose answer was lost is sent again
         under the same id.
Source   Omega (EuroSys 2013), section 3.4; omega.framework.effects.
"""

from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Call, Commit, Draw, Effect, Refresh, Think, Wait
from omega.framework.retry import Retry
from omega.store.protocols import Store
from omega.sync.refresher import Refresher


class Driver:
    """Answers effects from a store, and keeps the view between them."""

    def __init__(
        self, store: Store, clock: Clock, retry: Retry, refresher: Refresher | None = None
    ) -> None:
        """Without a refresher nobody has a view, and none is asked for."""
        self._store = store
        self._refresher = refresher
        self._clock = clock
        self._patiently = retry
        self._view: View | None = None

    def answer(self, effect: Effect) -> object:
        """Answer an effect, however long the store is away.

        Raises StoreUnavailable only if it is away when the process is to stop.
        """
        match effect:
            case Refresh():
                assert self._refresher is not None, "somebody asks for a view and has none"
                refresher = self._refresher
                self._view = self._patiently("refresh", lambda: refresher.refresh(self._view))
                return self._view
            case Commit(transaction):
                return self._patiently("commit", lambda: self._store.commit(transaction))
            case Call(operation, make):
                return self._patiently(operation, lambda: make(self._store))
            case Think(seconds) | Draw(seconds):  # nothing is drawn here
                if seconds > 0:
                    self._clock.sleep(seconds)
            case Wait(seconds):
                self._clock.sleep(seconds)
        return None

    def answer_once(self, effect: Effect) -> object:
        """Answer a call to the store at the first try; raise StoreUnavailable if it is away."""
        assert isinstance(effect, Call), "the end of a process only calls the store"
        return effect.make(self._store)
