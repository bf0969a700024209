"""Random values for SQL parameters, by type: out of range, malformed, or unusual.

Each value is a Postgres literal, or None for NULL. Small numbers are frequent because they are the
ids of existing rows.
"""

import json
from collections.abc import Callable, Sequence
from re import sub
from typing import TypeVar
from uuid import UUID

import numpy as np

from tests.attack.hostile_names import INVALID_NAMES
from tests.attack.wires import Wire, a_constraint, a_group, a_job

Rng = np.random.Generator
Literal = str | None
Choice = TypeVar("Choice")

BOUNDARIES = {
    "smallint": (-1, 3, 4, 2**15 - 1, -(2**15)),
    "integer": (-1, 0, 100_000, 2**31 - 1, -(2**31)),
    "bigint": (-1, 0, 2**31, 86_400_001, 315_576_000_001, 2**58, 2**63 - 1, -(2**63)),
}
NAMES = ("batch", "service", "ann", "bob", "tenant", "scheduler", "transaction", "job", "no_room")
JSON_SCALARS = (
    "0",
    "1",
    "-1",
    "0.5",
    "1e400",
    "1e130000",
    str(2**63),
    "null",
    '"1"',
    "true",
    "[]",
    "{}",
)
JSON_DOCUMENTS = ("null", "1", '"a"', "[]", "{}", '{"a": 1}', '[{"a": 1}]')


def one_of(rng: Rng, choices: Sequence[Choice]) -> Choice:
    """Draw one of the choices."""
    return choices[int(rng.integers(len(choices)))]


def number(sql_type: str) -> Callable[[Rng], str]:
    """Return a function that draws small numbers and the boundaries of a type."""

    def draw(rng: Rng) -> str:
        if rng.random() < 0.75:
            return str(rng.integers(0, 9))
        return str(one_of(rng, BOUNDARIES[sql_type]))

    return draw


def text(rng: Rng) -> str:
    """Draw a name: mostly an existing one, sometimes an invalid one."""
    return one_of(rng, NAMES if rng.random() < 0.8 else list(INVALID_NAMES.values()))


def token(rng: Rng) -> str:
    return str(UUID(int=int(rng.integers(0, 4))))


def document(rng: Rng) -> str:
    """Draw JSON: mostly jobs in which up to two digits are replaced."""
    if rng.random() < 0.3:
        return one_of(rng, JSON_DOCUMENTS)
    wires: list[Wire] = [
        a_job(a_group(tasks=2, cpu_milli=500), tenant="bob"),
        a_job(a_group(constraints=[a_constraint()]), a_group(gpus=1), minimum=2),
    ]
    changed = json.dumps(wires)
    for _ in range(int(rng.integers(0, 3))):
        digits = [n for n, character in enumerate(changed) if character.isdigit()]
        at = one_of(rng, digits)
        changed = changed[:at] + one_of(rng, JSON_SCALARS) + changed[at + 1 :]
    try:
        json.loads(changed)
    except ValueError:
        return json.dumps(wires)
    # The parser of Postgres refuses exponents beyond 131,071, before a function is called.
    return sub(r"e(-?\d{5})\d+", r"e\1", changed)


GENERATORS: dict[str, Callable[[Rng], str]] = {
    "smallint": number("smallint"),
    "integer": number("integer"),
    "bigint": number("bigint"),
    "boolean": lambda rng: str(bool(rng.integers(2))).lower(),
    "text": text,
    "uuid": token,
    "jsonb": document,
    "bytea": lambda rng: one_of(rng, ("", "x", "\\x00ff")),
}
"""By type, a function that draws a value."""


def value(rng: Rng, sql_type: str, length: int) -> Literal:
    """Draw a value of a type; an array mostly has this length."""
    if rng.random() < 0.08:
        return None
    if sql_type.endswith("[]"):
        return array(rng, sql_type.removesuffix("[]"), length)
    return GENERATORS[sql_type](rng)


def array(rng: Rng, sql_type: str, length: int) -> str:
    """Draw an array: sometimes with a NULL, another lower bound or two dimensions."""
    if rng.random() < 0.1:
        length = int(rng.integers(0, 4))
    entries = [quoted(GENERATORS[sql_type](rng)) for _ in range(length)]
    shape = rng.random()
    if shape < 0.04:
        entries.append("NULL")
    elif shape < 0.07 and entries:
        return f"[0:{len(entries) - 1}]=" + braced(entries)
    elif shape < 0.1 and entries:
        return braced([braced(entries), braced(entries)])
    return braced(entries)


def quoted(entry: str) -> str:
    return '"' + entry.replace("\\", "\\\\").replace('"', '\\"') + '"'


def braced(entries: list[str]) -> str:
    return "{" + ",".join(entries) + "}"
