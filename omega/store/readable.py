"""Data that one process stores for others, limited so that all of them can read it.

Goal     Say in one place what memos, facts and sentences may contain.
Promise  A sentence is cut and escaped so that `omega.can_name` in Postgres accepts it. An object
         that is accepted here may still be too long for `omega.is_readable`, which counts digits
         written out.
Source   docs/decisions/0029-hostile-logins.md.
"""

import json
import sys
from collections.abc import Collection, Mapping

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.names import UNPRINTABLE


def readable_sentence(text: str) -> str:
    """Return the text with unprintable characters escaped, cut to `LIMITS.detail_length_max`.

    It may contain submitted text.
    """
    said = UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text[: LIMITS.detail_length_max])
    if max(len(said), len(text)) <= LIMITS.detail_length_max:
        return said
    return f"{said[: LIMITS.detail_length_max - 3]}..."


def readable_text(value: Mapping[str, object], *, bytes_max: int) -> str:
    """Return an object as JSON; raise BadInput if it is too long, too deep or has huge numbers."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (RecursionError, ValueError) as error:
        raise BadInput(f"an object cannot be written as JSON ({type(error).__name__})") from None
    if len(text) > bytes_max:
        raise BadInput(f"an object of {len(text)} bytes is longer than {bytes_max}")
    level: list[object] = [value]
    for _ in range(LIMITS.json_depth_max):
        inner: list[object] = []
        for container in level:
            for one in _inside(container):
                if isinstance(one, int):
                    if abs(one) > sys.float_info.max:
                        raise BadInput("an object has a number that is more than a double holds")
                elif isinstance(one, Mapping | list | tuple):
                    inner.append(one)
        level = inner
    if level:
        raise BadInput(f"an object has more than {LIMITS.json_depth_max} levels")
    return text


def _inside(container: object) -> Collection[object]:
    if isinstance(container, Mapping):
        return container.values()
    assert isinstance(container, list | tuple)
    return container
