"""The garbage collector is out of the way while much is read, and no longer."""

import gc

import pytest

from omega.cli.sim.garbage_collection import without_collection


@pytest.mark.parametrize("was_on", [True, False])
def test_it_is_afterwards_as_it_was_whatever_is_raised(
    was_on: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    inside = []

    def read() -> None:
        with without_collection():
            inside.append(gc.isenabled())
            raise ValueError("no list")

    if not was_on:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="no list"):
            read()
        assert was_on == gc.isenabled()
    finally:
        gc.enable()
    assert [False] == inside
