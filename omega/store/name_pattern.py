"""Names of jobs with stars, as in train-*.

Goal     Let a list of jobs be narrowed to those of one experiment, alike in every store.
Promise  A star stands for any text, also for none; every other character for itself.
Source   PostgreSQL's manual, "LIKE".
"""

import re
from typing import Final

_SPECIAL: Final = re.compile(r"([\\%_])")


def as_like(pattern: str) -> str:
    """Return a pattern of LIKE for a name with stars."""
    return _SPECIAL.sub(r"\\\1", pattern).replace("*", "%")


def matches(name: str, pattern: str) -> bool:
    """Return whether a name is that of the pattern."""
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None
