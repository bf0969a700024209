"""The order of names, and cycles."""

from collections.abc import Mapping, Sequence

import pytest

from omega.errors import BadInput
from omega.model.acyclic import topological_order


def order(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return topological_order(
        after, field="after", itself="step {} needs itself", by_others="step {} needs itself"
    )


def test_each_name_comes_after_those_that_it_needs() -> None:
    assert ("a", "b", "c") == order({"c": ["b", "a"], "b": ["a"], "a": []})
    assert () == order({})


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"a": ["a"]}, "step 'a' needs itself"),
        ({"a": ["b"], "b": ["a"]}, "step 'a' needs itself, by way of 'b'"),
    ],
)
def test_a_cycle_is_refused_in_one_sentence(after: dict[str, list[str]], told: str) -> None:
    with pytest.raises(BadInput) as refused:
        order(after)

    assert ("after", told) == (refused.value.field, refused.value.sentence)


def test_long_names_are_shortened() -> None:
    with pytest.raises(BadInput) as refused:
        order({"x" * 10_000: ["y" * 10_000], "y" * 10_000: ["x" * 10_000]})

    assert len(str(refused.value)) < 1_000
