"""A login that the server refuses: one sentence, and no more tries; an outage is waited for."""

import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import URL, make_url

from omega.errors import NotAllowed, StoreUnavailable
from omega.store.postgres.refusals import codes_of_a_try, refusal
from omega.store.postgres.store import PostgresStore
from tests.fixtures.command_line import Started
from tests.fixtures.logins import Login
from tests.fixtures.servers import free_port

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


@pytest.mark.parametrize(
    ("spoil", "mend", "why"),
    [
        ("ALTER ROLE {user} NOLOGIN", "ALTER ROLE {user} LOGIN", "not permitted to log in"),
        (
            "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
            "GRANT CONNECT ON DATABASE {database} TO PUBLIC",
            "the login may not connect to the database",
        ),
        ("SELECT 1", "SELECT 1", "it has no database nowhere"),
    ],
)
def test_processes_end_with_the_reason(
    url: URL, server_url: str, spoil: str, mend: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = url.set(database="nowhere") if "nowhere" in why else url
    monkeypatch.setenv("OMEGA_DATABASE_URL", wanted.render_as_string(hide_password=False))
    names = {"user": f'"{url.username}"', "database": f'"{url.database}"'}
    with psycopg.connect(server_url, autocommit=True) as superuser:
        superuser.execute(spoil.format(**names).encode())
        try:
            runs = [
                subprocess.run(RUN[:3] + verb, capture_output=True, text=True, check=False)
                for verb in (RUN[3:], ("node", "simulate"))
            ]
        finally:
            superuser.execute(mend.format(**names).encode())

    for ended in runs:
        assert (1, "") == (ended.returncode, ended.stdout)
        sentence = ended.stderr.splitlines()[-1]
        assert sentence.startswith(f"omega: the server does not let {url.username} in: ")
        assert why in sentence


def test_what_passes_is_waited_for(url: URL, server_url: str) -> None:
    """A server that is full, or another that is not there, may let the login in later."""
    there = url.render_as_string(hide_password=False)
    nobody = url.set(host="127.0.0.1", port=free_port()).render_as_string(hide_password=False)
    limit = psycopg.sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}")
    user = psycopg.sql.Identifier(str(url.username))
    with closing(PostgresStore(there)) as store, closing(PostgresStore(nobody)) as lost:
        with psycopg.connect(server_url, autocommit=True) as superuser:
            superuser.execute(limit.format(user, 0))
            try:
                with pytest.raises(StoreUnavailable, match="too many connections"):
                    store.now_ms()
            finally:
                superuser.execute(limit.format(user, -1))
        with pytest.raises(StoreUnavailable, match="refused"):
            lost.now_ms()
        assert store.now_ms() > 0


def test_the_code_decides_and_not_the_words(url: URL) -> None:
    """As from a server that speaks another language: only the words are taken away."""
    wrong = url.set(password=WRONG).render_as_string(hide_password=False)
    mute = psycopg.OperationalError("¡no!")

    assert ["28P01"] == codes_of_a_try(wrong)
    assert [] == codes_of_a_try(url.render_as_string(hide_password=False))
    said = refusal(wrong, mute)
    assert said is not None
    assert said.endswith("it refuses the password of OMEGA_DATABASE_URL")


def test_a_refused_port_is_said_at_once_with_the_name(started: Started) -> None:
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMEGA_DATABASE_URL", f"postgresql://omega@127.0.0.1:{port}/omega")
        started(*RUN[3:])
        started.wait_for(lambda: '"level": "warning", "process": "batch a"' in started.log())

    assert "refused" in started.log()


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
