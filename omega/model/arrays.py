"""Names for the shapes of arrays, and a few reductions that many modules need.

Goal     Let a signature show what an array holds.
Promise  Amounts are integers in the unit that the column's name carries. No argument is changed,
         except by `freeze`.
Source   docs/decisions/0001-arrays-and-integers.md.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Amounts = NDArray[np.int64]
"""Resource amounts: (rows, kinds), or (kinds,) for one demand."""

Ids = NDArray[np.int64]
Sequences = NDArray[np.int64]
Counts = NDArray[np.int64]
Index = NDArray[np.intp]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Score = NDArray[np.float64]
Verdicts = NDArray[np.int8]
States = NDArray[np.int8]


def integers(values: ArrayLike | Iterable[int] = ()) -> NDArray[np.int64]:
    """Return the values as one int64 array, without a copy if they already are one."""
    if isinstance(values, np.ndarray):
        return values.astype(np.int64, copy=False)
    return np.asarray(values if isinstance(values, list | tuple) else list(values), dtype=np.int64)  # type: ignore[arg-type]


def every_kind(condition: Mask) -> Mask:
    """Return for each row whether the condition holds in every resource kind."""
    return np.asarray(condition.all(axis=-1))


def any_kind(condition: Mask) -> Mask:
    """Return for each row whether the condition holds in at least one resource kind."""
    return np.asarray(condition.any(axis=-1))


def all_true(condition: Mask) -> bool:
    """Return whether all elements are true; several times as fast as `all` on short arrays."""
    return int(np.count_nonzero(condition)) == condition.size


def freeze(*arrays: NDArray[np.generic]) -> None:
    """Make the arrays read-only, in place."""
    for array in arrays:
        array.setflags(write=False)


def ascends(ids: Ids | Index) -> bool:
    """Return whether the values strictly increase; several times as fast as with `np.diff`."""
    return len(ids) < 2 or all_true(ids[1:] > ids[:-1])  # noqa: PLR2004 - two can be compared


def distinct(values: Ids | Index) -> Index:
    """Return each value once, ascending; twice as fast as `np.unique` on short arrays."""
    return counted(values)[0]


def counted(values: Ids | Index) -> tuple[Index, Counts]:
    """Return each value once, ascending, and its count, as `np.unique` with `return_counts`."""
    ordered = values.copy()
    ordered.sort()
    is_first = np.empty(len(ordered) + 1, dtype=np.bool_)
    is_first[0] = is_first[-1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:-1])
    edges = is_first.nonzero()[0]
    return ordered[edges[:-1]], edges[1:] - edges[:-1]


def positions(ids: Ids | Index, wanted: Ids | Index) -> Index:
    """Return the position of each wanted id in the distinct, ascending `ids`; -1 if not there."""
    if len(ids) == 0:
        return np.full(len(wanted), -1, dtype=np.intp)
    if ids[-1] - ids[0] == len(ids) - 1:  # consecutive, as the ids of machines mostly are
        at: Index = wanted - ids[0]
        at[(at < 0) | (at >= len(ids))] = -1
        return at
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
