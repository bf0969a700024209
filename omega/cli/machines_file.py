"""Machines of a cell from a file that a person writes: CSV or YAML.

Goal     Let an operator list machines without learning a trace's format.
Promise  All or none: one malformed machine is BadInput with its line and field. A machine has all
         its kinds from 0 up to LIMITS.amount_max, and a name of its own.
Source   CSV: columns name, cpu_milli, memory_mib, disk_mib, gpus, count (so many alike), and one
         for each attribute; an empty value is none. YAML: a list of machines with the same keys,
         and `attributes`.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from omega.errors import BadInput, did_you_mean
from omega.limits import LIMITS
from omega.model.machines import Machines
from omega.model.resources import DEVICES_MAX, machine_capacity
from omega.workload.quantities import shown
from omega.workload.yaml_lines import documents

AMOUNTS: Final = ("cpu_milli", "memory_mib", "disk_mib", "gpus")
REQUIRED: Final = ("name", "cpu_milli", "memory_mib")
COLUMNS: Final = ("name", *AMOUNTS, "count")
KEYS: Final = (*COLUMNS, "attributes")
COUNT_MAX: Final = 100_000
"""Machines that one line may stand for ..."""
MACHINES_MAX: Final = 1_000_000
"""... and a whole file."""
YAML_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True)
class _Entry:
    """Machines alike, as one line says."""

    line: int
    said: Mapping[str, Any]
    attributes: Mapping[str, Any]


def read_machines(path: Path) -> Machines:
    """Read the machines of a CSV or YAML file, by its suffix.

    Raises BadInput.
    """
    if path.suffix.lower() not in (".csv", *YAML_SUFFIXES):
        raise BadInput("a list of machines is a .csv or a .yaml file", file=str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as opened:
            text = opened.read(LIMITS.file_bytes_max + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadInput(f"cannot be read: {reason}", file=str(path)) from error
    if len(text) > LIMITS.file_bytes_max:
        raise BadInput(f"is longer than {LIMITS.file_bytes_max:,} characters", file=str(path))
    read = _csv_entries if path.suffix.lower() == ".csv" else _yaml_entries
    return _machines(str(path), list(read(str(path), text)))


def _csv_entries(file: str, text: str) -> Iterator[_Entry]:
    reader = csv.reader(StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        columns = [column.strip() for column in next(reader, [])]
        _check_columns(file, columns)
        for row in reader:
            if not row:
                continue
            if len(row) != len(columns):
                raise BadInput(
                    f"a row has as many values as there are columns, {len(columns)}",
                    file=file,
                    line=reader.line_num,
                )
            values = zip(columns, map(str.strip, row), strict=True)
            said = {name: value for name, value in values if value}
            attributes = {name: value for name, value in said.items() if name not in COLUMNS}
            yield _Entry(reader.line_num, said, attributes)
    except csv.Error as error:
        raise BadInput(f"this is not CSV: {error}", file=file, line=reader.line_num) from None


def _check_columns(file: str, columns: list[str]) -> None:
    for column in REQUIRED:
        if column not in columns:
            raise BadInput(f"there is no column {column}", file=file, line=1)
    for column, times in Counter(columns).items():
        if times > 1:
            raise BadInput(f"the column {shown(column)} is there twice", file=file, line=1)


def _yaml_entries(file: str, text: str) -> Iterator[_Entry]:
    for document in documents(text, file):
        if not isinstance(document.value, list):
            raise BadInput("a list of machines is expected, each with `- name:`", file=file)
        for at, said in enumerate(document.value):
            line = document.lines[at,]
            if not isinstance(said, dict):
                raise BadInput("a machine is a mapping of keys to values", file=file, line=line)
            yield _yaml_entry(file, line, said)


def _yaml_entry(file: str, line: int, said: dict[Any, Any]) -> _Entry:
    for key in said:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS)
            raise BadInput(f"a machine has no such key{hint}", file=file, line=line, field=str(key))
    attributes = said.get("attributes") or {}
    if not isinstance(attributes, dict) or any(
        isinstance(v, dict | list) for v in attributes.values()
    ):
        raise BadInput("gives one value a name", file=file, line=line, field="attributes")
    return _Entry(line, said, attributes)


def _machines(file: str, entries: list[_Entry]) -> Machines:
    if not entries:
        raise BadInput("there is no machine in it", file=file)
    names: list[str] = []
    taken: dict[str, int] = {}
    capacities = []
    columns: dict[str, list[str | None]] = {}
    for entry in entries:
        _check_attributes(file, entry)
        amounts = {key: _amount(file, entry, key) for key in AMOUNTS}
        capacity = machine_capacity(**amounts)
        mine = _names(file, entry)
        if len(names) + len(mine) > MACHINES_MAX:
            raise BadInput(
                f"there are more than {MACHINES_MAX:,} machines in it", file=file, line=entry.line
            )
        for name in mine:
            if name in taken:
                raise BadInput(
                    f"{name} is the name of the machine on line {taken[name]}",
                    file=file,
                    line=entry.line,
                    field="name",
                )
            taken[name] = entry.line
            for attribute, value in entry.attributes.items():
                column = columns.setdefault(str(attribute), [])
                column.extend([None] * (len(names) - len(column)))
                column.append(None if value is None else str(value))
            names.append(name)
            capacities.append(capacity)
    for column in columns.values():
        column.extend([None] * (len(names) - len(column)))
    return Machines(tuple(names), np.array(capacities, dtype=np.int64), columns)


def _check_attributes(file: str, entry: _Entry) -> None:
    for attribute, value in entry.attributes.items():
        for text in (str(attribute), "" if value is None else str(value)):
            if problem := problem_with_name(text):
                raise BadInput(problem, file=file, line=entry.line, field=shown(str(attribute)))
        if not str(attribute):
            raise BadInput("an attribute has a name", file=file, line=entry.line)


def problem_with_name(text: str) -> str | None:
    """Say why this cannot be a name or a value, by the rule for the names of jobs."""
    if len(text) > LIMITS.name_length_max:
        return f"is longer than {LIMITS.name_length_max} characters"
    if not text.isprintable():
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
