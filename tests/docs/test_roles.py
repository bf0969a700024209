"""The page on roles says what the code says, and its steps work as they are written."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.clock import RealClock
from omega.lifecycle.states import State
from omega.store.postgres.access import catalogue_connection, read_access
from omega.store.postgres.health.examination import examine
from omega.store.postgres.health.findings import Severity
from omega.store.postgres.health.logins import LOGINS as JUDGES_OF_LOGINS
from omega.store.postgres.restrictions import CONNECTIONS_MAX, REVOKING_FUNCTIONS, TIMEOUTS_SET
from omega.store.postgres.roles import ROLES, TABLES
from omega.store.postgres.store import PostgresStore
from tests.docs.documents import Block, blocks, document, section, table
from tests.docs.shell import Shell
from tests.fixtures.at_work import wait_until
from tests.fixtures.databases import ServerOfRun

PAGE = document("docs/guide/roles.md")
LOGINS = ("planner", "warden", "alice", "bob")
OWNER, DATABASE, PASSWORD = "omega_owner", "cell", "change-me"
OTHERS = "postgres, template1"
"""Databases that every server has, and that other tests need as they are."""
INIT = "omega db init --roles"
JOB = """\
name: hello
scheduler: batch
groups:
- {tasks: 20, cpu: 1, memory: 1GiB, duration: 1m}
"""


def test_the_table_of_roles_is_the_one_that_is_applied() -> None:
    told = {row[0].strip("`"): (names(row[2]), names(row[3])) for row in table(PAGE)}
    words = {(): ["no table"], TABLES: ["all tables"]}

    assert told == {
        role.name: (list(role.calls), words.get(role.reads, list(role.reads))) for role in ROLES
    }


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell) or [cell]


@pytest.fixture
def ours(server_of_run: ServerOfRun) -> Iterator[dict[str, str]]:
    """What stands for the page's names, which two tests could not share; dropped afterwards."""
    prefix = server_of_run.name(f"{server_of_run.worker}_page_")
    own = {name: f"{prefix}{name}" for name in (DATABASE, OWNER, *LOGINS)} | {OTHERS: f"{prefix}x"}
    yield own
    with psycopg.connect(server_of_run.url, autocommit=True) as connection:
        for database in (DATABASE, OTHERS):
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(own[database])))
        for name in (*LOGINS, OWNER):
            drop = sql.SQL("DROP ROLE IF EXISTS {}")
            connection.execute(drop.format(sql.Identifier(own[name])))


def renamed(text: str, own: dict[str, str]) -> str:
    """Replace the page's names; `cell` is also a verb, and a database only in SQL."""
    for name in (OWNER, *LOGINS):
        text = re.sub(rf"\b{name}\b", own[name], text)
    for database in (DATABASE, OTHERS):
        text = re.sub(rf"\bDATABASE {database}\b", f"DATABASE {own[database]}", text)
    return text


def lines_of(block: Block, own: dict[str, str]) -> list[str]:
    return [line for line in renamed(block.text, own).splitlines() if line.strip()]


