r"""Which characters a name, or any value that is sent to Postgres as text, may have.

Goal     Refuse in files and on the command line what the database would refuse.
Promise  `UNPRINTABLE` is what `omega.can_name` refuses, and NUL, which Postgres does not know; a
         test compares them.
Source   docs/decisions/0029-hostile-logins.md. str.isprintable goes by Unicode's categories, and
         takes four letters that are drawn as nothing: \u115f, \u1160, \u3164 and \uffa0.
"""

import re
from typing import Final

UNPRINTABLE_CHARACTERS: Final = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""As they stand in a class of a regular expression."""

UNPRINTABLE: Final = re.compile(f"[{UNPRINTABLE_CHARACTERS}]")


def is_printable_name(text: str) -> bool:
    """Say whether each character of a name can be printed, here and for the database."""
    return text.isprintable() and (text.isascii() or not UNPRINTABLE.search(text))
