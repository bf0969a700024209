"""An empty cell, and whoever comes to attack it."""

from collections.abc import Iterator

import pytest

from tests.attack.quota_cast import Cast
from tests.attack.sessions import Login, Session, Stage


@pytest.fixture
def stage(database_url: str, login: Login) -> Iterator[Stage]:
    """A database on which sessions are stepped."""
    stage = Stage(database_url, login)
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
