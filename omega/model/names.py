r"""Which characters are allowed in names and in other texts that are sent to Postgres.

Goal     Refuse in files and on the command line what the database would refuse.
Promise  `UNPRINTABLE` matches the characters that the SQL function `omega.can_name` refuses, and
         NUL, which Postgres cannot store; a test compares them.
Source   docs/decisions/0029-hostile-logins.md. str.isprintable follows Unicode's categories and so
         accepts four letters that are drawn as nothing: \u115f, \u1160, \u3164 and \uffa0.
"""

import re
from typing import Final

from omega.limits import LIMITS

UNPRINTABLE_CHARACTERS: Final = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""The characters, written as the inside of a regular expression's character class."""

UNPRINTABLE: Final = re.compile(f"[{UNPRINTABLE_CHARACTERS}]")

ADDRESS: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{LIMITS.address_length_max}}}")
ADDRESS_RULE: Final = f"it is 1 to {LIMITS.address_length_max} letters, digits and . : _ -"


def is_address(text: str) -> bool:
    """Return whether a text may be the address of a machine, as `omega.is_address` does.

    It goes into lists of hosts and environments, whose separators it must not hold.
    """
    return ADDRESS.fullmatch(text) is not None


def is_printable_name(text: str) -> bool:
    """Return whether each character of a name is printable, by Python and by the database."""
    return text.isprintable() and (text.isascii() or is_storable_name(text))


def is_storable_name(text: str) -> bool:
    """Return whether the database takes each character of a name: it takes more than Python prints.

    What was stored so is shown escaped.
    """
    return not UNPRINTABLE.search(text)
