"""Columns of a CSV file, and errors that point at the cell."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.workload.traces.columns import Table, find_table, read_table


def table_of(tmp_path: Path, text: str, *columns: str) -> Table:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return read_table(path, columns)


def test_columns_are_found_by_name_and_others_ignored(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b,c\n1,x,0.5\n2,y,1e-3\n", "c", "a")

    assert [1, 2] == table.integers("a").tolist()
    assert [0.5, 0.001] == table.numbers("c").tolist()
    assert {"a", "c"} == set(table.columns)


def test_a_gzipped_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a\n7\n"))

    assert [7] == read_table(path, ["a"]).integers("a").tolist()


def test_a_file_with_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b\n", "a", "b")

    assert 0 == len(table)
    assert 0 == len(table.integers("a"))
    assert np.dtype(np.int64) == table.integers("a").dtype


def test_a_missing_cell_stands_for_what_is_said(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b\n,\n5,2\n", "a", "b")

    assert [-1, 5] == table.integers("a", empty=-1).tolist()
    assert np.isnan(table.numbers("b", empty=np.nan)[0])


@pytest.mark.parametrize("cell", ["x", "1.5", "-1", "99", "1" * 30, "1" * 5000, "", "nan"])
def test_what_is_no_whole_number_within_the_bounds_is_named(tmp_path: Path, cell: str) -> None:
    table = table_of(tmp_path, f"a,b\n1,1\n{cell},1\n", "a")

    with pytest.raises(BadInput) as caught:
        table.integers("a", highest=10)

    assert (3, "a") == (caught.value.line, caught.value.field)
    assert "a whole number from 0 to 10" in caught.value.sentence


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "1e999", "-0.1", "", "one"])
def test_what_is_no_finite_number_within_the_bounds_is_named(tmp_path: Path, cell: str) -> None:
    table = table_of(tmp_path, f"a,b\n{cell},1\n", "a")

    with pytest.raises(BadInput, match="line 2, field a"):
        table.numbers("a")


def test_a_row_of_another_length_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 3: the row has 1 fields, the header 2"):
        table_of(tmp_path, "a,b\n1,2\n3\n", "a")


def test_the_line_is_right_after_blank_lines_and_quoted_line_ends(tmp_path: Path) -> None:
    table = table_of(tmp_path, 'a,b\n\n"1","two\nlines"\nx,y\n', "a")

    with pytest.raises(BadInput) as caught:
        table.integers("a")

    assert 5 == caught.value.line


def test_a_missing_column_is_named_with_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'cpu_mili'"):
        table_of(tmp_path, "cpu_mili\n1\n", "cpu_milli")


def test_a_word_that_is_not_allowed_is_named(tmp_path: Path) -> None:
    table = table_of(tmp_path, "e\nadd\nmove\n", "e")

    with pytest.raises(BadInput, match="line 3, field e: 'move' is not one of add, remove"):
        table.words("e", allowed={"add", "remove"})


@pytest.mark.parametrize("name", ["", "x" * 201, "tab\there", "a\u3164b"])
def test_a_name_is_short_and_printable(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path, f"n,m\n{name},1\n", "n")

    with pytest.raises(BadInput, match="line 2, field n"):
        table.words("n")


def test_a_name_that_comes_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 4, field n: 'x' is there already"):
        table_of(tmp_path, "n\nx\ny\nx\n", "n").distinct("n")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"a\n\xff\xfe\n", "not UTF-8"),
        ("t.csv.gz", b"a\n1\n", "not a whole gzip file"),
        ("t.csv.gz", gzip.compress(b"a\n" + b"1\n" * 999, mtime=0)[:-9], "not a whole gzip file"),
        ("t.csv", b'a\n"open\n', "not CSV"),
        ("t.csv", b'a\n"x"y\n', "not CSV"),
        ("t.csv", b"", "the column is missing"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(BadInput, match=said) as caught:
        read_table(path, ["a"])

    assert str(path) == caught.value.file


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_table(tmp_path / "none.csv", ["a"])


def test_a_table_is_found_under_any_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "old.csv.gz").touch()

    assert tmp_path / "old.csv.gz" == find_table(tmp_path, ["new.csv", "old.csv"])
    assert find_table(tmp_path, ["other.csv"]) is None
