"""How fast each kind of training job runs on each GPU type, alone and beside another.

Goal     One table for nodes that make steps and for policies that plan them: rows are (model, gang
         size).
Promise  What the file does not have is a rate of 0: cannot run there, does not fit beside. A file
         that is malformed is BadInput with the place in it.
Source   Gavel (OSDI 2020), section 6; the layout is that of its published tables.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omega.errors import BadInput, shortened
from omega.model.arrays import Counts, Index, freeze
from omega.workload.text_file import read_text

ALONE: Final = "null"
"""Key of a row's rate without anybody beside it."""
SPREAD: Final = "_unconsolidated"
"""Ending of a type's name for gangs that are spread over machines."""

Rates = NDArray[np.float64]
"""Steps/s: (rows, types)."""
Kind = tuple[str, int]
"""Model, with its batch size, and GPUs."""
GPUS_MAX: Final = 1_000_000
"""Of one type, or of a gang."""
RATE_MIN: Final = 1e-9
"""Least rate that is not 0, in steps/s: a step in thirty years."""
RATE_MAX: Final = 1e9


@dataclass(frozen=True, eq=False)
class PairRates:
    """How fast two gangs of equal size run when they share the same GPUs.

    Entry `[a, b, type]` is the rate of row `a` beside row `b`; zero in both directions where the
    two do not fit together.
    """

    of: NDArray[np.float64]
    """(rows, rows, types) steps/s."""

    def __post_init__(self) -> None:
        assert self.of.ndim == 3 and self.of.shape[0] == self.of.shape[1]  # noqa: PT018, PLR2004
        freeze(self.of)


@dataclass(frozen=True, eq=False)
class Throughputs:
    """Rates by kind of job and GPU type."""

    types: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rates: Rates
    """Steps/s of the whole gang on GPUs of as few machines as it takes: (kinds, types)."""
    spread: Rates
    """The same for a gang that is spread over machines; equal where it is not known."""
    pairs: PairRates
    """Rates beside another gang of the same size."""

    @cached_property
    def gangs(self) -> Counts:
        """GPUs of each kind."""
        return np.array([gang for _, gang in self.kinds], np.int64)

    @cached_property
    def _row(self) -> Mapping[Kind, int]:
        return {kind: row for row, kind in enumerate(self.kinds)}

    def rows(self, kinds: Sequence[Kind]) -> Index:
        """Return the rows of these kinds; raise BadInput for one that is not in the table."""
        try:
            return np.array([self._row[kind] for kind in kinds], np.intp)
        except KeyError as error:
            model, gang = error.args[0]
            raise BadInput(f"no rates are known of {model} on {gang} GPUs") from None

    def of(self, types: Sequence[str], kinds: Sequence[Kind]) -> "Throughputs":
        """Return the table of these types and kinds, in this order; 0 for what is not in it."""
        row = np.array([self._row.get(kind, -1) for kind in kinds], np.intp)
        column = np.array([self.types.index(t) if t in self.types else -1 for t in types], np.intp)
        known = (row >= 0)[:, np.newaxis] & (column >= 0)
        at = np.ix_(row, column)
        both = known[:, np.newaxis] & known[np.newaxis]
        beside = np.where(both, self.pairs.of[np.ix_(row, row, column)], 0.0)
        return Throughputs(
            types=tuple(types),
            kinds=tuple(kinds),
            rates=np.where(known, self.rates[at], 0.0),
            spread=np.where(known, self.spread[at], 0.0),
            pairs=PairRates(beside),
        )


def read_throughputs(path: Path) -> Throughputs:
    """Read a table in the layout of Gavel's: type, kind, partner (or null), rate(s)."""
    document = _document(path)
    types = tuple(sorted(name for name in document if not name.endswith(SPREAD)))
    names = list(dict.fromkeys(name for type_ in types for name in document[type_]))
    kinds = tuple(_kind(name, path) for name in names)
    if len(set(kinds)) < len(kinds):
        twice = next(name for row, name in enumerate(names) if kinds[row] in kinds[:row])
        raise BadInput("this kind of job is there twice", file=str(path), field=shortened(twice))
    rates, spread = np.zeros((2, len(kinds), len(types)))
    pairs = np.zeros((len(kinds), len(kinds), len(types)))
    at = {name: row for row, name in enumerate(names)}
    for column, type_ in enumerate(types):
        apart = document.get(type_ + SPREAD, {})
        for name, entry in document[type_].items():
            for partner, value in entry.items():
                where = f"{type_}.{name}.{partner}"
                if partner == ALONE:
                    rates[at[name], column] = _rate(value, path, where)
                elif partner in at:
                    mine = value[0] if isinstance(value, list) and value else None
                    pairs[at[name], at[partner], column] = _rate(mine, path, where)
            alone = apart.get(name, {}).get(ALONE, rates[at[name], column])
            spread[at[name], column] = _rate(alone, path, f"{type_}{SPREAD}.{name}")
    both = (pairs > 0) & (pairs.transpose(1, 0, 2) > 0)
    return Throughputs(types, kinds, rates, spread, PairRates(np.where(both, pairs, 0.0)))


def _document(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the file's mapping of mappings of mappings."""
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"it is no JSON: {error}", file=str(path)) from None
    if not (isinstance(document, dict) and all(isinstance(t, dict) for t in document.values())):
        raise BadInput("it is no table of rates by type and kind of job", file=str(path))
    for type_, entries in document.items():
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                raise BadInput("it is not a mapping", file=str(path), field=f"{type_}.{name}")
    return document


def _kind(name: str, path: Path) -> Kind:
    try:
        model, gang = ast.literal_eval(name)
        if isinstance(model, str) and type(gang) is int and 1 <= gang <= GPUS_MAX:
            return model, gang
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass  # the last two: nested deeper than the parser goes
    raise BadInput(
        "a kind of job is written as ('model', GPUs)", file=str(path), field=shortened(name)
    )


def _rate(value: Any, path: Path, field: str) -> float:  # noqa: ANN401 - as the file has it
    try:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return a_rate(value if is_number else np.nan)
    except ValueError as error:
        said = shortened(repr(value))
        raise BadInput(f"{said} is {error}", file=str(path), field=field) from None


def a_rate(value: float) -> float:
    """Return the value if it can be a rate in steps/s; raise ValueError if not."""
    if value == 0 or RATE_MIN <= value <= RATE_MAX:
        return float(value)
    raise ValueError(f"not a rate in steps/s: 0, or {RATE_MIN:g} to {RATE_MAX:g}")
