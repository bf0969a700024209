"""What one process leaves for others, bounded so that all of them can read it.

Goal     Say once what memos, facts and sentences may be.
Promise  An object that passes here passes `omega.is_readable` in Postgres, a sentence
         `omega.can_name`; the sentence is cut and escaped for that, never refused.
Source   docs/decisions/0029-hostile-logins.md.
"""

import json
import re
import sys
from collections.abc import Collection, Mapping
from typing import Final

from omega.errors import BadInput
from omega.limits import LIMITS

UNPRINTABLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""What `omega.can_name` refuses in a text, and NUL, which Postgres does not know."""


def readable_sentence(text: str) -> str:
    """Return a sentence as it may be kept: without what cannot be printed, and no longer than is.

    It may quote what anybody has submitted.
    """
    said = UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text[: LIMITS.detail_length_max])
    if max(len(said), len(text)) <= LIMITS.detail_length_max:
        return said
    return f"{said[: LIMITS.detail_length_max - 3]}..."


def readable_text(value: Mapping[str, object], *, bytes_max: int) -> str:
    """Return an object as JSON; raise BadInput if it is too long, too deep or has huge numbers."""
    text = json.dumps(value)
    if len(text) > bytes_max:
        raise BadInput(f"an object of {len(text)} bytes is longer than {bytes_max}")
    level: list[object] = [value]
    for _ in range(LIMITS.json_depth_max):
        inner = [one for container in level for one in _inside(container)]
        if any(isinstance(one, int) and abs(one) > sys.float_info.max for one in inner):
            raise BadInput("an object has a number that is more than a double holds")
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
    if level:
        raise BadInput(f"an object has more than {LIMITS.json_depth_max} levels")
    return text


def _inside(container: object) -> Collection[object]:
    if isinstance(container, Mapping):
        return container.values()
    assert isinstance(container, list | tuple)
    return container
