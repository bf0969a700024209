"""JSON that one process leaves for others: bounded, so that all of them can read it.

Goal     Say once what a memo or facts may be, for stores that hold them as Python values.
Promise  What passes here passes `omega.is_readable` in Postgres, whose bound on bytes counts the
         spaces that Postgres writes.
Source   docs/decisions/0029-hostile-logins.md.
"""

import json
import sys
from collections.abc import Collection, Mapping

from omega.errors import BadInput
from omega.limits import LIMITS


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
