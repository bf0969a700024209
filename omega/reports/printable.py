r"""Texts that anybody may have written, as a terminal may be given them.

Goal     Let no name, value or sentence do anything to a terminal but be read.
Promise  What is returned is printable: no character of it moves the cursor, ends the line, turns
         the direction of writing or is drawn as nothing. Each of those is written as Python
         writes it, as in \x1b.
Source   Unicode's general categories, by str.isprintable, and its property
         Default_Ignorable_Code_Point for what these call letters and marks.
"""

import re
from typing import Final

from omega.limits import LIMITS
from omega.model.names import UNPRINTABLE_CHARACTERS

NAME_MAX: Final = LIMITS.name_length_max
DETAIL_MAX: Final = LIMITS.detail_length_max
"""Characters that a screen shows of why something is as it is."""
SENTENCE_MAX: Final = 4_000
"""Characters of one complaint, which may hold several details."""
TEXT_MAX: Final = 10_000
"""Characters of any one text on a console, whoever has put it there."""

_DRAWN_AS_NOTHING: Final = re.compile(
    f"[{UNPRINTABLE_CHARACTERS}\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""What no name may have, and the marks that a name may have and a screen does not show."""


def is_printable(text: str) -> bool:
    """Say whether a text can be printed as it is."""
    return text.isprintable() and (text.isascii() or not _DRAWN_AS_NOTHING.search(text))


def escaped(text: str, *, keep: str = "") -> str:
    """Write as Python does what cannot be printed, but `keep` a few characters of a layout."""
    if is_printable(text):
        return text
    return "".join(
        each if each in keep or is_printable(each) else ascii(each)[1:-1] for each in text
    )


def printable(text: str, length_max: int = DETAIL_MAX) -> str:
    """Write a value on one line, at most so long; the end is an ellipsis where it was cut."""
    said = escaped(text[: length_max + 1])  # escaping makes nothing shorter
    return said if len(said) <= length_max else f"{said[: length_max - 1]}…"


def short(name: str) -> str:
    """Write a name, or a value that is as short, on one line."""
    return printable(name, NAME_MAX)
