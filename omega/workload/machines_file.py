"""Machines of a cell from a file that a person writes: CSV or YAML.

Goal     Let an operator list machines without learning a trace's format.
Promise  All or none: one malformed machine is BadInput with its line and field. A machine has all
         its kinds from 0 up to LIMITS.amount_max, and a name of its own. Machines, attributes and
         the length of a row are limited, so that no file fills the memory.
Source   CSV: columns name, cpu_milli, memory_mib, disk_mib, gpus, count (so many alike), and one
         for each attribute; an empty value means none. YAML: a list of machines with the same keys,
         and `attributes`.
"""

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from omega.errors import BadInput, did_you_mean
from omega.limits import LIMITS
from omega.model.arrays import Amounts
from omega.model.machines import Machines
from omega.model.names import is_printable_name
from omega.model.resources import DEVICES_MAX, Kind, machine_capacity
from omega.workload.quantities import shown
from omega.workload.text_file import read_text
from omega.workload.yaml_lines import Document, documents

AMOUNTS: Final = ("cpu_milli", "memory_mib", "disk_mib", "gpus")
REQUIRED: Final = ("name", "cpu_milli", "memory_mib")
COLUMNS: Final = ("name", *AMOUNTS, "count")
KEYS: Final = (*COLUMNS, "attributes")
COUNT_MAX: Final = 100_000
"""Machines that one line may stand for."""
MACHINES_MAX: Final = 1_000_000
"""Machines of a whole file."""
ATTRIBUTES_MAX: Final = 256
"""Names of attributes in a file."""
VALUES_MAX: Final = 20_000_000
"""Values of attributes in a file: machines times names, because missing values are stored, too."""
ROW_LENGTH_MAX: Final = 2**17
"""Characters of one row of a CSV file."""
YAML_SUFFIXES: Final = (".yaml", ".yml")

_BLANK_OR_LINE = re.compile(r"[\r\n]++|[^\r\n]++(?:\r\n?|\n)?")


class _Entry(NamedTuple):
    """The equal machines that one line of CSV, or one mapping of YAML, describes."""

    line: int
    said: Mapping[str, Any]
    attributes: Mapping[str, Any]


def read_machines(path: Path) -> Machines:
    """Read the machines of a CSV or YAML file, by its suffix.

    Raises BadInput.
    """
    if path.suffix.lower() not in (".csv", *YAML_SUFFIXES):
        raise BadInput("a list of machines is a .csv or a .yaml file", file=str(path))
    text = read_text(path)
    read = _csv_entries if path.suffix.lower() == ".csv" else _yaml_entries
    return _machines(str(path), read(str(path), text))


