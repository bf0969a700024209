"""How a mutant is planted."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.mutants.small_project import mutant

FILE = "omega/sums.py"


def planted(root: Path, text: str, before: str, after: str) -> str:
    """Plant a mutant in a file of this text; return the text with the fault."""
    (root / FILE).write_text(text)
    mutant(after, before=before).plant(root)
    return (root / FILE).read_text()


def test_only_what_is_marked_is_replaced(original: Path) -> None:
    text = "total = a + b  # of both\n"

    assert "total = a - b  # of both\n" == planted(original, text, "total = a «+» b", "-")


def test_the_replacement_has_the_names_of_the_file(original: Path) -> None:
    text = "whole = part + rest\n"

    assert "whole = rest - part\n" == planted(original, text, "total = «a + b»", "b - a")


def test_lines_are_indented_like_the_place(original: Path) -> None:
    text = "def add(a, b):\n    c = a + b\n    return c\n"

    assert "def add(a, b):\n    c = a\n    c += a\n    return c\n" == planted(
        original, text, "c = a + b", "c = a\nc += a"
    )


def test_names_are_borrowed_from_elsewhere(original: Path) -> None:
    (original / FILE).write_text("rest = part * 2\nwhole = part + other\n")
    fault = replace(mutant("double", before="total = a + «b»"), borrows=(FILE, "double = a * 2"))

    assert fault.planted(original).text.endswith("whole = part + rest\n")


def test_an_ambiguous_place_is_an_error_that_names_the_candidates(original: Path) -> None:
    (original / FILE).write_text("x = y + z\n\nu = v + w\n")

    with pytest.raises(ValueError, match=r"sums\.wrong: omega/sums\.py holds it in lines 1, 3: 'a"):
        mutant("a - b").plant(original)


def test_a_file_that_moved_is_found_by_its_name(original: Path) -> None:
    (original / "omega/cell").mkdir()
    (original / FILE).rename(original / "omega/cell/sums.py")
    mutant("a - b").plant(original)

    assert "return a - b" in (original / "omega/cell/sums.py").read_text()


def test_two_files_of_one_name_are_an_error(original: Path) -> None:
    (original / FILE).unlink()
    for folder in ("omega/cell", "schedulers"):
        (original / folder).mkdir()
        (original / folder / "sums.py").touch()

    with pytest.raises(ValueError, match=r"of its name: omega/cell/sums\.py, schedulers/sums\.py"):
        mutant("a - b").plant(original)


def test_compiled_files_of_the_text_before_are_removed(original: Path) -> None:
    cache = original / "omega/__pycache__"
    cache.mkdir()
    (cache / "sums.cpython-311.pyc").touch()
    mutant("a - b").plant(original)

    assert [] == list(cache.iterdir())
