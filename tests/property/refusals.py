"""What may come of reading something from outside: a value, or a sentence on what is wrong."""

from collections.abc import Callable
from typing import TypeVar

from omega.errors import BadInput

_T = TypeVar("_T")
SENTENCE_MAX = 1_000


def returns_or_bad_input(call: Callable[[], _T]) -> _T | None:
    """Call; any other exception than BadInput, or an error of several lines, fails the test."""
    try:
        return call()
    except BadInput as refusal:
        told = str(refusal)
    assert 1 == len(told.splitlines())
    assert len(told) < SENTENCE_MAX
    return None
