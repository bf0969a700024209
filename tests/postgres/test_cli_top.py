"""`omega top` on a real cell: what it shows, and that it leaves the terminal as it was."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from omega.cli.top import command
from omega.lifecycle.states import State
from omega.reports.top import Tab
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from schedulers.batch import BatchScheduler
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega
from tests.fixtures.held_up import work_until, working
from tests.fixtures.logins import Login
from tests.fixtures.terminals import NARROW, WIDE, watching

END_S = 60
SWITCHES = b"\x1b[?1049"
"""What switches a terminal to another screen, followed by h, and back, followed by l."""


@pytest.fixture
def filled(store: PostgresStore) -> PostgresStore:
    store.add_machines(a_cell(3, cpu_milli=4_000))
    store.submit(
        [a_spec(2, name="<b>train</b>", tenant="ann"), a_spec(name="huge", cpu_milli=10**6)]
    )
    return store


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_reader_sees_schedulers_jobs_and_machines_at_work(
    filled: PostgresStore,
    database_url: str,
    login: Login,
    size: tuple[int, int],
    is_light: bool,  # noqa: FBT001 - light or dark
) -> None:
    async def body(reader: PostgresStore) -> None:
        async with watching(reader, size=size, is_light=is_light) as it:
            assert "1 schedulers" == it.text("#status")
            assert ["batch 0"] == it.column("scheduler")
            await it.press("2")
            await it.look()
            assert ["parked", "running"] == it.column("state")
            assert ["never_fits", ""] == it.column("why")
            assert ["huge", "<b>train</b>"] == it.column("name")
            await it.press("down", "enter")
            await it.look()
            assert "2: 2 placed" in it.text("#all")
            filled.submit([a_spec(name="later")])
            await it.press("escape", "slash")
            await it.type("state=pending")
            await it.look()
            assert ["later"] == it.column("name")
            await it.press("3", "s", "s")
            await it.look()
            used = [int(cell.rstrip("%")) for cell in it.column("cpu")]
            assert 50 == sum(used)
            assert sorted(used, reverse=True) == used
            await it.press("enter")
            await it.look()
            assert "<b>" in it.text("#all")

    with (
        working(database_url, BatchScheduler()) as process,
        closing(PostgresStore(login("reader", "omega_reader"))) as reader,
    ):
        work_until(process, filled, 1, State.RUNNING)
        work_until(process, filled, 2, State.PARKED)
        asyncio.run(body(reader))


def test_without_the_extra_one_sentence_says_what_to_install(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)

    ran = omega("top")

    assert (2, "") == (ran.code, ran.out)
    assert "omega: omega top needs an extra: pip install 'omega-scheduler[top]'\n" == ran.err


def test_without_a_terminal_one_sentence_says_what_there_is(omega: Omega) -> None:
    ran = omega("top", "--show", Tab.JOBS.value)

    assert (2, "") == (ran.code, ran.out)
    assert "omega status --json -" in ran.err
    assert 1 == ran.err.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["q", "ctrl-c", "SIGTERM"])
@pytest.mark.usefixtures("filled")
def test_it_ends_with_code_0_and_gives_the_terminal_back(
    database_url: str, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "omega.cli", "top", "--show", "jobs"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""

    def says(text: bytes) -> bool:
        nonlocal written
        written += os.read(ours, 65_536)
        return text in written

    wait_until(lambda: says(b"huge"), "the jobs to be shown")
    match how:
        case "q":
            os.write(ours, b"q")
        case "ctrl-c":
            os.write(ours, b"\x03")
        case _:
            process.send_signal(signal.SIGTERM)
    wait_until(lambda: says(SWITCHES + b"l"), "the terminal to be as before")

    assert SWITCHES + b"h" in written
    assert 0 == process.wait(END_S)
    os.close(ours)
