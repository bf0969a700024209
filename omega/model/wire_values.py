"""Values of the wire form, read as what they have to be.

Goal     Refuse a value of another type before it ends whoever meets it later.
Promise  Each function returns the value as it is, or raises TypeError or ValueError.
Source   docs/decisions/0004-the-job-queue.md.
"""

from typing import Any


def whole(value: object) -> int:
    """Return the value; raise ValueError unless it is an int of 64 bits, as arrays can hold."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError(f"{str(value)[:30]} is no whole number of 64 bits")
    return value


def truth(value: object) -> bool:
    """Return the value; raise TypeError unless it is true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{str(value)[:30]} is neither true nor false")
    return value


def many(value: object) -> list[Any]:
    """Return the value; raise TypeError unless it is a list."""
    if not isinstance(value, list):
        raise TypeError(f"{str(value)[:30]} is no list")
    return value


def text(value: object) -> str:
    """Return the value; raise TypeError unless it is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:30]} is no text")
    return value
