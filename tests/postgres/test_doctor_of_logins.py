"""`omega db doctor` on logins: what `omega db init --roles` would set is told, and mended so."""

import psycopg
import pytest

from omega.clock import RealClock
from omega.store.postgres import roles
from omega.store.postgres.databases import name_of
from omega.store.postgres.health import logins
from omega.store.postgres.health.examination import examine
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.restrictions import REVOKING_FUNCTIONS
from omega.store.postgres.schema import migrate
from tests.fixtures.logins import Login, user_of

WHAT = [
    "connection limits",
    "powers of logins",
    "timeouts",
    "rights of PUBLIC",
    "lock functions",
    "CONNECT",
]
OF_INIT = {"connection limits", "timeouts", "rights of PUBLIC", "lock functions"}
"""What a superuser's init mends."""


@pytest.fixture
def alice(empty_database_url: str, own_login: Login) -> str:
    """A scheduler's login, in a cell whose owner has limited nothing; it may make databases."""
    migrate(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as superuser:
        superuser.execute(roles.making().encode())
    migrate(empty_database_url)
    return own_login("alice", "CREATEDB", roles.ROLES[0].name)


def of_logins_found(url: str) -> dict[str, Finding]:
    """Return what is said of logins, in the order of the screen."""
    found = {one.what: one for one in examine(url, RealClock(), open_for_s=3_600)}
    return {what: found[what] for what in WHAT}


def complaints(url: str) -> set[str]:
    return {what for what, one in of_logins_found(url).items() if one.severity is Severity.LOOK}


@pytest.mark.usefixtures("our_own")
def test_a_cell_without_logins_of_ours_has_nobody_to_keep_out(empty_database_url: str) -> None:
    migrate(empty_database_url)

    assert len(WHAT) == len(logins.LOGINS)
    assert set() == complaints(empty_database_url)


def test_what_is_open_to_a_login_is_told_and_what_is_to_be_run_mends_it(
    empty_database_url: str, alice: str
) -> None:
    name, user = name_of(empty_database_url), user_of(alice)
    before = of_logins_found(empty_database_url)
    as_alice = of_logins_found(alice)
    cures = {what: one.run for what, one in before.items()}
    # The rest of it is about databases of other tests.
    cures["CONNECT"] = cures["CONNECT"].split(", ")[0] + " FROM PUBLIC"
    cures["lock functions"] = REVOKING_FUNCTIONS
    with psycopg.connect(empty_database_url, autocommit=True) as superuser:
        for cure in cures.values():
            superuser.execute(cure.encode())
    after = of_logins_found(empty_database_url)

    assert set(WHAT) == {what for what, one in before.items() if one.severity is Severity.LOOK}
    assert [one.what for one in before.values()] == [one.what for one in as_alice.values()]
    assert f"none for {user}" == before["connection limits"].found
    assert f"{user} has CREATEDB" == before["powers of logins"].found
    assert before["CONNECT"].found.startswith(f"PUBLIC may connect to {name}, ")
    assert f'GRANT CONNECT ON DATABASE "{name}" TO "{user}"' == cures["CONNECT"].split(";")[0]
    assert {"CONNECT"} == {what for what, one in after.items() if one.severity is Severity.LOOK}
    assert name not in after["CONNECT"].found
    assert "at most 20 a login" == after["connection limits"].found


def test_what_init_sets_is_no_complaint(empty_database_url: str, alice: str) -> None:
    before = complaints(empty_database_url)
    migrate(empty_database_url, make_roles=True)

    assert OF_INIT == before - complaints(empty_database_url)
