"""YAML as plain values that know their line."""

import pytest

from omega.errors import BadInput
from omega.workload.yaml_lines import documents


def test_values_are_plain_and_numbers_decimal() -> None:
    text = "a: [1, -2, 0.5, x, '3', true, no, ~, 010, 0x1F, 1:30, .inf, 2024-01-31]"

    (document,) = documents(text, "f")

    assert {
        "a": [1, -2, 0.5, "x", "3", True, False, None, 10, "0x1F", "1:30", ".inf", "2024-01-31"]
    } == document.value


def test_every_value_knows_its_line() -> None:
    (document,) = documents("a:\n  - b: 1\n    c:\n      2\n", "f")

    assert 1 == document.lines[("a",)]
    assert 2 == document.lines[("a", 0, "b")]
    assert 3 == document.lines[("a", 0, "c")]


def test_an_error_names_the_nearest_line_that_is_known_and_the_field() -> None:
    (document,) = documents("- a:\n    b: 1\n", "jobs.yaml")

    error = document.reject((0, "a", "b", "deeper"), "it is wrong", root=1)

    assert "jobs.yaml, line 2, field a.b.deeper: it is wrong" == str(error)


def test_several_documents_are_read_in_order() -> None:
    first, second = documents("--- 1\n---\na: 2\n", "f")

    assert 1 == first.value
    assert {"a": 2} == second.value
    assert 3 == second.lines[("a",)]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 1, "not YAML"),
        ("a: 1\nb: {", 2, "not YAML"),
        ("a: 1\na: 2", 2, "field a: this is said twice"),
        ("a:\n  b: 1\n  b: 2", 3, "field a.b: this is said twice"),
        ("a: &x 1\nb: *x", 1, "aliases are not read"),
        ("&x [*x]", 1, "aliases are not read"),
        ("? [1]\n: 2", 1, "a key must be a word"),
        ("a: !!python/object:os.system x", 1, "the tag .* is not read"),
        ("a: 1\nb: !mine x", 2, "the tag '!mine' is not read"),
        ("a: !!set {b}", 1, "the tag .* is not read"),
        ("a: 1\nb: \x07", 2, "not YAML"),
        ("[" * 5_000, None, "nested too deeply"),
        ('"\\U99999999"', None, "not YAML"),
        ('a: "\\ud800"', 1, "half a character"),
        ('"\\udfff": a', 1, "half a character"),
        ("%YAML 9.9\n--- a", 1, "not YAML"),
    ],
)
def test_what_is_not_read_says_where_and_why(text: str, line: int | None, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        documents(text, "f")

    assert line == caught.value.line
