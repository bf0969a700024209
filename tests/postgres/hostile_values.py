"""Values that no program of ours sends: by SQL type, as literals, for whoever calls a function raw.

A value is None, a number, a truth, a text, a UUID, Json or an Array; `literal` writes it down as
Postgres reads it. Small numbers are drawn often, for they are the ids of what a test has put there.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from omega.limits import INT4_MAX, LIMITS


@dataclass(frozen=True)
class Json:
    """A value of type jsonb."""

    value: Any


@dataclass(frozen=True)
class Array:
    """An array; of arrays, if it has several dimensions."""

    elements: tuple[Any, ...]
    lower: int = 1


def literal(value: object) -> str | None:
    """Write a value down."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Json():
            return json.dumps(value.value)
        case Array():
            braced = _braced(value)
            upper = value.lower + len(value.elements) - 1
            has_bounds = value.lower != 1 and value.elements and not _is_nested(value)
            return f"[{value.lower}:{upper}]={braced}" if has_bounds else braced
        case _:
            return str(value)


def _braced(array: Array) -> str:
    return "{" + ",".join(map(_element, array.elements)) + "}"


def _element(value: object) -> str:
    if isinstance(value, Array):
        return _braced(value)
    said = literal(value)
    if said is None:
        return "NULL"
    escaped = said.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _is_nested(array: Array) -> bool:
    return isinstance(array.elements[0], Array)


SMALL = st.integers(0, 9)
BORDERS_4 = st.sampled_from(
    [-1, 100, 1_000, LIMITS.tasks_per_job_max, LIMITS.tasks_per_job_max + 1, -INT4_MAX, INT4_MAX]
)
BORDERS_8 = BORDERS_4 | st.sampled_from([INT4_MAX + 1, 2**63 - 1, -(2**63), 315_576_000_001])
HUGE = "x" * 20_000
"""More than an index takes, though not once it is compressed ..."""
HUGE_AND_PLAIN = "".join(chr(0x4E00 + (7_919 * n) % 20_000) for n in range(3_000))
"""... as this is not."""
WORDS = (
    "batch",
    "tenant",
    "team",
    "scheduler",
    "",
    "service",
    "no_room",
    "machine-1",
    "machine-2",
    "zone",
    "O'Neil\n\u202e",
    "\x1b[2J",
)
TEXTS = (
    st.sampled_from(WORDS)
    | st.sampled_from([HUGE, HUGE_AND_PLAIN])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
)
NUMBERS = SMALL | st.sampled_from([-1, 0.5, 1e300, 2**31, 2**63, 10**40])
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=6,
)

ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "smallint": SMALL | st.sampled_from([-1, 2**15 - 1, -(2**15)]),
    "integer": SMALL | SMALL | BORDERS_4,
    "bigint": SMALL | SMALL | BORDERS_8,
    "boolean": st.booleans(),
    "text": TEXTS,
    "uuid": st.builds(lambda number: UUID(int=number), SMALL | st.just(2**128 - 1)),
    "jsonb": st.builds(Json, PLAIN),
    "bytea": st.sampled_from(["", "x", "\\x00ff"]),
}
"""By type, values other than null. A function with a parameter of a new type needs a line here."""


def values(of: str) -> st.SearchStrategy[Any]:
    """Draw any value of a type, null among them."""
    return st.sampled_from(range(8)).flatmap(
        lambda n: st.none() if n == 0 else arrays(of) if of.endswith("[]") else ELEMENTS[of]
    )


def arrays(of: str) -> st.SearchStrategy[Array]:
    """Draw any array: with nulls, other lower bounds, two dimensions."""
    elements = ELEMENTS[of.removesuffix("[]")]
    flat = st.lists(elements | elements | elements | st.none(), max_size=4).map(tuple)
    pairs = st.lists(st.tuples(elements, elements), min_size=1, max_size=2)
    return (
        st.builds(Array, flat)
        | st.builds(Array, flat, st.sampled_from([-1, 0, 2, INT4_MAX - 9]))
        | pairs.map(lambda rows: Array(tuple(Array(row) for row in rows)))
    )


def in_line(of: str, rows: Sequence[int]) -> Array:
    """Return an array with what stands for each of these numbers in its type.

    In several arrays of one call they are the same numbers: a job and its own token, say.
    """
    stands_for = {
        "boolean": lambda n: n % 2 == 1,
        "text": lambda n: WORDS[n % len(WORDS)],
        "uuid": lambda n: UUID(int=n),
        "jsonb": Json,
    }
    return Array(tuple(map(stands_for.get(of.removesuffix("[]"), int), rows)))
