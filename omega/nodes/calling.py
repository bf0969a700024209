"""Calls of the store, as nodes make them.

Goal     Have a type checker refuse what the login of a node may not call.
Promise  The effect is that of schedulers, `omega.framework.effects.Call`.
Source   docs/decisions/0002-one-store-protocol.md, docs/decisions/0017-roles.md.
"""

from collections.abc import Callable
from typing import TypeVar

from omega.framework.effects import Call, Effects
from omega.store.protocols import NodeStore

_T = TypeVar("_T")


def called(operation: str, make: Callable[[NodeStore], _T]) -> Effects[_T]:
    """Call the store; return what it returns."""
    answer: _T = yield Call(operation, make)
    return answer
