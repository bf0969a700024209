"""Arrays: reductions, freezing and finding."""

import numpy as np
import pytest

from omega.model.arrays import (
    all_true,
    any_kind,
    ascends,
    counted,
    distinct,
    every_kind,
    freeze,
    integers,
    positions,
)


@pytest.mark.parametrize("values", [[3, 1], (3, 1), iter([3, 1]), np.array([3, 1], dtype=np.int32)])
def test_integers_come_from_whatever_holds_them(values: list[int]) -> None:
    array = integers(values)

    assert np.int64 == array.dtype
    assert [3, 1] == array.tolist()


def test_integers_are_none_unless_told() -> None:
    assert (0,) == integers().shape


def test_integers_that_are_integers_already_are_not_copied() -> None:
    array = np.arange(3, dtype=np.int64)

    assert array is integers(array)


def test_every_kind_and_any_kind_look_along_a_row() -> None:
    condition = np.array([[True, True], [True, False], [False, False]])

    assert [True, False, False] == every_kind(condition).tolist()
    assert [True, True, False] == any_kind(condition).tolist()


def test_a_frozen_array_cannot_be_written() -> None:
    one, two = np.zeros(2), np.zeros(2)
    freeze(one, two)

    for array in (one, two):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("ids", "wanted", "expected"),
    [
        ([2, 5, 9], [5, 2, 9, 5], [1, 0, 2, 1]),
        ([2, 5, 9], [1, 3, 10], [-1, -1, -1]),
        ([2, 5, 9], [], []),
        ([], [1, 2], [-1, -1]),
        ([7], [7, 8, 6], [0, -1, -1]),
    ],
)
def test_positions_are_found_or_minus_one(
    ids: list[int], wanted: list[int], expected: list[int]
) -> None:
    assert expected == positions(integers(ids), integers(wanted)).tolist()


@pytest.mark.parametrize("ids", [[], [3], [1, 2, 9]])
def test_each_is_greater_than_the_one_before(ids: list[int]) -> None:
    assert ascends(integers(ids))


@pytest.mark.parametrize("ids", [[1, 1], [2, 1], [1, 3, 2]])
def test_what_repeats_or_falls_does_not_ascend(ids: list[int]) -> None:
    assert not ascends(integers(ids))


@pytest.mark.parametrize("length", [0, 1, 2, 40])
def test_what_is_there_is_counted_as_numpy_does(length: int) -> None:
    values = np.random.default_rng(length).integers(-9, 9, size=length)
    before = values.tolist()

    found, times = counted(values)

    expected = np.unique(values, return_counts=True)
    assert [one.tolist() for one in expected] == [found.tolist(), times.tolist()]
    assert found.tolist() == distinct(values).tolist()
    assert before == values.tolist()


@pytest.mark.parametrize("ids", [[4, 5, 6], [4, 6, 9]], ids=["without gaps", "with gaps"])
def test_ids_are_found_where_they_are_and_others_nowhere(ids: list[int]) -> None:
    wanted = integers(range(-1, 12))

    found = positions(integers(ids), wanted).tolist()

    assert [ids.index(one) if one in ids else -1 for one in wanted.tolist()] == found


def test_what_holds_everywhere_holds() -> None:
    assert all_true(np.array([[True, True], [True, True]]))
    assert not all_true(np.array([True, False]))
    assert all_true(np.zeros(0, dtype=np.bool_))
