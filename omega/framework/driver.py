"""Answers the loop's effects for real: with a store and a clock.

Goal     Be the only place where a running scheduler touches the cell.
Promise  A commit whose answer was lost is sent again under the same id. What passes between two
         answers is decision time, whether slept or computed.
Source   Omega (EuroSys 2013), section 3.4; omega.framework.effects.
"""

from collections.abc import Sequence
from typing import TypeVar

from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.framework.attempt import Replica, attempt
from omega.framework.effects import Answer, Commit, Effect, Refresh, Steps, Think, drive
from omega.framework.patience import Patience
from omega.framework.progress import Attempted, events_of
from omega.model.jobs import LeasedJob
from omega.store.base import CellStore
from omega.sync.refresher import Refresher

_T = TypeVar("_T")


class Driver:
    """Makes attempts on a store, and keeps the view between them."""

    def __init__(
        self,
        store: CellStore,
        refresher: Refresher,
        clock: Clock,
        sink: Sink,
        patience: Patience,
    ) -> None:
        self._store = store
        self._refresher = refresher
        self._clock = clock
        self._sink = sink
        self._patiently = patience
        self._view: View | None = None
        self._thought_s = 0.0
        self._thinks_since = 0.0

    def refresh(self) -> View:
        """Bring the view up to date and return it."""
        self._view = self._patiently("refresh", lambda: self._refresher.refresh(self._view))
        return self._view

    def attempt(self, replica: Replica, jobs: Sequence[LeasedJob]) -> list[Attempted]:
        """Make one attempt at these jobs together, and report it."""
        self._thought_s = 0.0
        return self._reported(self._driven(attempt(replica, jobs)))

    def _driven(self, steps: Steps[_T]) -> _T:
        self._thinks_since = self._clock.now()
        result = drive(steps, self._answer)
        self._stop_thinking()
        return result

    def _reported(self, attempted: list[Attempted]) -> list[Attempted]:
        for event in events_of(attempted, self._thought_s):
            self._sink(event)
        return attempted

    def _answer(self, effect: Effect) -> Answer:
        match effect:
            case Think(seconds):
                if seconds > 0:
                    self._clock.sleep(seconds)
                return None
            case Refresh():
                answer: Answer = self.refresh()
            case Commit():
                answer = self._commit(effect)
        self._thinks_since = self._clock.now()
        return answer

    def _commit(self, effect: Commit) -> Answer:
        thought_s = self._stop_thinking()
        began = self._clock.now()
        outcome = self._patiently("commit", lambda: self._store.commit(effect.transaction))
        took_s = self._clock.now() - began
        self._sink(effect.judged(outcome, thought_s=thought_s, took_s=took_s))
        return outcome

    def _stop_thinking(self) -> float:
        """Book the decision time since the last answer and return it."""
        thought_s = self._clock.now() - self._thinks_since
        self._thought_s += thought_s
        return thought_s
