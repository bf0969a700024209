"""How the lines of a page are set: text is wrapped, and the columns of tables are aligned."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final, Literal

WIDTH: Final = 100
"""Of a page's lines, in characters; only a link or a picture may be longer."""
FENCE: Final = "```"
MARKER: Final = re.compile(r" *(?:[*+-]|\d+[.)])(?: +|$)")
"""What makes an item of a list of a line that begins with it."""
RULER: Final = re.compile(r":?-+:?")


class CannotBeSet(ValueError):
    """Lines that would read otherwise on the page, or be wider than a screen."""


@dataclass(frozen=True)
class Block:
    """Some lines of a template that are set together."""

    kind: Literal["fence", "table", "text", "line"]
    line: int
    """The number of the first."""
    lines: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a template, in order; all lines are in one of them."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        kind = _kind(lines[at])
        end = at + 1
        if kind == "fence":
            while end < len(lines) and lines[end] != FENCE:
                end += 1
            end = min(end + 1, len(lines))
        elif kind != "line":
            while (
                end < len(lines)
                and _kind(lines[end]) == kind
                and not (kind == "text" and MARKER.match(lines[end]))
            ):
                end += 1
        yield Block(kind, at + 1, tuple(lines[at:end]))
        at = end


def aligned(lines: Sequence[str]) -> list[str]:
    """Return a table with its columns below each other; raise CannotBeSet for one too wide."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    if any(len(row) != len(rows[0]) for row in rows):
        raise CannotBeSet("the rows of the table have different numbers of columns")
    rights = [cell.endswith(":") for cell in rows[1]]
    widths = [
        max(3, *(len(row[column]) for number, row in enumerate(rows) if number != 1))
        for column in range(len(rows[0]))
    ]
    found = [f"| {' | '.join(map(_cell, row, widths, rights))} |" for row in rows]
    if len(found[0]) > WIDTH:
        raise CannotBeSet(f"the table is {len(found[0])} characters wide, over {WIDTH}")
    return found


def wrapped(lines: Sequence[str], indent: str = "") -> list[str]:
    """Return a paragraph, or an item of a list, in lines that are full."""
    text = " ".join(line.strip() for line in lines)
    if marker := MARKER.match(lines[0]):
        indent = marker[0]
        text = text.removeprefix(indent.strip()).strip()
    found = wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
    if any(MARKER.match(line) for line in found[1:]):
        raise CannotBeSet("a line of the page would begin as an item of a list does: reword it")
    return found


def _kind(line: str) -> Literal["fence", "table", "text", "line"]:
    if line.startswith(FENCE):
        return "fence"
    if line.startswith("|"):
        return "table"
    return "line" if not line.strip() or line.startswith(("#", "![", "<!--")) else "text"


def _cell(text: str, width: int, right: bool) -> str:
    if RULER.fullmatch(text):
        return "-" * (width - 1) + ":" if right else "-" * width
    return text.rjust(width) if right else text.ljust(width)
