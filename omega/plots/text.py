"""The words around a plot: a short headline, the rest of the finding, and each claim.

Goal     Let a headline be read at a glance, and leave out nothing that it has no room for.
Promise  A headline has at most two lines, and ends with a whole clause where one fits. What follows
         it is the rest of the text, word for word.
Source   Findings of benchmarks and titles of simulations.
"""

import re
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

HEADLINE_LINES_MAX: Final = 2
ABOVE_ONE: Final = {
    "busy": "busyness above 1: a decision counts whole when it ends, also if it began before",
    "conflict_fraction": "conflict fraction: conflicted transactions for each conflict-free one, so"
    " it may exceed 1",
    "think_started": "shares above 1: a decision counts whole when it begins, also if the run ends"
    " before it does",
}
"""Why a measure that looks like a share may exceed one."""
CLEARLY: Final = 1.01
"""From here on it is seen in a picture."""
MEASURED_MAX: Final = 90
"""Letters of what was measured that a picture has room for; pages have all."""
HOLDS: Final = {True: "\N{CHECK MARK}", False: "\N{BALLOT X}"}


def headline_and_rest(text: str, letters: int) -> tuple[list[str], str]:
    """Return the lines of a headline of so many letters a line, and what it has no room for."""
    lines = _lines(text, letters)
    if len(lines) <= HEADLINE_LINES_MAX:
        return lines, ""
    ends = [found.start() for found in re.finditer(r"(?<=[;.:,]) ", text)]
    fitting = [end for end in ends if len(_lines(text[:end], letters)) <= HEADLINE_LINES_MAX]
    # A comma within a list is no end where a clause ends at all.
    clauses = [end for end in fitting if text[end - 1] in ";."]
    end = max(clauses or fitting, default=0)
    if not end:
        head = lines[:HEADLINE_LINES_MAX]
        return head, " ".join(lines[HEADLINE_LINES_MAX:])
    return _lines(text[:end].rstrip(";,:"), letters), text[end:].strip()


def claim_lines(claims: Sequence[Mapping[str, Any]], letters: int) -> list[str]:
    """Return each claim, marked whether it holds, with what was measured if that is short."""
    lines = []
    for claim in claims:
        measured = f": {claim['measured']}" if len(claim["measured"]) <= MEASURED_MAX else ""
        told = f"{HOLDS[bool(claim['holds'])]} {claim['claim']}{measured}"
        first, *more = wrap(told, letters, break_on_hyphens=False)
        lines += [first, *(f"    {line}" for line in more)]
    return lines


def _lines(text: str, letters: int) -> list[str]:
    return wrap(text, letters, break_on_hyphens=False)
