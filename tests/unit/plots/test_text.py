"""The words around a plot."""

import re

import pytest

from omega.plots.text import claim_lines, headline_and_rest


def test_a_short_finding_is_the_headline() -> None:
    assert (["all is well"], "") == headline_and_rest("all is well", 40)


def test_a_long_finding_has_a_headline_of_whole_clauses_and_a_rest() -> None:
    text = "one clause of five words; another clause, with a comma; and a third; and a fourth one"
    lines, rest = headline_and_rest(text, 30)

    assert ["one clause of five words;", "another clause, with a comma"] == lines
    assert "and a third; and a fourth one" == rest


@pytest.mark.parametrize("text", ["word " * 40, "a, b, c, d and e " * 9, "x" * 500, "1; " * 200])
def test_a_headline_never_has_a_third_line_and_nothing_is_left_out(text: str) -> None:
    lines, rest = headline_and_rest(text.strip(), 30)
    told = "".join([*lines, rest])

    assert len(lines) <= 2
    assert rest
    assert re.findall(r"\w", text) == re.findall(r"\w", told)


def test_each_claim_says_whether_it_holds() -> None:
    claims = [
        {"claim": "sooner", "measured": "2 times", "holds": True},
        {"claim": "never later", "measured": "once in a hundred runs", "holds": False},
    ]

    assert [
        "\N{CHECK MARK} sooner: 2 times",
        "\N{BALLOT X} never later: once in a",
        "    hundred runs",
    ] == claim_lines(claims, 26)


def test_what_was_measured_is_left_to_the_page_where_it_is_long() -> None:
    claim = {"claim": "sooner", "measured": "1 time, " * 20, "holds": True}

    assert ["\N{CHECK MARK} sooner"] == claim_lines([claim], 80)