@pytest.mark.slow
def test_the_steps_run_a_whole_cell_each_process_under_its_own_login(
    server_of_run: ServerOfRun, ours: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    at = make_url(server_of_run.url).set(database=ours[DATABASE], password=PASSWORD)
    urls = {
        name: at.set(username=ours[name]).render_as_string(hide_password=False)
        for name in (OWNER, *LOGINS)
    }
    environment = {
        **os.environ,
        "OMEGA_DATABASE_URL": urls[OWNER],
        **{name.upper(): urls[name] for name in LOGINS},
    }
    said: dict[str, str] = {}
    with (
        psycopg.connect(server_of_run.url, autocommit=True) as superuser,
        closing(PostgresStore(urls["bob"])) as reader,
    ):
        with Shell(tmp_path, environment) as shell:
            for block in blocks(section(PAGE, "Set it up"), "sql", "sh"):
                for line in lines_of(block, ours):
                    if block.language == "sql":
                        superuser.execute(line.encode())
                    else:
                        words = shlex.split(line, comments=True)
                        said[" ".join(words)] = shell.type(words)
            placed = reader.job(1)
            wait_until(lambda: State.SUCCEEDED in reader.use().jobs_by_state, "the job to end")
            wait_until(lambda: len(reader.reports()) == 2, "both processes to report")
            with psycopg.connect(urls["bob"]) as session:
                reported = session.execute("SELECT kind, login FROM omega.process").fetchall()

        assert placed is not None
        assert 20 == placed.placed
        assert {("batch", ours["planner"]), ("nodes", ours["warden"])} == set(reported)
        assert [] == reader.reports(), "processes that end cleanly leave the registry"
        assert [] == list(reader.verify())
    assert "Roles for logins: omega_scheduler, omega_node" in said["omega db init --roles"]
    assert f"{ours['warden']} stands for 2 machines." in "".join(said.values())
    assert f"{ours['warden']} stands for 1,000 machines." in "".join(said.values())
    assert "1,000 machines" in said["OMEGA_DATABASE_URL=$BOB omega status"]
    assert "hello" in said["OMEGA_DATABASE_URL=$ALICE omega job 1"]


def test_the_limits_on_the_page_are_those_that_are_set() -> None:
    limits = section(PAGE, "Set limits")
    values = {row[0]: row[1] for row in table(limits)}

    for name, value in TIMEOUTS_SET.items():
        assert values[f"`{name}` of the database"].startswith(f"{value}, ")
    assert values["`CONNECTION LIMIT` of each login with one of the roles"].startswith(
        f"{CONNECTIONS_MAX}, "
    )
    assert " ".join(REVOKING_FUNCTIONS.split()) in " ".join(limits.text.split())


@pytest.mark.slow
def test_the_limits_are_set_as_the_page_says(
    server_of_run: ServerOfRun, ours: dict[str, str], tmp_path: Path
) -> None:
    at = make_url(server_of_run.url).set(database=ours[DATABASE])
    cell = at.render_as_string(hide_password=False)
    owner = at.set(username=ours[OWNER], password=PASSWORD).render_as_string(hide_password=False)
    server_of_run.create(ours[OTHERS])
    said = []
    with Shell(tmp_path, {**os.environ, "OMEGA_DATABASE_URL": owner}) as shell:
        with psycopg.connect(server_of_run.url, autocommit=True) as superuser:
            for block in blocks(section(PAGE, "Set it up"), "sql", "sh"):
                for line in lines_of(block, ours):
                    if block.language == "sql":
                        superuser.execute(line.encode())
                    elif line == INIT:
                        said.append(shell.type(shlex.split(line)))
        with psycopg.connect(cell, autocommit=True) as superuser:
            for block in blocks(section(PAGE, "Set limits"), "sql", "sh"):
                if block.language == "sql":
                    superuser.execute(renamed(block.text, ours).encode())
                else:
                    said += [shell.type(shlex.split(line)) for line in lines_of(block, ours)]
            rights = superuser.execute(
                "SELECT has_database_privilege(%s, current_database(), 'TEMPORARY'),"
                " has_function_privilege(%s, 'pg_advisory_lock(bigint)', 'EXECUTE'),"
                " has_function_privilege(%s, 'pg_advisory_lock(integer, integer)', 'EXECUTE')",
                [ours["bob"]] * 3,
            ).fetchone()
        said.append(shell.type(shlex.split(INIT)))
    with catalogue_connection(cell) as connection:
        access = read_access(connection)
    findings = examine(cell, RealClock(), open_for_s=3_600)

    first, second, last = said
    assert "Set: statement_timeout is 5min" in first
    assert "A superuser may run: DO $$" in first
    assert "Set: statement_timeout" not in second
    assert "et: " not in last, "all is set"
    assert (True, True, False) == rights, "what was granted stays"
    assert ((), ()) == (access.of_public, access.open_functions)
    assert TIMEOUTS_SET == access.timeouts
    assert {"planner": 40, "warden": 10, "alice": 5, "bob": 5} == {
        name: one.connections_max for one in access.members for name in LOGINS
        if one.name == ours[name]
    }  # fmt: skip
    assert not {ours[DATABASE], ours[OTHERS]} & set(access.open_databases)
    complaints = [one.what for one in findings if one.severity is Severity.LOOK]
    of_logins = {judge(access).what for judge in JUDGES_OF_LOGINS}
    assert {"CONNECT"} == of_logins & set(complaints), "there are databases of other tests"
