"""The events of a YAML text, from either of PyYAML's loaders.

Goal     Parse by libyaml, which is many times faster, wherever PyYAML was built with it.
Promise  Both loaders give the same values on the same lines, and refuse the same texts with file
         and line; the words may differ. An event is parsed when it is asked for, so that nothing
         is parsed after the first alias, or after as many keys and values as are allowed.
Source   What the two loaders read differently, and no list of jobs or machines needs, is refused:
         tabs, lines that begin with %, and some uses of ? and : in {} and [].
         tests/property/test_yaml.py compares the loaders. Two differences are left: only SafeLoader
         reads a ? that ends a line in [], and after some wrong tags each names another line.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

import yaml

from omega.errors import BadInput
from omega.limits import LIMITS


class Loader(Protocol):
    """The method of PyYAML's loaders that is used."""

    def get_event(self) -> yaml.Event | None:
        """Parse one event."""


LOADERS: Final[tuple[Callable[[str], Loader], ...]] = (
    (yaml.CSafeLoader, yaml.SafeLoader) if yaml.__with_libyaml__ else (yaml.SafeLoader,)
)
"""The loaders that there are, the fastest first."""

_BREAKS = ("\n", "\r", "\x85", "\u2028", "\u2029")
_BREAK = "".join(_BREAKS)
_LINE = re.compile(rf"[^{_BREAK}]+")
_COMMENT = re.compile(r"(?<![^ ])#")
"""Where a comment begins in a line."""
_BLOCK_SCALAR_AND_COMMENT = re.compile(r"(?:[!&]\S*\s+)*[|>][-+0-9]*#")
"""The beginning of a block scalar whose comment follows without a space: libyaml reads it."""
_COLON_WITHOUT_SPACE = re.compile(r"\s*:[,?\[\]{}]")
"""What may follow a plain scalar in {} or []: SafeLoader reads it."""
_BLOCK_STYLES = ("|", ">")
_BYTE_ORDER_MARK = "\ufeff"
_SAID_MAX = 200
"""Characters of a loader's sentence that are repeated."""


class Events:
    """The events of one text, one by one."""

    def __init__(self, text: str, file: str, loader: Callable[[str], Loader] = LOADERS[0]) -> None:
        self._file = file
        # libyaml counts one line more where the last line has no break.
        self._text = text.removeprefix(_BYTE_ORDER_MARK) + ("" if text.endswith(_BREAKS) else "\n")
        self._check_characters()
        self._loader = loader(self._text)
        self._nodes_left = LIMITS.yaml_values_max
        self._flow_depth = 0

    def take(self) -> yaml.Event:
        """Return the next event; the last one is a StreamEndEvent."""
        try:
            event = self._loader.get_event()
        except (yaml.MarkedYAMLError, ValueError, OverflowError) as error:
            raise self._not_yaml(error) from None
        # Most events are scalars, and most of the time of a large file goes into what follows.
        if isinstance(event, yaml.ScalarEvent):
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise self._too_many(event)
            if self._flow_depth or event.style in _BLOCK_STYLES:
                self._check_scalar(event)
            return event
        assert event is not None, "there is no event after the end"
        if isinstance(event, yaml.CollectionStartEvent):
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise self._too_many(event)
            self._flow_depth += bool(self._flow_depth or event.flow_style)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._flow_depth -= bool(self._flow_depth)
        elif isinstance(event, yaml.AliasEvent):
            sentence = "aliases are not read here; write it out"
            raise BadInput(sentence, file=self._file, line=line_of(event))
        return event

    def _not_yaml(self, error: Exception) -> BadInput:
        """Return the error for what the loader says."""
        line = None
        if isinstance(error, yaml.MarkedYAMLError):
            said = ", ".join(filter(None, (error.context, error.problem)))[:_SAID_MAX]
            if mark := error.problem_mark or error.context_mark:
                line = min(mark.line + 1, _breaks(self._text))
        else:
            said = "an escape in it stands for no character"  # chr() of SafeLoader refused
            if isinstance(self._loader, yaml.SafeLoader):
                line = self._loader.line + 1
        return BadInput(f"this is not YAML: {said}", file=self._file, line=line)

    def _too_many(self, event: yaml.Event) -> BadInput:
        return BadInput(
            f"there are more than {LIMITS.yaml_values_max:,} keys and values in it; split it",
            file=self._file,
            line=line_of(event),
        )

    def _check_characters(self) -> None:
        """Raise BadInput for characters that YAML forbids, or that only one loader accepts."""
        text = self._text
        if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
            said = "this is not YAML: special characters are not allowed"
            raise self._refusal(said, found.start())
        if (at := text.find(_BYTE_ORDER_MARK)) >= 0:
            raise self._refusal("this is not YAML: a byte order mark stands inside it", at)
        directives = [at + 1 for end in _BREAKS if (at := text.find(f"{end}%")) >= 0]
        if directives or text.startswith("%"):
            at = 0 if text.startswith("%") else min(directives)
            raise self._refusal("a line that begins with % is not read here; leave it out", at)
        if "\t" in text and (tab := _first_tab(text)) is not None:
            raise self._refusal("tabs are read in comments only; write spaces", tab)

    def _check_scalar(self, event: yaml.ScalarEvent) -> None:
        """Raise BadInput for a scalar that only one of the loaders reads."""
        if event.style in _BLOCK_STYLES:
            assert event.start_mark is not None
            if found := _BLOCK_SCALAR_AND_COMMENT.match(self._text, event.start_mark.index):
                raise self._unexpected("block scalar", found.end() - 1)
        elif event.value and not event.style:
            assert event.start_mark is not None
            assert event.end_mark is not None
            if "?" in event.value:
                at = self._text.find("?", event.start_mark.index)
                raise self._unexpected("plain scalar", at)
            if found := _COLON_WITHOUT_SPACE.match(self._text, event.end_mark.index):
                raise self._unexpected("plain scalar", found.end() - 2)

    def _unexpected(self, what: str, at: int) -> BadInput:
        said = f"while scanning a {what}, found unexpected {self._text[at]!r}"
        return self._refusal(f"this is not YAML: {said}", at)

    def _refusal(self, sentence: str, at: int) -> BadInput:
        return BadInput(sentence, file=self._file, line=_breaks(self._text[:at]) + 1)


def line_of(event: yaml.Event) -> int:
    """Return the line on which an event begins."""
    assert event.start_mark is not None
    return int(event.start_mark.line) + 1


def _first_tab(text: str) -> int | None:
    """Return where the first tab stands that no comment holds; None if there is none."""
    # Not by one expression: it needs a possessive group, which Python 3.11.2 matches wrongly.
    for line in _LINE.finditer(text):
        at = line[0].find("\t")
        if at >= 0 and not _COMMENT.search(line[0], 0, at):
            return line.start() + at
    return None


def _breaks(text: str) -> int:
    return sum(map(text.count, _BREAKS)) - text.count("\r\n")
