r"""Untrusted texts, made printable for a terminal.

Goal     Prevent names, values and sentences from controlling the terminal.
Promise  The returned text is printable: no character of it moves the cursor, ends the line, turns
         the direction of writing or is invisible. Each such character is written as Python's
         escape for it, as in \x1b.
Source   Unicode's general categories, by str.isprintable, and its property
         Default_Ignorable_Code_Point for invisible letters and marks.
"""

import re
from typing import Final

from omega.limits import LIMITS
from omega.model.names import UNPRINTABLE_CHARACTERS

NAME_MAX: Final = LIMITS.name_length_max
DETAIL_MAX: Final = LIMITS.detail_length_max
"""Characters of a reason that a screen shows."""
SENTENCE_MAX: Final = 4_000
"""Characters of one complaint, which may hold several details."""
TEXT_MAX: Final = 10_000
"""Characters of any one text on a console."""

_DRAWN_AS_NOTHING: Final = re.compile(
    f"[{UNPRINTABLE_CHARACTERS}\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""Characters that no name may have, and marks that a name may have and a screen does not show."""


def is_printable(text: str) -> bool:
    """Return whether a text can be printed as it is."""
    return text.isprintable() and (text.isascii() or not _DRAWN_AS_NOTHING.search(text))


def escaped(text: str, *, keep: str = "") -> str:
    """Return a text with Python's escapes for unprintable characters; those in `keep` stay."""
    if is_printable(text):
        return text
    return "".join(
        each if each in keep or is_printable(each) else ascii(each)[1:-1] for each in text
    )


def printable(text: str, length_max: int = DETAIL_MAX) -> str:
    """Return a text escaped, on one line, cut to `length_max` with an ellipsis at its end."""
    said = escaped(text[: length_max + 1])  # escaping makes nothing shorter
    return said if len(said) <= length_max else f"{said[: length_max - 1]}…"


def short(name: str) -> str:
    """Return a name, or a value of a name's length, escaped on one line."""
    return printable(name, NAME_MAX)
