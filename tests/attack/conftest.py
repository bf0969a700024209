"""Fixtures: an empty database, and sessions of several roles on it."""

from collections.abc import Iterator

import pytest

from tests.attack.quota_scenario import QuotaScenario
from tests.attack.run_sizes import ExampleCount, ResultTable
from tests.attack.sessions import Database, Login, Session, SessionCache


@pytest.fixture(scope="module")
def session_cache() -> Iterator[SessionCache]:
    """Connections that the tests of a module reuse."""
    cache: SessionCache = {}
    yield cache
    for session in cache.values():
        session.close()


@pytest.fixture
def database(database_url: str, login: Login, session_cache: SessionCache) -> Iterator[Database]:
    """An empty database, on which a test opens sessions."""
    database = Database(database_url, login, session_cache)
    yield database
    database.close()


@pytest.fixture
def owner(database: Database) -> Session:
    """A session of the schema's owner."""
    return database.owner()


@pytest.fixture
def submitter(database: Database) -> Session:
    """A session of a login that submits jobs."""
    return database.session("submitter", "omega_submitter")


@pytest.fixture
def scheduler(database: Database) -> Session:
    """A session of a login that places tasks."""
    return database.session("scheduler", "omega_scheduler")


@pytest.fixture
def scenario(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> QuotaScenario:
    """A cell in which two tenants have running and pending tasks."""
    other_scheduler = database.session("other scheduler", "omega_scheduler")
    node = database.session("node", "omega_node")
    submitting_scheduler = database.session(
        "submitting scheduler", "omega_submitter", "omega_scheduler"
    )
    return QuotaScenario(
        database, owner, submitter, scheduler, other_scheduler, node, submitting_scheduler
    )


@pytest.fixture
def example_count(dose: ExampleCount) -> ExampleCount:
    """Few examples in `make test`, many in `make prove`."""
    return dose


@pytest.fixture
def result_table(tally: ResultTable) -> ResultTable:
    """The table that `make prove` prints at its end."""
    return tally
