"""Whatever is typed, a command ends with 0, 1 or 2, and with a sentence if not with 0."""

import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings

from omega.cli.main import VERBS
from omega.errors import StoreUnavailable
from omega.nodes.agent.child_wait import ChildWait
from omega.store.postgres.store import PostgresStore
from omega.terminal.program import BAD_USAGE, DONE, FAILED, INTERRUPTED
from omega.testing.builders import a_spec
from tests.fixtures.command_line import Omega
from tests.fixtures.doses import Dose, Tallier
from tests.postgres.hostile_words import command_lines, commands, write_files

pytestmark = pytest.mark.usefixtures("kept_sessions")

COMMANDS = {command.path: command for command in commands()}


class OverWhenWaitedFor(threading.Event):
    """A stop event that is set as soon as somebody has nothing to do but to wait."""

    def wait(self, timeout: float | None = None) -> bool:
        """Ask for the end."""
        self.set()
        return super().wait(timeout)


STOPS: list[OverWhenWaitedFor] = []
"""Those of the present test; an agent does not wait for them, but for its children."""


@contextmanager
def stop_soon() -> Iterator[threading.Event]:
    STOPS.append(OverWhenWaitedFor())
    yield STOPS[-1]


def stop_all(_children: ChildWait, _seconds: float) -> None:
    """Stop whoever would wait for its children."""
    for stop in STOPS:
        stop.set()


def no_demo(*_: object) -> NoReturn:
    """End before any process is started."""
    raise StoreUnavailable("no database is made for this")


@pytest.fixture(autouse=True)
def _children_ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what commands have started: a watchdog outlives its agent, which is this process here."""
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def kept(*words: Any, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - Popen's own
        started.append(start(*words, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", kept)
    yield
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def _bounded(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have commands work in the test's own database and folder, and none go on for ever."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"- \xff: [")))
    monkeypatch.setattr(ChildWait, "wait", stop_all)
    STOPS.clear()
    modules = {f"omega.cli.{VERBS[verb].module}" for verb, *_ in COMMANDS}
    for path in modules | {"omega.cli.node.run"}:  # which the verb's own module only imports
        module = import_module(path)
        for name, instead in (
            ("stop_on_signals", stop_soon),
            ("stop_with_parent", lambda _stop: None),
            ("_fresh_cell", no_demo),
        ):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, instead)


FACTS: list[dict[str, object]] = [
    {"totals": 7, "window": [], "waits": {"x": "y"}, "measures": "?"},
    {"totals": {"refused": 7, "claims": {}}, "waits": {"9" * 5_000: 1}, "elapsed_s": "soon"},
    {"speedup": "fast", "measures": {"busy_now": "very", "wait_p50_s": []}, "elapsed_s": -1},
]


@pytest.mark.parametrize("kind", ["batch", "nodes", "[/]"])
@pytest.mark.parametrize("facts", FACTS)
def test_a_process_that_tells_nonsense_spoils_no_screen(
    omega: Omega, store: PostgresStore, kind: str, facts: dict[str, object]
) -> None:
    store.report(kind, "[bold]", pid=1, facts=facts)
    store.submit([a_spec(name="[/red]", tenant="[/]", scheduler="[/]")])

    for words in (["status"], ["status", "--json", "-"], ["jobs"], ["job", "1"]):
        ran = omega(*words)

        assert DONE == ran.code, ran.err
        assert ran.out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_any_command_line_ends_well(
    omega: Omega,
    store: PostgresStore,
    path: tuple[str, ...],
    dose: Dose,
    tally: Tallier,
    tmp_path: Path,
) -> None:
    with tally("command lines", of="hostile input") as row:

        @settings(max_examples=dose(6, 40))
        @given(command_lines(COMMANDS[path]))
        def attack(words: list[str]) -> None:
            write_files(tmp_path)
            sys.stdin.seek(0)  # an example before may have read it
            row.tried += 1
            before = store.use()
            ran = omega(*words)

            assert ran.code in (DONE, FAILED, BAD_USAGE, INTERRUPTED)
            assert "Traceback" not in ran.err + ran.out
            assert ran.code == DONE or ran.err or ran.out
            if ran.code == BAD_USAGE:
                assert before == store.use()
            row.survived += 1

        attack()
    assert [] == list(store.verify())
