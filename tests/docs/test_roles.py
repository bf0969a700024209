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

from omega.lifecycle.states import State
from omega.store.postgres.roles import ROLES, TABLES
from omega.store.postgres.store import PostgresStore
from tests.docs.documents import Block, blocks, document, section, table
from tests.docs.shell import Shell
from tests.fixtures.at_work import wait_until
from tests.fixtures.databases import ServerOfRun

PAGE = document("docs/roles.md")
LOGINS = ("planner", "warden", "alice", "bob")
OWNER, DATABASE, PASSWORD = "omega_owner", "cell", "change-me"
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
    own = {name: f"{prefix}{name}" for name in (DATABASE, OWNER, *LOGINS)}
    yield own
    with psycopg.connect(server_of_run.url, autocommit=True) as connection:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(own[DATABASE])))
        for name in (*LOGINS, OWNER):
            drop = sql.SQL("DROP ROLE IF EXISTS {}")
            connection.execute(drop.format(sql.Identifier(own[name])))


def renamed(text: str, own: dict[str, str]) -> str:
    """Replace the page's names; `cell` is also a verb, and a database only in SQL."""
    for name in (OWNER, *LOGINS):
        text = re.sub(rf"\b{name}\b", own[name], text)
    return re.sub(r"\bDATABASE cell\b", f"DATABASE {own[DATABASE]}", text)


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
