"""Measures attempts: their decision time, and the outcomes of their commits.

Goal     Report decision times and outcomes in the same way in real and in virtual time.
Promise  Effects and answers pass unchanged. Decision time is the time of `Think` and
         `PlaceAtRandom` and the time that the generator computes between effects. The time of other
         effects, such as reads and commits, is none.
Source   Omega (EuroSys 2013), section 4 (metrics): decision time, busyness.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar

from omega.clock import Clock
from omega.events import Sink
from omega.framework.effects import Commit, Effect, Effects, PlaceAtRandom, Think
from omega.framework.job_attempt import JobResult, events_of

_T = TypeVar("_T")


class NoAttemptMeter:
    """Measures nothing, for a driver that counts what it answers."""

    def over(self, steps: Effects[_T]) -> Effects[_T]:
        """Return the generator unchanged."""
        return steps

    def report(self, attempted: Sequence[JobResult]) -> None:
        """Emit nothing."""


class AttemptMeter:
    """Measures the attempts of one process, one at a time."""

    def __init__(self, clock: Clock, sink: Sink) -> None:
        self._clock = clock
        self._sink = sink
        self._thought_s = 0.0
        """Decision time since the last report ..."""
        self._uncommitted_s = 0.0
        """... and the part of it since the last commit."""
        self._since = 0.0

    def over(self, steps: Effects[_T]) -> Effects[_T]:
        """Run a generator of effects and emit a `TransactionJudged` for each of its commits.

        A `TasksEvicted` follows for each job that lost tasks to the commit.
        """
        self._since = self._clock.now()
        with closing(steps):
            go_on: Callable[[], Effect] = partial(next, steps)
            while True:
                try:
                    effect = go_on()
                except StopIteration as end:
                    self._stop()
                    result: _T = end.value
                    return result
                go_on = yield from self._answered(steps, effect)

    def _answered(self, steps: Effects[_T], effect: Effect) -> Effects[Callable[[], Effect]]:
        """Yield an effect; return the call that resumes the generator with its answer."""
        is_thought = isinstance(effect, Think | PlaceAtRandom)
        if not is_thought:
            self._stop()
        began = self._clock.now()
        try:
            answer = yield effect
        except Exception as error:
            self._since = self._clock.now()
            return partial(steps.throw, error)
        if isinstance(effect, Commit):
            thought_s, self._uncommitted_s = self._uncommitted_s, 0.0
            took_s = self._clock.now() - began
            self._sink(effect.judged(answer, thought_s=thought_s, took_s=took_s))
            for event in effect.evicted(answer):
                self._sink(event)
        if not is_thought:
            self._since = self._clock.now()
        return partial(steps.send, answer)

    def report(self, attempted: Sequence[JobResult]) -> None:
        """Emit a `JobAttempted` for each job attempted together, and reset the decision time."""
        for event in events_of(attempted, self._thought_s):
            self._sink(event)
        self._thought_s = self._uncommitted_s = 0.0

    def _stop(self) -> None:
        """Add the time since the last answer to the decision time."""
        thought_s = self._clock.now() - self._since
        self._thought_s += thought_s
        self._uncommitted_s += thought_s
