"""YAML as plain values, with the line of each.

Goal     Let an error name the line of the file, however deep the field.
Promise  The result is values, or BadInput. Only text, numbers, true, false, null, lists and
         mappings are read. No tag makes an object, and an alias is refused. Values, documents and
         depth are limited, and nothing is parsed after the first one too many.
Source   YAML 1.1 as PyYAML parses it. Numbers are decimal only: 010 or 1:30 would surprise people.
         omega.workload.yaml_events parses, by libyaml where PyYAML has it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import yaml

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.workload.quantities import shown
from omega.workload.yaml_events import LOADERS, Events, Loader, line_of

Steps = tuple[str | int, ...]
"""Keys and list positions that lead from a document's root to a value."""
Place: TypeAlias = "int | tuple[int, list[Place] | dict[str, Place]]"
"""The line of a value; if it is a list or a mapping, with the places of what is in it."""

_TAG = "tag:yaml.org,2002:"
_WORD = re.compile(r"\w{1,60}")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", re.ASCII)
_PLAIN_MAX = 38
"""Characters of the longest plain scalar that may be something else than text."""
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_IMPLICIT = yaml.SafeLoader.yaml_implicit_resolvers


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML document."""

    file: str
    value: object
    place: Place

    def line(self, steps: Steps) -> int:
        """Return the line of what stands at `steps`, or of what is nearest above it."""
        place = self.place
        for step in steps:
            match place:
                case (_, list(places)) if isinstance(step, int) and 0 <= step < len(places):
                    place = places[step]
                case (_, dict(places)) if step in places:
                    place = places[str(step)]
                case _:
                    break
        return place if isinstance(place, int) else place[0]

    def reject(self, steps: Steps, sentence: str, *, root: int = 0) -> BadInput:
        """Return the error for what stands at `steps`; the field's name leaves out `root` steps."""
        field = _name(steps[root:]) or None
        return BadInput(sentence, file=self.file, line=self.line(steps), field=field)


def documents(text: str, file: str, loader: Callable[[str], Loader] = LOADERS[0]) -> list[Document]:
    """Return the documents of a YAML text."""
    return _Reader(Events(text, file, loader), file).documents()


class _Reader:
    """Turns events into values and notes the line of each."""

    def __init__(self, events: Events, file: str) -> None:
        self._events = events
        self._file = file

    def documents(self) -> list[Document]:
        read: list[Document] = []
        while not isinstance(event := self._events.take(), yaml.StreamEndEvent):
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if len(read) == LIMITS.jobs_per_submission_max:
                raise self._reject(
                    event, f"there are more than {len(read):,} documents in it; split it"
                )
            root = self._events.take()
            read.append(Document(self._file, *self._value(root, (), line_of(root))))
        return read

    def _value(self, event: yaml.Event, steps: Steps, line: int) -> tuple[object, Place]:
        """Return the value that begins with this event, and its place, on this line."""
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), line
        if len(steps) == LIMITS.yaml_depth_max:
            raise self._reject(event, "this is nested too deeply")
        if isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event, _TAG + "seq")
            values, places = self._items(steps)
            return values, (line, places)
        assert isinstance(event, yaml.MappingStartEvent)
        self._check_tag(event, _TAG + "map")
        fields, places_of = self._fields(steps)
        return fields, (line, places_of)

    def _items(self, steps: Steps) -> tuple[list[object], list[Place]]:
        values: list[object] = []
        places: list[Place] = []
        while not isinstance(event := self._events.take(), yaml.SequenceEndEvent):
            line = line_of(event)
            if isinstance(event, yaml.ScalarEvent):
                values.append(self._scalar(event))
                places.append(line)
            else:
                value, place = self._value(event, (*steps, len(values)), line)
                values.append(value)
                places.append(place)
        return values, places

    def _fields(self, steps: Steps) -> tuple[dict[str, object], dict[str, Place]]:
        values: dict[str, object] = {}
        places: dict[str, Place] = {}
        while not isinstance(event := self._events.take(), yaml.MappingEndEvent):
            key = self._key(event)
            if key in values:
                raise self._reject(event, "this key occurs twice", (*steps, key))
            line = line_of(event)
            inner = self._events.take()
            if isinstance(inner, yaml.ScalarEvent):
                values[key], places[key] = self._scalar(inner), line
            else:
                values[key], places[key] = self._value(inner, (*steps, key), line)
        return values, places

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._reject(event, "a key must be a word")
        if event.tag is not None:
            self._check_tag(event, *_SCALARS)
        key = event.value
        if len(key) > LIMITS.name_length_max:
            sentence = f"a key is longer than {LIMITS.name_length_max} characters"
            raise self._reject(event, sentence, (key,))
        if not key.isascii():
            self._check_text(event)
        return key

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if not text.isascii():
            self._check_text(event)
        if event.tag is not None:
            self._check_tag(event, *_SCALARS)
            return _SCALARS[event.tag](text)
        return _plain(text) if len(text) <= _PLAIN_MAX and event.implicit[0] else text

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, *known: str) -> None:
        if event.tag is not None and event.tag not in known:
            raise self._reject(event, f"the tag {shown(event.tag)} is not read here")

    def _check_text(self, event: yaml.ScalarEvent) -> None:
        if _LONE_SURROGATE.search(event.value):
            raise self._reject(event, "an escape in it is a lone surrogate")

    def _reject(self, event: yaml.Event, sentence: str, steps: Steps = ()) -> BadInput:
        field = _name(steps) or None
        return BadInput(sentence, file=self._file, line=line_of(event), field=field)


@lru_cache(maxsize=2**12)
def _plain(text: str) -> object:
    """Return what a plain scalar stands for."""
    for tag, pattern in _IMPLICIT.get(text[:1], ()):
        if pattern.match(text):
            return _SCALARS[tag](text)
    return text


def _number(text: str) -> str | int | float:
    """Return a decimal number; whatever else YAML 1.1 takes for one stays text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


_SCALARS: Mapping[str, Callable[[str], object]] = {
    _TAG + "str": str,
    _TAG + "timestamp": str,
    _TAG + "value": str,
    _TAG + "merge": str,
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: _TRUTH.get(text.lower(), text),
    _TAG + "int": _number,
    _TAG + "float": _number,
}
"""By tag, how the text of a scalar is read."""


def _name(steps: Steps) -> str:
    name = ""
    for step in steps:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            word = step if _WORD.fullmatch(step) else shown(step)
            name += f".{word}" if name else word
    return name
