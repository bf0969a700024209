"""What becomes of texts before they are printed."""

import pytest

from omega.reports.printable import DETAIL_MAX, NAME_MAX, escaped, is_printable, printable, short
from tests.unit.cli.hostile_texts import HOSTILE, LONG, LONG_AND_UNPRINTABLE, raw_in


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("train 7", "train 7"),
        ("naïve · 训练 ✓", "naïve · 训练 ✓"),
        ("a\x1b[2J", r"a\x1b[2J"),
        ("\x9b", r"\x9b"),
        ("\x00\x7f", r"\x00\x7f"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\u202eevil", r"\u202eevil"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("a\u3164\ufe0f", r"a\u3164\ufe0f"),
        ("\ud800", r"\ud800"),
        ("\U000e0100", r"\U000e0100"),
        ("[red]", "[red]"),
    ],
)
def test_what_cannot_be_printed_is_written_as_python_does(text: str, written: str) -> None:
    assert written == escaped(text)
    assert is_printable(written)


def test_a_layout_may_end_lines() -> None:
    assert "a\nb\\r" == escaped("a\nb\r", keep="\n")


@pytest.mark.parametrize("text", [*HOSTILE.values(), LONG, LONG_AND_UNPRINTABLE])
def test_whatever_it_is_it_ends_up_printable_and_short(text: str) -> None:
    said = printable(text)

    assert [] == raw_in(said)
    assert "\n" not in said
    assert len(said) <= DETAIL_MAX
    assert len(short(text)) <= NAME_MAX


@pytest.mark.parametrize(
    ("text", "written"),
    [("abcd", "abcd"), ("abcde", "abc…"), ("abc\n", "abc…"), ("ab\n", r"ab\n"), ("\x1b", r"\x1b")],
)
def test_the_end_is_an_ellipsis_where_it_is_cut(text: str, written: str) -> None:
    assert written == printable(text, 4)


def test_names_are_shown_as_long_as_they_may_be() -> None:
    assert "x" * NAME_MAX == short("x" * NAME_MAX)
    assert "x" * (NAME_MAX - 1) + "…" == short("x" * (NAME_MAX + 1))
