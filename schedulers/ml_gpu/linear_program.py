"""A linear program that is changed and solved again, by HiGHS.

Goal     Keep how a solver is spoken to in one place.
Promise  What is solved again starts from where it stood. What cannot be met is None; all else is
         optimal to 1e-9, or an error that says how HiGHS ended.
Source   HiGHS (Huangfu and Hall, 2018), through its own Python interface: scipy's adds about a
         millisecond to each solve, has no warm start, and needs all of a program anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from omega.errors import InvariantBroken
from omega.model.arrays import Index, Score

DECIDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
TOLERANCE = 1e-9
"""How far HiGHS may be off in a row or a reduced cost."""
PRIMAL = 4
"""HiGHS' number of the simplex method for which new columns leave a solution feasible."""
PRESOLVED_FROM = 20_000
"""Columns from which it pays to look for what can be left out first."""

Entries = tuple[Index, Index, Score]
"""Rows, columns and values of a matrix, position by position; each place is named once."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best values of all columns, and what each row's limit costs."""

    value: Score
    price: Score
    """How much more the objective could be if a row's limit moved by one (its dual)."""


class LinearProgram:
    """Maximise a worth over columns >= 0, with every row between its limits."""

    def __init__(
        self, parts: Sequence[Entries], *, columns: int, lower: Score, upper: Score
    ) -> None:
        starts, row, value = _by_column(parts, columns)
        linear_program = highspy.HighsLp()
        linear_program.num_col_, linear_program.num_row_ = columns, len(lower)
        linear_program.sense_ = highspy.ObjSense.kMaximize
        linear_program.col_cost_ = np.zeros(columns)
        linear_program.col_lower_, linear_program.col_upper_ = (
            np.zeros(columns),
            np.full(columns, np.inf),
        )
        linear_program.row_lower_, linear_program.row_upper_ = lower, upper
        matrix = linear_program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = starts, row, value
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "on" if columns >= PRESOLVED_FROM else "off"),
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
        ):
            self._highs.setOptionValue(option, setting)
        self._highs.passModel(linear_program)
        self._columns = np.arange(columns, dtype=np.int32)
        self.solves = 0
        """How often it was solved."""

    def add_columns(self, parts: Sequence[Entries], columns: int) -> None:
        """Add columns, numbered from 0 in these entries, after those that are there.

        What is solved again starts from where it stood, without them.
        """
        starts, row, value = _by_column(parts, columns)
        none, most = np.zeros(columns), np.full(columns, np.inf)
        self._highs.addCols(columns, none, none, most, len(row), starts[:-1], row, value)
        self._highs.setOptionValue("simplex_strategy", PRIMAL)
        self._columns = np.arange(len(self._columns) + columns, dtype=np.int32)

    def set_entries(self, rows: NDArray[np.int32], column: int, values: Score) -> None:
        """Change one column's entries in these rows."""
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            self._highs.changeCoeff(row, column, value)

    def set_lower(self, rows: NDArray[np.int32], lower: Score) -> None:
        """Change how much these rows must at least come to, with no upper limit."""
        self._highs.changeRowsBounds(len(rows), rows, lower, np.full(len(rows), np.inf))

    def set_upper(self, row: int, upper: float) -> None:
        """Change how much a row may at most come to, with no lower limit."""
        self._highs.changeRowBounds(row, -np.inf, upper)

    def set_range(self, column: int, lower: float, upper: float) -> None:
        """Change between which values a column may be."""
        self._highs.changeColBounds(column, lower, upper)

    def maximise(self, worth: Score) -> Optimum | None:
        """Return the best that the rows permit; None if they permit nothing."""
        unit = float(np.abs(worth).max(initial=0.0)) or 1.0  # the tolerance is on costs near one
        self._highs.changeColsCost(len(worth), self._columns, worth / unit)
        status = self._solved()
        if status not in DECIDED:  # the basis that it stood on may be what it cannot get away from
            self._highs.clearSolver()
            self._highs.setOptionValue("presolve", "on")
            status = self._solved()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            said = self._highs.modelStatusToString(status)
            raise InvariantBroken(f"HiGHS ended a policy's program with {said!r}")
        found = self._highs.getSolution()
        return Optimum(np.asarray(found.col_value), np.asarray(found.row_dual) * unit)

    def _solved(self) -> Any:  # noqa: ANN401 - of a library without types
        self._highs.run()
        self.solves += 1
        return self._highs.getModelStatus()


def _by_column(
    parts: Sequence[Entries], columns: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Score]:
    """Return where each column begins, and rows and values in the order of columns."""
    row, column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((row, column))
    starts = np.searchsorted(column[order], np.arange(columns + 1))
    return starts.astype(np.int32), row[order].astype(np.int32), value[order]
