"""Whoever calls a function in Postgres directly gets an answer, or one clear sentence."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omega.store.postgres.functions import rendered
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.sessions import Sessions
from tests.postgres.hostile_calls import OUTER, PARAMETERS, Call, Function, calls
from tests.postgres.store_under_load import StoreUnderLoad, assert_sound, loaded_store

WRITTEN = {name for sql in rendered() for name in re.findall(r"CREATE FUNCTION omega\.(\w+)", sql)}


@pytest.fixture(scope="module")
def cell(module_database_url: str, sessions: Sessions) -> Iterator[StoreUnderLoad]:
    """One for all tests, since each takes back what it does."""
    with loaded_store(module_database_url, sessions) as store:
        yield store


def functions(store: StoreUnderLoad) -> dict[str, Function]:
    """What the catalogue lists, by name."""
    return {
        name: Function(name, dict(zip(names or (), types, strict=True)))
        for name, names, types in store.link.call(PARAMETERS)
    }


def test_no_function_is_missed(cell: StoreUnderLoad) -> None:
    assert WRITTEN == functions(cell).keys()
    assert WRITTEN > OUTER


@pytest.mark.parametrize("name", sorted(OUTER))
def test_a_hostile_call_is_answered_or_refused(
    cell: StoreUnderLoad, name: str, dose: Dose, tally: Tallier
) -> None:
    there = functions(cell)
    others = st.sampled_from(sorted(OUTER)).flatmap(lambda one: calls(there[one]))

    with tally("calls of functions", of="hostile input") as row:

        @settings(max_examples=dose(2, 40))
        @given(calls(there[name]), st.lists(others, max_size=2))
        def attack(first: Call, more: list[Call]) -> None:
            row.tried += 1 + len(more)
            with cell.rolled_back():
                for call in (first, *more):
                    refusal = cell.attempt(call.statement, call.literals)
                    assert refusal is None or 1 == len(refusal.splitlines())
                assert_sound(cell)
            row.survived += 1 + len(more)

        attack()
