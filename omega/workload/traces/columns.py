"""Tables of a trace: CSV, plain or gzipped, read into columns.

Goal     Read a few hundred thousand rows in a second, and point at the cell that is malformed.
Promise  A row is as long as the header, a number is finite and within its bounds, a word is
         printable and short; else BadInput names file, line and column. Nothing else is raised.
Source   RFC 4180, as Python's csv module reads it, with a header line.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np

from omega.errors import BadInput, did_you_mean, shortened
from omega.limits import LIMITS
from omega.model.arrays import Ids, Score
from omega.model.names import is_printable_name

_T = TypeVar("_T", int, float)

_PACKED = ".gz"


@dataclass(frozen=True, eq=False)
class Table:
    """The wanted columns of a file, as text."""

    file: str
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    """The line of the file on which each row ends."""

    def __len__(self) -> int:
        return len(self.lines)

    def integers(
        self,
        column: str,
        *,
        lowest: int = 0,
        highest: int = LIMITS.amount_max,
        empty: int | None = None,
    ) -> Ids:
        """Return a column of whole numbers; `empty`, if given, replaces missing ones."""
        wanted = f"a whole number from {lowest} to {highest}"
        return np.array(self._read(column, int, lowest, highest, empty, wanted), dtype=np.int64)

    def numbers(
        self,
        column: str,
        *,
        lowest: float = 0.0,
        highest: float = 1e12,
        empty: float | None = None,
    ) -> Score:
        """Return a column of finite numbers; `empty`, if given, replaces missing ones."""
        wanted = f"a number from {lowest:g} to {highest:g}"
        return np.array(self._read(column, float, lowest, highest, empty, wanted), dtype=np.float64)

    def words(
        self, column: str, *, allowed: Collection[str] | None = None, may_miss: bool = False
    ) -> Sequence[str]:
        """Return a column of names, or of words of which only some are allowed."""
        words = self.columns[column]
        if allowed is not None:
            wrong = (row for row, word in enumerate(words) if word not in allowed)
            wanted = f"one of {', '.join(sorted(allowed))}"
        else:
            wrong = (
                row
                for row, word in enumerate(words)
                if not (word or may_miss)
                or len(word) > LIMITS.name_length_max
                or not is_printable_name(word)
            )
            wanted = f"a name of up to {LIMITS.name_length_max} printable characters"
        if (row := next(wrong, None)) is not None:
            raise self._not(row, column, wanted)
        return words

    def distinct(self, column: str) -> Sequence[str]:
        """Return a column of names of which none comes twice."""
        names = self.words(column)
        if len(set(names)) < len(names):
            met: set[str] = set()
            for row, name in enumerate(names):
                if name in met:
                    raise self.reject(row, column, f"{_shown(name)} is there already")
                met.add(name)
        return names

    def reject(self, row: int, column: str, sentence: str) -> BadInput:
        """Return the error that says what is wrong with one cell."""
        return BadInput(sentence, file=self.file, line=self.lines[row], field=column)

    def _read(
        self,
        column: str,
        read: Callable[[str], _T],
        lowest: _T,
        highest: _T,
        empty: _T | None,
        wanted: str,
    ) -> list[_T]:
        values: list[_T] = []
        for row, text in enumerate(self.columns[column]):
            if empty is not None and not text:
                values.append(empty)
                continue
            try:
                value = read(text)
            except ValueError:
                raise self._not(row, column, wanted) from None
            if not lowest <= value <= highest:
                raise self._not(row, column, wanted)
            values.append(value)
        return values

    def _not(self, row: int, column: str, wanted: str) -> BadInput:
        return self.reject(row, column, f"{_shown(self.columns[column][row])} is not {wanted}")


def find_table(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the first of these files that the folder holds, plain or gzipped."""
    for name in names:
        for path in (folder / name, folder / (name + _PACKED)):
            if path.is_file():
                return path
    return None


def read_table(path: Path, columns: Sequence[str]) -> Table:
    """Read the columns of a CSV file whose first line names them; further columns are ignored."""
    rows: list[list[str]] = []
    lines: list[int] = []
    with _reading(path) as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            for row in reader:
                if row:  # blank lines are skipped
                    rows.append(row)
                    lines.append(reader.line_num)
        except csv.Error as error:
            raise BadInput(f"not CSV: {error}", file=str(path), line=reader.line_num) from None
    at = [_position(path, header, column) for column in columns]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise BadInput(
                f"the row has {len(row)} fields, the header {len(header)}",
                file=str(path),
                line=line,
            )
    across = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return Table(str(path), {name: across[i] for name, i in zip(columns, at, strict=True)}, lines)


@contextmanager
def _reading(path: Path) -> Iterator[TextIO]:
    """Open a file as text; raise BadInput for anything that prevents reading it."""
    opened = gzip.open if path.suffix == _PACKED else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 text: {error.reason}", file=str(path)) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"not a whole gzip file: {error}", file=str(path)) from None
    except OSError as error:
        said = error.strerror or str(error)
        raise BadInput(f"it cannot be read: {said}", file=str(path)) from None


def _position(path: Path, header: list[str], column: str) -> int:
    if column not in header:
        there_are = ", ".join(_shown(name) for name in header) or "none"
        raise BadInput(
            f"the column is missing{did_you_mean(column, header)} (there are: {there_are})",
            file=str(path),
            line=1,
            field=column,
        )
    return header.index(column)


def _shown(text: str) -> str:
    """Quote a text, shortened to fit a sentence."""
    return repr(shortened(text))
