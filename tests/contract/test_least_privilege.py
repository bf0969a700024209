"""The store on Postgres obeys the law with each call made by a login that may do little else.

A scheduler's login calls all that the protocol of its store has; the login of each other role calls
what is left of its own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from omega.store.postgres.assignment import assign_machines
from omega.store.protocols import OwnerStore, SchedulerStore, Store
from omega.testing.contracts import StoreContract
from omega.testing.pass_through import PassThrough
from tests.fixtures.logins import STORES, Login, methods_of, user_of
from tests.fixtures.sessions import OpenStore


def shares() -> dict[str, set[str]]:
    """Return by role what its login calls here: what its store has and no earlier role's."""
    shares: dict[str, set[str]] = {}
    taken = {"close"}
    for role, protocol in STORES.items():
        shares[role] = methods_of(protocol) - taken
        taken |= shares[role]
    return shares


class TestPostgresStoreUnderLogins(StoreContract):
    """All of the contract."""

    @pytest.fixture
    def store(self, database_url: str, login: Login, open_store: OpenStore) -> Iterator[Store]:
        """An empty cell, and a node that stands for all its machines."""
        assign_machines(database_url, user_of(login("node", "omega_node")), None)
        with ExitStack() as stores:
            divided = PassThrough(stores.enter_context(closing(open_store(database_url))))
            for role, methods in shares().items():
                url = login(role.removeprefix("omega_"), role)
                one = stores.enter_context(closing(open_store(url)))
                for method in methods:
                    setattr(divided, method, getattr(one, method))
            yield divided


def test_a_scheduler_calls_all_that_its_store_has() -> None:
    assert shares()["omega_scheduler"] == methods_of(SchedulerStore) - {"close"}


def test_what_no_role_calls_is_the_owners() -> None:
    left = methods_of(Store).difference(*shares().values())

    assert left == {*vars(OwnerStore), "close"} & methods_of(Store)
