"""A fake container engine, and a driver of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.nodes.agent.container_driver import ContainerDriver
from tests.agent.waiting import until
from tests.unit.nodes.agent.container_steps import opened, starters
from tests.unit.nodes.agent.fake_engine import FakeEngine, fake_engine


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with fake_engine() as fake:
        yield fake


@pytest.fixture
def said() -> list[str]:
    """What the driver warned of."""
    return []


@pytest.fixture
def driver(engine: FakeEngine, tmp_path: Path, said: list[str]) -> Iterator[ContainerDriver]:
    driver = opened(engine, tmp_path, said)
    yield driver
    engine.over.set()
    driver.close()
    engine.pull_goes_on.set()
    until(lambda: not starters())