class _Rows:
    """The rows of a CSV text, each with the number of its last line."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._line = 0
        self._length = 0

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for row in csv.reader(self._lines(), skipinitialspace=True, strict=True):
                self._length = 0
                yield self._line, row
        except csv.Error as error:
            raise BadInput(f"this is not CSV: {error}", file=self._file, line=self._line) from None

    def _lines(self) -> Iterator[str]:
        """Yield the lines; blank lines only within a quoted value."""
        for found in _BLANK_OR_LINE.finditer(self._text):
            lines = found[0]
            is_blank = lines[0] in "\r\n"
            if self._length or not is_blank:
                self._length += len(lines)
                if self._length > ROW_LENGTH_MAX:
                    raise BadInput(
                        f"a row is longer than {ROW_LENGTH_MAX:,} characters",
                        file=self._file,
                        line=self._line + 1,
                    )
                for line in lines.splitlines(keepends=True) if is_blank else [lines]:
                    self._line += 1
                    yield line
            else:
                self._line += lines.count("\n") + lines.count("\r") - lines.count("\r\n")


def _csv_entries(file: str, text: str) -> Iterator[_Entry]:
    rows = iter(_Rows(file, text))
    line, header = next(rows, (1, []))
    columns = [column.strip() for column in header]
    _check_columns(file, line, columns)
    own = [(at, column) for at, column in enumerate(columns) if column in COLUMNS]
    others = [(at, column) for at, column in enumerate(columns) if column not in COLUMNS]
    for line, row in rows:
        if len(row) != len(columns):
            raise BadInput(
                f"this row has {len(row)} values, the header has {len(columns)}",
                file=file,
                line=line,
            )
        yield _Entry(line, _said(row, own), _said(row, others))


def _said(row: list[str], columns: list[tuple[int, str]]) -> dict[str, str]:
    return {column: value for at, column in columns if (value := row[at].strip())}


def _check_columns(file: str, line: int, columns: list[str]) -> None:
    for column in REQUIRED:
        if column not in columns:
            raise BadInput(f"there is no column {column}", file=file, line=line)
    for column, times in Counter(columns).items():
        if times > 1:
            raise BadInput(f"the column {shown(column)} is there twice", file=file, line=line)


def _yaml_entries(file: str, text: str) -> Iterator[_Entry]:
    for document in documents(text, file):
        if not isinstance(document.value, list):
            raise BadInput(
                "a list of machines is expected, each with `- name:`",
                file=file,
                line=document.line(()),
            )
        for at, said in enumerate(document.value):
            if not isinstance(said, dict):
                raise document.reject((at,), "a machine is a mapping of keys to values", root=1)
            yield _yaml_entry(document, at, said)


def _yaml_entry(document: Document, at: int, said: dict[str, Any]) -> _Entry:
    for key in said:
        if key not in KEYS:
            sentence = f"a machine has no such key{did_you_mean(key, KEYS)}"
            raise document.reject((at, key), sentence, root=1)
    attributes = said.get("attributes") or {}
    if not isinstance(attributes, dict) or any(
        isinstance(value, dict | list) for value in attributes.values()
    ):
        raise document.reject((at, "attributes"), "must map names to single values", root=1)
    return _Entry(document.line((at,)), said, attributes)


def _machines(file: str, entries: Iterable[_Entry]) -> Machines:
    amounts, counts = array("q"), array("q")
    taken: dict[str, int] = {}
    columns: dict[str, list[str | None]] = {}
    for entry in entries:
        amounts.extend([_amount(file, entry, key) for key in AMOUNTS])
        names = _names(file, entry)
        counts.append(len(names))
        _check_size(file, entry, len(taken) + len(names), columns)
        for attribute, value in entry.attributes.items():
            column = columns.get(attribute)
            if column is None:
                column = columns[attribute] = []
                _check_text(file, entry, attribute, attribute)
            if len(column) < len(taken):
                column.extend([None] * (len(taken) - len(column)))
            text = None if value is None else str(value)
            if text is not None:
                _check_text(file, entry, attribute, text)
            column.extend([text] * len(names))
        for name in names:
            if name in taken:
                raise BadInput(
                    f"{name} is the name of the machine on line {taken[name]}",
                    file=file,
                    line=entry.line,
                    field="name",
                )
            taken[name] = entry.line
    if not taken:
        raise BadInput("there is no machine in it", file=file)
    for column in columns.values():
        column.extend([None] * (len(taken) - len(column)))
    capacity = np.repeat(_capacity(amounts), counts, axis=0)
    return Machines(tuple(taken), capacity, columns)


def _check_size(file: str, entry: _Entry, machines: int, known: Mapping[str, object]) -> None:
    """Raise BadInput for a file with too many machines or values, before they fill the memory."""
    attributes = len(known.keys() | entry.attributes.keys())
    for number, limit, what in (
        (machines, MACHINES_MAX, "machines"),
        (attributes, ATTRIBUTES_MAX, "attributes"),
        (machines * attributes, VALUES_MAX, "values of attributes"),
    ):
        if number > limit:
            raise BadInput(
                f"there are more than {limit:,} {what} in it", file=file, line=entry.line
            )


def _capacity(told: "array[int]") -> Amounts:
    """Return a row for each line: its amounts, and its GPUs as devices."""
    amounts = np.array(told, dtype=np.int64).reshape(-1, len(AMOUNTS))
    by_gpus = np.stack([machine_capacity(0, 0, 0, gpus) for gpus in range(DEVICES_MAX + 1)])
    capacity = by_gpus[amounts[:, AMOUNTS.index("gpus")]]
    for kind in (Kind.CPU_MILLI, Kind.MEMORY_MIB, Kind.DISK_MIB):
        capacity[:, kind] = amounts[:, AMOUNTS.index(kind.column)]
    return capacity


def _check_text(file: str, entry: _Entry, attribute: str, text: str) -> None:
    if not attribute:
        raise BadInput("an attribute has no name", file=file, line=entry.line)
    if problem := problem_with_name(text):
        raise BadInput(problem, file=file, line=entry.line, field=shown(attribute))


def problem_with_name(text: str) -> str | None:
    """Return why a text cannot be a name or value, by the rule for jobs' names; None if it can."""
    if len(text) > LIMITS.name_length_max:
        return f"is longer than {LIMITS.name_length_max} characters"
    if not is_printable_name(text):
        return "holds characters that cannot be printed"
    return None


def _names(file: str, entry: _Entry) -> list[str]:
    said = entry.said.get("name")
    if isinstance(said, bool | list | dict):
        raise BadInput(f"{shown(said)} is no name", file=file, line=entry.line, field="name")
    name = "" if said is None else str(said).strip()
    problem = problem_with_name(name) if name else "is missing"
    if problem is not None:
        raise BadInput(problem, file=file, line=entry.line, field="name")
    if "count" not in entry.said:
        return [name]
    count = _whole(file, entry, "count", entry.said["count"], lowest=1, highest=COUNT_MAX)
    return [f"{name}-{number}" for number in range(1, count + 1)]


def _amount(file: str, entry: _Entry, key: str) -> int:
    if key not in entry.said:
        if key in REQUIRED:
            raise BadInput("is missing", file=file, line=entry.line, field=key)
        return 0
    highest = DEVICES_MAX if key == "gpus" else LIMITS.amount_max
    return _whole(file, entry, key, entry.said[key], lowest=0, highest=highest)


def _whole(file: str, entry: _Entry, key: str, said: object, *, lowest: int, highest: int) -> int:
    try:
        number = int(said) if isinstance(said, str | int) and not isinstance(said, bool) else None
    except ValueError:
        number = None
    if number is None or not lowest <= number <= highest:
        raise BadInput(
            f"must be a whole number from {lowest} to {highest}, not {shown(said)}",
            file=file,
            line=entry.line,
            field=key,
        )
    return number
