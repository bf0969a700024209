"""The driver of virtual time: moves a life on from effect to effect.

Goal     One loop for all that lives in virtual time: processes on a memory store, the schedulers of
         the paper's experiments on a cell of arrays or on offers, and virtual nodes.
Promise  No time passes between effects but what an effect takes. A life that is killed, by what it
         asks for itself too, is asked nothing more.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from omega.framework.effects import Effect, Steps

GoOn = Callable[[], Effect]
"""How a life goes on: with the answer that it waits for."""


class Actor(ABC):
    """One life in virtual time, whoever answers it."""

    def __init__(self) -> None:
        self._steps: Steps[None] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its life has begun and is not over."""
        return self._steps is not None

    def kill(self) -> None:
        """End its life wherever it stands, and tell nobody."""
        self._steps = None  # what it asks from now on has no answer

    def _start(self, life: Steps[None]) -> None:
        """Begin a life at once."""
        self._steps = life
        self._live(life, partial(next, life))

    def _resume(self, answer: object) -> None:
        """Go on with an answer that it has waited for."""
        life = self._steps
        assert life is not None, "its life is over"
        self._live(life, partial(life.send, answer))

    def _live(self, life: Steps[None], go_on: GoOn) -> None:
        """Answer effects until one takes time, or the life is over."""
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
                return  # it was killed by what it did itself
            later = self._next(life, effect)
            if later is None:
                return
            go_on = later

    @abstractmethod
    def _next(self, life: Steps[None], effect: Effect) -> GoOn | None:
        """Answer an effect; return how the life goes on, or None if that takes time."""
