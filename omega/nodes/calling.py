"""Calls of the store, as nodes make them.

Goal     Have a type checker refuse what the login of a node may not call.
Promise  The effect is that of schedulers, `omega.framework.effects.Call`. Many entries are divided
         among calls.
Source   docs/decisions/0002-one-store-protocol.md, docs/decisions/0017-roles.md.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from omega.framework.effects import Call, Effects
from omega.limits import LIMITS
from omega.store.protocols import NodeStore

_T = TypeVar("_T")


def called(operation: str, make: Callable[[NodeStore], _T]) -> Effects[_T]:
    """Call the store; return what it returns."""
    answer: _T = yield Call(operation, make)
    return answer


def parts_for_calls(number: int) -> Iterator[slice]:
    """Yield slices of so many entries, each small enough for one call."""
    for first in range(0, number, LIMITS.tasks_per_release_max):
        yield slice(first, first + LIMITS.tasks_per_release_max)
