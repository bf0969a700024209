"""A login that the server refuses for its password: one sentence, and no more tries."""

import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import URL, make_url

from omega.errors import NotAllowed
from omega.store.postgres.store import PostgresStore
from tests.fixtures.logins import Login

WRONG = "w0rse"
RUN = (sys.executable, "-m", "omega.cli", "scheduler", "run", "batch", "--replica", "a")


@pytest.fixture
def url(login: Login) -> URL:
    """A scheduler's login on a server that asks for passwords."""
    its = make_url(login("scheduler", "omega_scheduler"))
    try:
        psycopg.connect(its.set(password=WRONG).render_as_string(hide_password=False)).close()
    except psycopg.OperationalError:
        return its
    pytest.skip("this server asks for no password")


@pytest.mark.parametrize(
    ("password", "why"), [(WRONG, "it refuses the password"), (None, "it asks for a password")]
)
def test_a_scheduler_ends_with_a_sentence(
    url: URL, password: str | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = URL.create(**{**url._asdict(), "password": password})
    monkeypatch.setenv("OMEGA_DATABASE_URL", wrong.render_as_string(hide_password=False))

    ended = subprocess.run(RUN, capture_output=True, text=True, check=False)

    assert (1, "") == (ended.returncode, ended.stdout)
    assert f"omega: the server does not let {url.username} in: {why}" in ended.stderr
    assert WRONG not in ended.stderr


def test_a_password_that_was_changed_ends_what_connects_again(url: URL, server_url: str) -> None:
    there = url.render_as_string(hide_password=False)
    with closing(PostgresStore(there)) as store, closing(psycopg.connect(server_url)) as superuser:
        store.now_ms()
        superuser.autocommit = True
        change = psycopg.sql.SQL("ALTER ROLE {} PASSWORD {}")
        user = psycopg.sql.Identifier(str(url.username))
        superuser.execute(change.format(user, psycopg.sql.Literal(WRONG)))
        try:
            superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s",
                (url.username,),
            )
            store.close()
            with pytest.raises(NotAllowed, match="does not let"):
                store.now_ms()
        finally:
            superuser.execute(change.format(user, psycopg.sql.Literal(str(url.password))))
        assert store.now_ms() > 0
