"""Paths and questions that the page refuses, whoever asks."""

from collections.abc import Iterator

import pytest

from omega.clock import RealClock
from omega.store.memory.store import MemoryStore
from tests.fixtures.pages import Served, served


@pytest.fixture(scope="module")
def page() -> Iterator[Served]:
    with served(MemoryStore(RealClock())) as page:
        yield page


@pytest.mark.parametrize(
    "path", ["/data/find?text=a%00", "/data/jobs?name=%00", "/data/jobs?kind=%00"]
)
def test_a_text_that_no_name_has_is_refused(page: Served, path: str) -> None:
    answer = page.ask(path)

    assert 400 == answer.status
    assert b"No name has the character U+0000.\n" == answer.body


@pytest.mark.parametrize("path", ["/queue/", "/job/1/", "/data/state/", "/login/"])
def test_nobody_is_led_to_another_address(page: Served, path: str) -> None:
    answer = page.ask(path)

    assert 404 == answer.status
    assert "location" not in answer.headers
