"""A file of a saved cell: any cell comes back, and any other file is refused in a sentence."""

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from omega.store.saved.cell import SavedCell
from omega.store.saved.reading import read_cell
from omega.store.saved.writing import lines_of, write_cell
from tests.fixtures.doses import examples
from tests.fixtures.saved_cells import saved_cells
from tests.property.refusals import returns_or_bad_input

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def in_a_file(content: bytes) -> SavedCell | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell"
        path.write_bytes(content)
        return returns_or_bad_input(lambda: read_cell(path))


@examples(1_000, one_in=60)
@given(saved_cells())
def test_any_cell_comes_back(cell: SavedCell) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell"
        write_cell(cell, path)
        again = read_cell(path)

    assert list(lines_of(cell)) == list(lines_of(again))


@examples(2_000, one_in=80)
@given(saved_cells(), st.data())
def test_a_file_in_which_a_value_is_another_is_a_cell_or_refused(
    cell: SavedCell, data: st.DataObject
) -> None:
    lines = list(lines_of(cell))
    number = data.draw(st.integers(0, len(lines) - 1))
    line = json.loads(lines[number])
    line[data.draw(st.sampled_from(sorted(line)))] = data.draw(VALUES)
    lines[number] = json.dumps(line).encode() + b"\n"

    read = in_a_file(b"".join(lines))
    assert read is None or isinstance(read, SavedCell)


@examples(2_000, one_in=80)
@given(saved_cells(), st.data())
def test_a_file_with_other_bytes_is_a_cell_or_refused(cell: SavedCell, data: st.DataObject) -> None:
    content = b"".join(lines_of(cell))
    at = data.draw(st.integers(0, len(content)))
    upto = data.draw(st.integers(at, min(len(content), at + 9)))

    read = in_a_file(content[:at] + data.draw(st.binary(max_size=9)) + content[upto:])
    assert read is None or isinstance(read, SavedCell)
