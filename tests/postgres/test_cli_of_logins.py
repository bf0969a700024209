"""The verbs, run by logins that may do more or less: a refusal is one sentence, and code 1."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from omega.store.postgres.databases import name_of
from omega.store.postgres.revision import head
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell
from tests.fixtures.command_line import Omega
from tests.fixtures.logins import Login, user_of

As = Callable[..., str]


@pytest.fixture
def acting_as(login: Login, monkeypatch: pytest.MonkeyPatch) -> As:
    """Have the commands that follow log in with these roles; return the user's name."""

    def become(name: str, *roles: str) -> str:
        url = login(name, *roles)
        monkeypatch.setenv("OMEGA_DATABASE_URL", url)
        return user_of(url)

    return become


@pytest.fixture
def owner(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    return database_url


def test_init_makes_the_roles_when_asked_to(
    omega: Omega, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", empty_database_url)

    ran = omega("db", "init", "--roles")

    assert (0, "") == (ran.code, ran.err)
    assert ran.out.startswith(
        f"The database is ready (schema {head()}).\n"
        "Roles for logins: omega_scheduler, omega_node, omega_submitter, omega_reader.\n"
    )


def test_init_says_in_a_line_each_what_it_has_set_and_who_may_set_the_rest(
    omega: Omega, empty_database_url: str, own_login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = own_login("owner", "CREATEROLE")
    name = name_of(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as superuser:
        superuser.execute(f'ALTER DATABASE "{name}" OWNER TO "{user_of(owner)}"'.encode())
    monkeypatch.setenv("OMEGA_DATABASE_URL", owner)
    told, again = (omega("db", "init", "--roles").out.splitlines()[2:] for _ in range(2))

    where = "in this database, where a session sets no other."
    assert told[:-1] == [
        "Set: PUBLIC may make no temporary tables in this database.",
        f"Set: statement_timeout is 5min {where}",
        f"Set: idle_in_transaction_session_timeout is 1min {where}",
    ]
    assert told[-1].startswith(f"Not set: only {user_of(owner)} may take advisory locks, ")
    assert "A superuser may run: DO $$ DECLARE f regprocedure;" in told[-1]
    assert told[-1].endswith("END LOOP; END $$")
    assert told[-1:] == again


@pytest.mark.parametrize(
    ("role", "arguments", "what"),
    [
        ("omega_reader", ["cancel", "1"], "function cancel_job"),
        ("omega_reader", ["submit", "job.yaml"], "function submit_jobs"),
        ("omega_reader", ["node", "assign", "someone", "--all"], "function assign_machines"),
        ("omega_reader", ["node", "simulate"], "function own_allocations"),
        ("omega_submitter", ["status"], "table machine"),
        ("omega_submitter", ["cell", "show"], "table machine"),
        ("omega_submitter", ["db", "verify"], "function verify"),
        ("omega_scheduler", ["jobs"], "table job"),
        ("omega_scheduler", ["submit", "job.yaml"], "function submit_jobs"),
        ("omega_node", ["jobs"], "table job"),
        ("omega_node", ["cancel", "1"], "table job"),
        ("omega_node", ["cell", "load", "synthetic:3"], "function add_machines"),
    ],
)
def test_a_verb_that_is_anothers_is_refused(
    omega: Omega,
    store: PostgresStore,
    acting_as: As,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    arguments: list[str],
    what: str,
) -> None:
    store.submit([a_spec()])
    before = store.use()
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(
        "{name: hello, scheduler: batch, groups: [{tasks: 3, cpu: 1, memory: 1GiB}]}"
    )
    user = acting_as(role, role)

    ran = omega(*arguments)

    assert (1, f"omega: {user} may not do this: permission denied for {what}\n") == (
        ran.code,
        ran.err,
    )
    assert before == store.use()


@pytest.mark.parametrize("verb", ["init", "migrate"])
def test_who_does_not_own_the_database_migrates_nothing(
    omega: Omega, acting_as: As, verb: str
) -> None:
    acting_as("omega_scheduler", "omega_scheduler")

    ran = omega("db", verb)

    assert 1 == ran.code
    assert ran.err.startswith("omega: the database's user may not do this: ")
    assert 1 == ran.err.count("\n")


def test_a_login_without_a_role_sees_nothing(omega: Omega, acting_as: As) -> None:
    user = acting_as("nobody")

    assert (1, "", f"omega: {user} may not do this: permission denied for schema omega\n") == omega(
        "status"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scheduler", "run", "batch"], "permission denied for function "),
        (["node", "simulate"], "stands for no machine; its owner may run: omega node assign"),
    ],
)
def test_a_process_that_may_not_work_ends_with_one(
    acting_as: As, arguments: list[str], says: str
) -> None:
    user = acting_as("omega_node", "omega_node")

    ended = subprocess.run(
        [sys.executable, "-m", "omega.cli", *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )

    last = ended.stderr.splitlines()[-1]
    assert 1 == ended.returncode
    assert last.startswith(f"omega: {user} may not do this: ")
    assert says in last


def test_machines_are_assigned_to_a_login(
    omega: Omega, store: PostgresStore, owner: str, login: Login
) -> None:
    add_a_cell(store)
    user = user_of(login("omega_node", "omega_node"))

    one = omega("node", "assign", user, "machine-2")
    every = omega("node", "assign", user, "--all")
    none = omega("node", "assign", user, "--none")

    assert (0, f"{user} stands for 1 machine.\n", "") == one
    assert (0, f"{user} stands for 3 machines.\n", "") == every
    assert (0, f"{user} stands for 0 machines.\n", "") == none
    with psycopg.connect(owner) as connection:
        assert [] == connection.execute("SELECT FROM omega.node").fetchall()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nobody_at_all", "--all"], "there is no role nobody_at_all"),
        (["{user}", "machine-9"], "there is no machine named machine-9"),
        (["{user}"], "name machines, or say --all, or --none"),
        (["{user}", "machine-1", "--all"], "name machines, or say --all, or --none"),
        (["{user}", "--none", "--all"], "name machines, or say --all, or --none"),
    ],
)
def test_an_assignment_that_says_nothing_clear_is_refused(
    omega: Omega, owner: str, words: list[str], says: str
) -> None:
    user = user_of(owner)

    ran = omega("node", "assign", *(word.format(user=user) for word in words))

    assert (2, "", f"omega: {says}\n") == ran


def test_a_login_is_told_when_the_database_is_at_another_revision(
    omega: Omega, empty_database_url: str, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", empty_database_url)
    omega("db", "init")
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("UPDATE omega.alembic_version SET version_num = '9999'")
        connection.execute("DROP FUNCTION omega.verify")
    name = make_url(empty_database_url).database
    reader = make_url(login("omega_reader", "omega_reader")).set(database=name)
    monkeypatch.setenv("OMEGA_DATABASE_URL", reader.render_as_string(hide_password=False))

    ran = omega("db", "verify")

    assert 1 == ran.code
    assert "this database is at revision 9999, this program needs" in ran.err
