"""The driver for virtual time: it runs a generator of effects and answers each effect.

Goal     One driver for everything that runs in virtual time: processes on a memory store, the
         schedulers of the paper's experiments on a cell of arrays or on offers, virtual nodes.
Promise  Virtual time passes only while an effect that takes time is answered. A generator that was
         killed, even by one of its own effects, is never resumed.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from omega.framework.effects import Effect, Effects

Resume = Callable[[], Effect]
"""Resumes a generator with the answer that it waits for; returns its next effect."""


class Actor(ABC):
    """Runs one generator of effects in virtual time; subclasses answer the effects."""

    def __init__(self) -> None:
        self._steps: Effects[None] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the generator was started and has not ended."""
        return self._steps is not None

    def kill(self) -> None:
        """Stop the generator where it is; nothing reports it."""
        self._steps = None  # an answer that arrives later has no generator to resume

    def _start(self, life: Effects[None]) -> None:
        """Start a generator of effects at once."""
        self._steps = life
        self._live(life, partial(next, life))

    def _resume(self, answer: object) -> None:
        """Resume the generator with the answer that it waits for."""
        life = self._steps
        assert life is not None, "its life is over"
        self._live(life, partial(life.send, answer))

    def _live(self, life: Effects[None], go_on: Resume) -> None:
        """Answer effects until one takes time, or the generator ends."""
        while life is self._steps:
            try:
                effect = go_on()
            except StopIteration:
                self._steps = None
                return
            except BaseException:
                self._steps = None
                raise
            if life is not self._steps:
                return  # one of its own effects killed it
            later = self._next(life, effect)
            if later is None:
                return
            go_on = later

    @abstractmethod
    def _next(self, life: Effects[None], effect: Effect) -> Resume | None:
        """Answer an effect; return what resumes the generator, or None if the answer takes time."""
