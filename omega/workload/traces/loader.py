"""A trace loader: the files that it reads, its options, and a function.

Goal     Let the command line offer every trace, with its options, without knowing any.
Promise  An option that a loader does not have, or a value that it does not know, is BadInput.
Source   docs/decisions/0012-workloads.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from omega.errors import BadInput, did_you_mean
from omega.workload.arrivals import Workload
from omega.workload.traces.columns import find_table

Tables = Mapping[str, Path]
"""The files that were found, by the table that each holds."""


class Read(Protocol):
    """Reads a trace from its files."""

    def __call__(
        self, tables: Tables, options: Mapping[str, str], rng: np.random.Generator
    ) -> Workload:
        """Return the workload; raises BadInput for a file that is malformed."""
        ...


@dataclass(frozen=True, kw_only=True)
class TraceLoader:
    """Reads one published trace from a folder."""

    name: str
    tables: Mapping[str, tuple[str, ...]]
    """The possible file names of each table; each may also end in .gz."""
    read: Read
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The possible values of each option; the first is the default."""
    alternatives: frozenset[str] = frozenset()
    """Tables of which one is enough."""
    optional: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Tables that only one value of an option needs: by table, the option and the value."""

    def find(self, folder: Path) -> Tables:
        """Return the trace's files that this folder holds."""
        found = {table: find_table(folder, names) for table, names in self.tables.items()}
        return {table: path for table, path in found.items() if path is not None}

    def recognises(self, folder: Path) -> bool:
        """Say whether the folder holds all that this loader needs."""
        return not self._missing(self.find(folder))

    @property
    def wants(self) -> str:
        """The files that it looks for, as a phrase."""
        needed = [names[0] for table, names in self.tables.items() if table in self._needed]
        either = [names[0] for table, names in self.tables.items() if table in self.alternatives]
        return ", ".join([*needed, *([" or ".join(either)] if either else [])])

    def load(self, folder: Path, rng: np.random.Generator, /, **options: str) -> Workload:
        """Read the trace; an option that is not given has its default. Raises BadInput."""
        chosen = {name: values[0] for name, values in self.options.items()}
        for name, value in options.items():
            chosen[name] = self._checked(name, value)
        tables = self.find(folder)
        for table, (name, value) in self.optional.items():
            if chosen[name] == value and table not in tables:
                raise BadInput(
                    f"{name}={value} needs the table {self.tables[table][0]}, plain or .gz",
                    file=str(folder),
                    field=name,
                )
        if self._missing(tables):
            raise BadInput(
                f"this folder does not hold the trace {self.name} (looked for {self.wants},"
                " plain or .gz)",
                file=str(folder),
            )
        return self.read(tables, chosen, rng)

    @property
    def _needed(self) -> frozenset[str]:
        return frozenset(self.tables) - self.alternatives - self.optional.keys()

    def _missing(self, found: Tables) -> bool:
        none_of_either = bool(self.alternatives) and not (self.alternatives & found.keys())
        return none_of_either or not self._needed <= found.keys()

    def _checked(self, name: str, value: str) -> str:
        if name not in self.options:
            there_are = ", ".join(self.options) or "none"
            raise BadInput(
                f"the trace {self.name} has no such option{did_you_mean(name, self.options)}"
                f" (there are: {there_are})",
                field=name,
            )
        if value not in self.options[name]:
            raise BadInput(f"{value!r} is not one of {', '.join(self.options[name])}", field=name)
        return value
