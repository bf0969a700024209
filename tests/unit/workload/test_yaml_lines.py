"""YAML as plain values that know their line."""

from collections.abc import Callable
from functools import partial

import pytest

from omega.errors import BadInput
from omega.workload import yaml_lines
from omega.workload.yaml_events import LOADERS, Loader
from omega.workload.yaml_lines import Document

Documents = Callable[[str, str], list[Document]]


@pytest.fixture(params=LOADERS)
def documents(request: pytest.FixtureRequest) -> Documents:
    """The function, with each of the loaders."""
    loader: Callable[[str], Loader] = request.param
    return partial(yaml_lines.documents, loader=loader)


def test_values_are_plain_and_numbers_decimal(documents: Documents) -> None:
    text = "a: [1, -2, 0.5, x, '3', true, no, ~, 010, 0x1F, 1:30, .inf, 2024-01-31]"

    (document,) = documents(text, "f")

    assert {
        "a": [1, -2, 0.5, "x", "3", True, False, None, 10, "0x1F", "1:30", ".inf", "2024-01-31"]
    } == document.value


def test_every_value_knows_its_line(documents: Documents) -> None:
    (document,) = documents("a:\n  - b: 1\n    c:\n      2\n", "f")

    assert 1 == document.line(("a",))
    assert 2 == document.line(("a", 0, "b"))
    assert 3 == document.line(("a", 0, "c"))


def test_an_error_names_the_nearest_line_that_is_known_and_the_field(documents: Documents) -> None:
    (document,) = documents("- a:\n    b: 1\n", "jobs.yaml")

    error = document.reject((0, "a", "b", "deeper"), "it is wrong", root=1)

    assert "jobs.yaml, line 2, field a.b.deeper: it is wrong" == str(error)


def test_several_documents_are_read_in_order(documents: Documents) -> None:
    first, second = documents("--- 1\n---\na: 2\n", "f")

    assert 1 == first.value
    assert {"a": 2} == second.value
    assert 3 == second.line(("a",))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 1, "not YAML"),
        ("a: 1\nb: {", 2, "not YAML"),
        ("a: 1\na: 2", 2, "field a: this key occurs twice"),
        ("a:\n  b: 1\n  b: 2", 3, "field a.b: this key occurs twice"),
        ("a: &x 1\nb: *x", 2, "aliases are not read"),
        ("&x [*x]", 1, "aliases are not read"),
        ("? [1]\n: 2", 1, "a key must be a word"),
        ("a: !!python/object:os.system x", 1, "the tag .* is not read"),
        ("a: 1\nb: !mine x", 2, "the tag '!mine' is not read"),
        ("a: !!set {b}", 1, "the tag .* is not read"),
        ("a: 1\nb: \x07", 2, "not YAML"),
        ("a: ! 1", 1, "the tag '!' is not read"),
        ("!mine a: 1", 1, "the tag '!mine' is not read"),
        (f"a: !{'x' * 9_999} b", 1, f"the tag '!{'x' * 59}...' is not read"),
        (f"{'[' * 17}{']' * 17}", 1, "nested too deeply"),
        ("[" * 5_000, 1, "nested too deeply"),
        (f"a: 1\n{'x' * 201}: 2", 2, f"field '{'x' * 60}...': a key is longer than 200"),
        ('"\\U99999999"', 1, "not YAML"),
        ('a: "\\ud800"', 1, "lone surrogate|invalid Unicode character"),
        ('"\\udfff": a', 1, "lone surrogate|invalid Unicode character"),
        ("%YAML 9.9\n--- a", 1, "begins with % is not read"),
    ],
)
def test_what_is_not_read_says_where_and_why(
    documents: Documents, text: str, line: int, said: str
) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        documents(text, "f")

    assert line == caught.value.line


def test_the_deepest_that_is_read(documents: Documents) -> None:
    (document,) = documents("\n" + "[" * 16 + "]" * 16, "f")

    assert 2 == document.line((0,) * 15)


def test_a_field_stands_on_the_line_of_its_key_and_an_item_on_its_own(documents: Documents) -> None:
    (document,) = documents("a:\n\n  b\nc:\n  -\n    d: 1\n  -\n", "f")

    assert [1, 4, 6, 6, 7] == [
        document.line(steps) for steps in (("a",), ("c",), ("c", 0), ("c", 0, "d"), ("c", 1))
    ]


@pytest.mark.parametrize(
    "steps", [("b",), ("a", "b"), ("a", 2), ("a", -1), (0,), ("a", 0, "b"), ("a", 1, 0)]
)
def test_what_is_not_there_stands_where_something_near_does(
    documents: Documents, steps: tuple[str | int, ...]
) -> None:
    (document,) = documents("a: [b, {c: d}]", "f")

    assert 1 == document.line(steps)
