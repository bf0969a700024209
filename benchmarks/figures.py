"""Figures of committed documents, as templates name them.

`{commit: summary.clients}` is what results/commit.json has there. A list is searched by what an
entry holds: `{sync: rows[way=full, machines=10000].p50_ms | .1f}`. Behind the bar stands a format
of Python's; a float needs one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

FIELD: Final = re.compile(r"\{([\w-]+): ([^{}|]+?)(?: \| ([^{}|]+))?\}")
BRACE: Final = re.compile(r"\{[^{}]*\}?|\}")
STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\[\]]+)\]")
NAMES_MAX: Final = 12
"""Names that a complaint lists at most."""


class NoSuchFigure(ValueError):
    """A field names no figure, or asks for it in a format that it cannot have."""


class Results:
    """The documents of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Any] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all documents."""
        return frozenset(path.stem for path in self._folder.glob("*.json"))

    @property
    def used(self) -> frozenset[str]:
        """The names of those that were asked for."""
        return frozenset(self._read)

    def document(self, name: str) -> Any:  # noqa: ANN401 - what JSON holds
        """Return a document; raise NoSuchFigure if there is none of this name."""
        if name not in self.names:
            raise NoSuchFigure(f"{self._folder.name} has no {name}.json")
        if name not in self._read:
            text = (self._folder / f"{name}.json").read_text(encoding="utf-8")
            self._read[name] = json.loads(text)
        return self._read[name]


def filled(text: str, results: Results) -> str:
    """Return the text with a figure for each field; raise NoSuchFigure for what is no field."""
    return "".join(_parts(text, results))


def found(document: Any, path: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Walk down a document; raise NoSuchFigure where the path leads nowhere."""
    part, walked = document, ""
    for step in STEP.finditer(path):
        name, terms = step.groups()
        part = _named(part, name, walked) if name else _matching(part, terms, walked)
        walked = path[: step.end()]
    return part


def _parts(text: str, results: Results) -> Iterator[str]:
    end = 0
    for brace in BRACE.finditer(text):
        field = FIELD.fullmatch(brace[0])
        if field is None:
            raise NoSuchFigure(f"{brace[0]} is no field: write {{document: path | format}}")
        yield text[end : brace.start()]
        yield _figure(results, *field.groups())
        end = brace.end()
    yield text[end:]


def _figure(results: Results, name: str, path: str, form: str | None) -> str:
    try:
        return _formatted(found(results.document(name), path), form)
    except NoSuchFigure as error:
        raise NoSuchFigure(f"{name}: {path}: {error}") from None


def _formatted(value: object, form: str | None) -> str:
    if value is None or isinstance(value, Mapping | list):
        what = "nothing" if value is None else "no single figure"
        raise NoSuchFigure(f"there is {what} there")
    if form is None and isinstance(value, float):
        raise NoSuchFigure(f"{value} needs a format, such as .2f")
    try:
        return format(value, form or ("," if isinstance(value, int) else ""))
    except ValueError as error:
        raise NoSuchFigure(f"{value!r} cannot be written as {form}: {error}") from None


def _named(part: Any, name: str, walked: str) -> Any:  # noqa: ANN401 - what JSON holds
    if not isinstance(part, Mapping) or name not in part:
        there = _listed(list(part)) if isinstance(part, Mapping) else type(part).__name__
        raise NoSuchFigure(f"{walked or 'the document'} has no {name!r}, but {there}")
    return part[name]


def _matching(part: Any, terms: str, walked: str) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(part, list):
        raise NoSuchFigure(f"{walked or 'the document'} is no list")
    wanted = dict(term.strip().partition("=")[::2] for term in terms.split(","))
    entries = [
        entry
        for entry in part
        if all(key in entry and str(entry[key]) == value for key, value in wanted.items())
    ]
    if len(entries) != 1:
        raise NoSuchFigure(f"{len(entries)} entries of {walked} match [{terms}], not 1")
    return entries[0]


def _listed(names: Sequence[str]) -> str:
    more = "" if len(names) <= NAMES_MAX else f" and {len(names) - NAMES_MAX} more"
    return ", ".join(names[:NAMES_MAX]) + more
