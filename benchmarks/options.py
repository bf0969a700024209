"""Options that several benchmarks have, declared once."""

from typing import Annotated, Final

import typer

from omega.errors import BadInput
from omega.terminal.options import DataDir, JsonTo, PlotTo, Seed, number_option

__all__ = ["DataDir", "JsonTo", "PlotTo", "Seconds", "Seed", "Smoke", "numbers", "words"]

DIGITS_MAX: Final = 18
"""Digits of a number at most: Python refuses to read a number of thousands of digits."""

Smoke = Annotated[
    bool, typer.Option("--smoke", help="Toy size, in seconds: to see that it works, not how fast.")
]
Seconds = Annotated[
    float | None,
    number_option(
        lowest=0.01,
        highest=1e6,
        metavar="S",
        help="Time to spend measuring: more time, less noise.",
    ),
]


def numbers(text: str, *, option: str, most: int, least: int = 1) -> tuple[int, ...]:
    """Read `1,10,100`; raise BadInput for any other text, and for a number out of bounds."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= DIGITS_MAX for part in parts):
        raise BadInput(f"{text!r} does not read as numbers like 1,10,100", field=option)
    read = tuple(dict.fromkeys(int(part) for part in parts))
    if not all(least <= number <= most for number in read):
        raise BadInput(f"{text!r} holds a number that is not in {least} to {most:,}", field=option)
    return read


def words(text: str, *, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list of names; raise BadInput for a name that is not in `known`."""
    read = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for word in read:
        if word not in known:
            raise BadInput(f"{word!r} is none of {', '.join(known)}", field=option)
    return read
