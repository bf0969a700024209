"""Values that no program of the project sends, by SQL type, drawn from a seed.

Each is written as Postgres reads it, or is None. Small numbers come often: they are the ids of what
is there.
"""

import json
from collections.abc import Callable
from re import sub
from typing import Any
from uuid import UUID

import numpy as np

from tests.attack.hostile_names import NO_NAMES
from tests.attack.wires import Wire, a_constraint, a_group, a_job

Chance = np.random.Generator
Literal = str | None

BORDERS = {
    "smallint": (-1, 3, 4, 2**15 - 1, -(2**15)),
    "integer": (-1, 0, 100_000, 2**31 - 1, -(2**31)),
    "bigint": (-1, 0, 2**31, 86_400_001, 315_576_000_001, 2**58, 2**63 - 1, -(2**63)),
}
NAMES = ("batch", "service", "ann", "bob", "tenant", "scheduler", "transaction", "job", "no_room")
NUMBERS = (
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


def one_of(chance: Chance, choices: "tuple[Any, ...] | list[Any]") -> Any:  # noqa: ANN401
    """Draw one."""
    return choices[int(chance.integers(len(choices)))]


def number(of: str) -> Callable[[Chance], str]:
    def draw(chance: Chance) -> str:
        if chance.random() < 0.75:
            return str(chance.integers(0, 9))
        return str(one_of(chance, BORDERS[of]))

    return draw


def text(chance: Chance) -> str:
    """Draw a name, mostly one that something here has."""
    return str(one_of(chance, NAMES if chance.random() < 0.8 else list(NO_NAMES.values())))


def token(chance: Chance) -> str:
    return str(UUID(int=int(chance.integers(0, 4))))


def document(chance: Chance) -> str:
    """Draw JSON: jobs that are bent somewhere, or anything."""
    if chance.random() < 0.3:
        return str(one_of(chance, ("null", "1", '"a"', "[]", "{}", '{"a": 1}', '[{"a": 1}]')))
    wires: list[Wire] = [
        a_job(a_group(tasks=2, cpu_milli=500), tenant="bob"),
        a_job(a_group(constraints=[a_constraint()]), a_group(gpus=1), minimum=2),
    ]
    said = json.dumps(wires)
    for _ in range(int(chance.integers(0, 3))):
        spots = [n for n, character in enumerate(said) if character.isdigit()]
        spot = int(one_of(chance, spots))
        said = said[:spot] + one_of(chance, NUMBERS) + said[spot + 1 :]
    try:
        json.loads(said)
    except ValueError:
        return json.dumps(wires)
    # An exponent beyond 131,071 is no number of Postgres's either.
    return sub(r"e(\d{5})\d+", r"e\1", said)


SINGLE: dict[str, Callable[[Chance], str]] = {
    "smallint": number("smallint"),
    "integer": number("integer"),
    "bigint": number("bigint"),
    "boolean": lambda chance: str(bool(chance.integers(2))).lower(),
    "text": text,
    "uuid": token,
    "jsonb": document,
}


def value(chance: Chance, of: str, length: int) -> Literal:
    """Draw a value of a type; an array mostly of this length."""
    if chance.random() < 0.08:
        return None
    if of.endswith("[]"):
        return an_array(chance, of.removesuffix("[]"), length)
    return SINGLE[of](chance)


def an_array(chance: Chance, of: str, length: int) -> str:
    """Draw an array, mostly a plain one."""
    if chance.random() < 0.1:
        length = int(chance.integers(0, 4))
    entries = [quoted(SINGLE[of](chance)) for _ in range(length)]
    shape = chance.random()
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
