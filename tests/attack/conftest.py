"""An empty cell, and whoever comes to attack it."""

from collections.abc import Iterator

import pytest

from tests.attack.quota_cast import Cast
from tests.attack.sessions import Kept, Login, Session, Stage


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    """Sessions that the tests of a module have one after the other."""
    kept: Kept = {}
    yield kept
    for session in kept.values():
        session.close()


@pytest.fixture
def stage(database_url: str, login: Login, kept: Kept) -> Iterator[Stage]:
    """A database on which sessions are stepped."""
    stage = Stage(database_url, login, kept)
    yield stage
    stage.close()


@pytest.fixture
def owner(stage: Stage) -> Session:
    """Whoever made the cell."""
    return stage.owner()


@pytest.fixture
def submitter(stage: Stage) -> Session:
    """One who submits jobs."""
    return stage.session("submitter", "omega_submitter")


@pytest.fixture
def scheduler(stage: Stage) -> Session:
    """One who places them."""
    return stage.session("scheduler", "omega_scheduler")


@pytest.fixture
def cast(stage: Stage, owner: Session, submitter: Session, scheduler: Session) -> Cast:
    """Two tenants at work."""
    other = stage.session("other", "omega_scheduler")
    node = stage.session("node", "omega_node")
    both = stage.session("both", "omega_submitter", "omega_scheduler")
    return Cast(stage, owner, submitter, scheduler, other, node, both)
