"""Machines as rows, and their attributes as codes."""

from dataclasses import replace

import numpy as np
import pytest

from omega.model.arrays import integers
from omega.model.machines import Catalogue, MachineRows, Machines, Snapshot
from omega.model.resources import Kind
from omega.testing.builders import a_cell, a_snapshot, some_rows


def test_rows_know_what_is_free() -> None:
    rows = some_rows(a_cell(2, cpu_milli=4_000), used={2: {"cpu_milli": 1_500}})

    assert [4_000, 2_500] == rows.free[:, Kind.CPU_MILLI].tolist()


def test_rows_are_found_by_id() -> None:
    rows = some_rows(a_cell(3))

    assert [2, -1, 0] == rows.where(integers([3, 4, 1])).tolist()


def test_rows_taken_are_whole_rows() -> None:
    rows = some_rows(a_cell(3), used={3: {"cpu_milli": 7}}, sequence={3: 5}, revision={3: 9})

    taken = rows.take(np.array([2]))

    assert ([3], [5], [9]) == (
        taken.id.tolist(),
        taken.sequence.tolist(),
        taken.revision.tolist(),
    )
    assert 7 == taken.used[0, Kind.CPU_MILLI]


def test_rows_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        some_rows().used[0, 0] = 1


@pytest.mark.parametrize("ids", [[2, 1, 3], [1, 1, 2]])
def test_rows_that_are_not_ascending_and_distinct_are_refused(ids: list[int]) -> None:
    with pytest.raises(AssertionError, match="ascending"):
        replace(some_rows(), id=integers(ids))


def test_after_a_commit_rows_granted_on_rise_in_sequence_and_those_that_lost_do_not() -> None:
    rows = some_rows(a_cell(3), sequence={1: 4}, revision={1: 6})
    used = rows.used.copy()
    used[0, Kind.CPU_MILLI] = 10

    granted, lost = np.array([True, False, False]), np.array([True, True, False])
    after = rows.after_commit(granted, lost, used)

    assert [5, 0, 0] == after.sequence.tolist()
    assert [7, 1, 0] == after.revision.tolist()
    assert 10 == after.used[0, Kind.CPU_MILLI]
    assert [4, 0, 0] == rows.sequence.tolist()  # the old rows stay as they were


def test_no_rows_are_rows() -> None:
    assert 0 == len(MachineRows.none())


@pytest.mark.parametrize(
    ("names", "attributes"),
    [(("a",), {}), (("a", "b"), {"zone": ["east"]})],
)
def test_machines_have_as_many_names_and_values_as_rows(
    names: tuple[str, ...], attributes: dict[str, list[str]]
) -> None:
    with pytest.raises(AssertionError):
        Machines(names, a_cell(2).capacity, attributes)


class TestCatalogue:
    def test_values_become_codes_and_are_read_back(self) -> None:
        zones = ["east", None, "west", "east"]
        catalogue, codes = Catalogue().encode(a_cell(4, attributes={"zone": zones}))

        column = catalogue.column("zone")
        assert 0 == column
        assert [1, 0, 2, 1] == codes[:, column].tolist()
        assert zones == [catalogue.value(column, int(code)) for code in codes[:, column]]

    def test_later_machines_extend_it_and_keep_old_codes(self) -> None:
        first, _ = Catalogue().encode(a_cell(1, attributes={"zone": ["east"]}))
        later = a_cell(2, attributes={"zone": ["west", "east"], "rack": [None, "r1"]})

        second, codes = first.encode(later)

        assert ("zone", "rack") == second.names
        assert [[2, 0], [1, 1]] == codes.tolist()
        assert ("zone",) == first.names  # frozen

    def test_machines_without_an_attribute_have_code_0(self) -> None:
        first, _ = Catalogue().encode(a_cell(1, attributes={"zone": ["east"]}))

        _, codes = first.encode(a_cell(2))

        assert [[0], [0]] == codes.tolist()

    def test_new_attributes_are_named_in_alphabetical_order(self) -> None:
        cell = a_cell(1, attributes={"zone": ["east"], "arch": ["arm"]})

        catalogue, _ = Catalogue().encode(cell)

        assert ("arch", "zone") == catalogue.names

    def test_codes_of_values_leave_out_what_no_machine_has(self) -> None:
        catalogue, _ = Catalogue().encode(a_cell(2, attributes={"zone": ["east", "west"]}))

        assert [2] == catalogue.codes(0, ["west", "north"]).tolist()
        assert catalogue.column("rack") is None


def test_a_snapshot_has_a_name_and_codes_for_each_row() -> None:
    snapshot = a_snapshot(a_cell(2, attributes={"zone": ["east", "west"]}))

    assert not snapshot.codes.flags.writeable
    with pytest.raises(AssertionError):
        replace(snapshot, names=("one",))
    with pytest.raises(AssertionError):
        Snapshot(snapshot.rows, snapshot.names, Catalogue(), snapshot.codes.copy(), 0, 0)
