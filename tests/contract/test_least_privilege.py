"""The store on Postgres obeys the law with each call made by a login that may do little else.

What is left to the owner are the verbs of whoever runs the cell, and nothing that a process calls.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.contracts import StoreContract
from omega.testing.pass_through import PassThrough
from tests.fixtures.logins import Login, user_of

VERBS = {
    "omega_scheduler": "snapshot changes_since commit lease renew hand_back park parked wake rescue"
    " begin_round note_round recall unfinished allocations_of report forget quotas lose_tasks"
    " enforce_notices",
    "omega_node": "allocations_since end_tasks report_progress now_ms",
    "omega_submitter": "submit cancel job jobs placements training",
    "omega_reader": "use reports verify allocations allocations_on notices",
}
OWNERS = "add_machines set_state resize set_quota remove_quota close"


class TestPostgresStoreUnderLogins(StoreContract):
    """All of the contract."""

    @pytest.fixture
    def store(self, database_url: str, login: Login) -> Iterator[Store]:
        """An empty cell, and a node that stands for all its machines."""
        assign_machines(database_url, user_of(login("node", "omega_node")), None)
        with ExitStack() as stores:
            divided = PassThrough(stores.enter_context(closing(PostgresStore(database_url))))
            for role, verbs in VERBS.items():
                url = login(role.removeprefix("omega_"), role)
                one = stores.enter_context(closing(PostgresStore(url)))
                for verb in verbs.split():
                    setattr(divided, verb, getattr(one, verb))
            yield divided


def test_every_verb_is_somebodys() -> None:
    verbs = {name for name in dir(PassThrough) if not name.startswith("_")}

    assert sorted(verbs) == sorted(" ".join([OWNERS, *VERBS.values()]).split())
