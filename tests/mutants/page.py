"""The page that says which test killed which mutant."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.runner import Result, Status

PAGE = "docs/mutants.md"
_ROW = re.compile(r"^\| `(.+?)` \| `.+?` \| .+ \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

HEAD = """\
# Mutation testing

A mutant is the project with one small fault, planted on purpose. `make mutants` plants each in a
copy of the project and runs tests on it until the first fails; then it writes this page. A mutant
is *killed* if a test fails, and *survived* if all pass. It is *timed out* if no test fails in time,
and *invalid* if no test could begin, or if the test that failed also fails without a mutant:
neither counts as killed. The test that killed a mutant last is run first. Examples are the same in
each run: hypothesis draws them from fixed seeds.

A fault is planted by syntax: its fragment of Python or SQL is found by its tokens, whatever the
layout and the comments, and also after its names have changed (`tests/mutants/places.py`).
"""


def page(results: Sequence[Result]) -> str:
    """Return the page, with a table for each part of the project that has mutants."""
    killed = sum(result.status is Status.KILLED for result in results)
    parts = dict.fromkeys(part_of(result.mutant) for result in results)
    tables = [
        "\n".join(_table(part, [result for result in results if part_of(result.mutant) == part]))
        for part in parts
    ]
    return "\n".join([HEAD, f"Killed: {killed} of {len(results)}.", "", "\n\n".join(tables), ""])


def killers(text: str) -> dict[str, tuple[str, str] | None]:
    """Return, for each mutant on a page, the file and the name of the test that killed it."""
    rows: list[tuple[str, str]] = _ROW.findall(text)
    matches = ((name, _TEST.fullmatch(by)) for name, by in rows)
    return {name: (match[1], match[2]) if match else None for name, match in matches}


def part_of(mutant: Mutant) -> str:
    """Return the first word of a mutant's name: the part of the project that it is in."""
    return mutant.name.split(".")[0]


def _table(part: str, results: Sequence[Result]) -> Iterator[str]:
    yield f"## {part}"
    yield ""
    yield "| mutant | in | effect on users | killed by |"
    yield "|---|---|---|---|"
    for result in results:
        mutant = result.mutant
        by = f"`{test_of(result)}`" if result.status is Status.KILLED else f"**{result.status}**"
        yield f"| `{mutant.name}` | `{Path(mutant.file).name}` | {mutant.why} | {by} |"


def test_of(result: Result) -> str:
    """Return which test killed a mutant: its file and its name, without parameters."""
    file, _, inside = result.test.split("[")[0].partition("::")
    return f"{file}::{inside.split('::')[-1]}" if inside else file
