"""YAML as plain values that remember on which line they stood.

Goal     Let an error name the line of the file, however deep the field.
Promise  Text in, values or BadInput out. Only text, numbers, true, false, null, lists and mappings
         are read; no tag makes an object, no alias makes a small file a large one.
Source   YAML 1.1 as PyYAML composes it; numbers are decimal only, for 010 or 1:30 surprise people.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import yaml

from omega.errors import BadInput
from omega.workload.quantities import shown

Steps = tuple[str | int, ...]
"""Keys and list positions that lead from a document's root to a value."""

_TAG = "tag:yaml.org,2002:"
_WORD = re.compile(r"\w{1,60}")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", re.ASCII)
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML document."""

    file: str
    value: object
    lines: Mapping[Steps, int]

    def reject(self, steps: Steps, sentence: str, *, root: int = 0) -> BadInput:
        """Return the error for what stands at `steps`; the field's name leaves out `root` steps."""
        known = next(n for n in range(len(steps), -1, -1) if steps[:n] in self.lines)
        return BadInput(
            sentence,
            file=self.file,
            line=self.lines[steps[:known]],
            field=_name(steps[root:]) or None,
        )


def documents(text: str, file: str) -> list[Document]:
    """Return the documents of a YAML text."""
    nodes: list[yaml.Node] = []
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            nodes.extend(filter(None, [loader.get_node()]))
    except yaml.MarkedYAMLError as error:
        said = ", ".join(filter(None, (error.context, error.problem)))
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise BadInput(f"this is not YAML: {said}", file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadInput(f"this is not YAML: {error.reason}", file=file, line=line) from None
    except RecursionError:
        raise BadInput("this is nested too deeply", file=file) from None
    except (ValueError, OverflowError) as error:  # such as an escape beyond Unicode
        raise BadInput(f"this is not YAML: {error}", file=file) from None
    return [_Reader(file).document(node) for node in nodes]


class _Reader:
    """Turns one document's nodes into values and notes the line of each."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[Steps, int] = {}
        self._met: set[int] = set()

    def document(self, root: yaml.Node) -> Document:
        try:
            return Document(self._file, self._value(root, ()), self._lines)
        except RecursionError:
            raise BadInput("this is nested too deeply", file=self._file) from None

    def _value(self, node: yaml.Node, steps: Steps) -> object:
        self._lines.setdefault(steps, _line(node))
        self._check(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self._value(item, (*steps, at)) for at, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return dict(self._fields(node, steps))
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return _SCALARS[node.tag](node.value)
        raise self._reject(node, f"the tag {node.tag!r} is not read here")

    def _fields(self, node: yaml.MappingNode, steps: Steps) -> Iterator[tuple[str, object]]:
        met: set[str] = set()
        for key_node, value_node in node.value:
            self._check(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._reject(key_node, "a key must be a word")
            key = key_node.value
            if key in met:
                raise self._reject(key_node, "this is said twice", (*steps, key))
            met.add(key)
            self._lines[*steps, key] = _line(key_node)
            yield key, self._value(value_node, (*steps, key))

    def _check(self, node: yaml.Node) -> None:
        if id(node) in self._met:
            raise self._reject(node, "aliases are not read here; write it out")
        self._met.add(id(node))
        if isinstance(node, yaml.ScalarNode) and _HALF_CHARACTER.search(node.value):
            raise self._reject(node, "an escape in it stands for half a character")

    def _reject(self, node: yaml.Node, sentence: str, steps: Steps = ()) -> BadInput:
        field = _name(steps) or None
        return BadInput(sentence, file=self._file, line=_line(node), field=field)


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


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _name(steps: Steps) -> str:
    name = ""
    for step in steps:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            word = step if _WORD.fullmatch(step) else shown(step)
            name += f".{word}" if name else word
    return name
