"""The command line as a whole: help, version, what goes wrong and the code it ends with."""

import errno
import io
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from omega import __version__
from omega.cli import __main__
from omega.cli.job import listing as jobs
from omega.cli.main import VERBS
from omega.cli.scheduler import commands as scheduler
from omega.errors import (
    BadInput,
    InvariantBroken,
    OmegaError,
    SchemaMismatch,
    SettingsError,
    StoreUnavailable,
    UnknownScheduler,
)
from omega.framework.kinds import Registered
from omega.terminal.consoles import Output
from omega.terminal.program import exit_code
from tests.fixtures.command_line import Omega

SINGLE = [
    verb for verb in VERBS if not hasattr(import_module(f"omega.cli.{VERBS[verb].module}"), "app")
]
GROUPS = [verb for verb in VERBS if verb not in SINGLE]


def commands_of(group: str) -> list[str]:
    app: typer.Typer = import_module(f"omega.cli.{VERBS[group].module}").app
    return [
        info.name or info.callback.__name__ for info in app.registered_commands if info.callback
    ]


NUMBERS = ("inf", "nan", "-1", "1e9")

PATHS = [(verb,) for verb in VERBS] + [
    (group, command) for group in GROUPS for command in commands_of(group)
]


def test_the_version_is_the_packages(omega: Omega) -> None:
    assert (0, f"omega {__version__}\n", "") == omega("--version")


def test_help_lists_every_verb_with_its_sentence(omega: Omega) -> None:
    ran = omega("--help")

    assert 0 == ran.code
    for name, verb in VERBS.items():
        assert name in ran.out
        assert verb.about in ran.out


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_help(omega: Omega, path: tuple[str, ...]) -> None:
    ran = omega(*path, "--help")

    assert 0 == ran.code
    assert f"Usage: omega {' '.join(path)}" in ran.out
    assert "" == ran.err


@pytest.mark.parametrize("verb", SINGLE)
def test_a_verbs_own_help_begins_with_the_sentence_of_the_list(verb: str) -> None:
    docstring = import_module(f"omega.cli.{VERBS[verb].module}").command.__doc__

    assert VERBS[verb].about == docstring.split("\n")[0]


@pytest.mark.parametrize(
    "arguments",
    [("fly",), ("jobs", "--fast"), ("job",), ("jobs", "--limit", "0")]
    + [("jobs", "--limit", "9" * 20), ("jobs", "--limit", "9" * 5_000)]
    + [("demo", f"--{option}={value}") for option in ("t-job", "t-task") for value in NUMBERS]
    + [("scheduler", "run", "batch", f"--t-job={value}") for value in NUMBERS]
    + [("demo", "--seconds=nan"), ("demo", "--fill=nan"), ("demo", "--speedup=inf")],
)
def test_bad_usage_ends_with_two(omega: Omega, arguments: tuple[str, ...]) -> None:
    ran = omega(*arguments)

    assert 2 == ran.code
    assert "" == ran.out
    assert ran.err.startswith("omega: ")
    assert 1 == ran.err.count("\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("no"), 2),
        (SettingsError(["no"]), 2),
        (UnknownScheduler("x", []), 2),
        (StoreUnavailable("no"), 1),
        (SchemaMismatch("no"), 1),
        (InvariantBroken("no"), 1),
        (OmegaError("no"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_user_can_mend_ends_with_two_and_the_rest_with_one(
    error: OmegaError, code: int
) -> None:
    assert code == exit_code(error)


def test_an_expected_error_is_one_sentence(omega: Omega) -> None:
    ran = omega("scheduler", "run", "bach")

    assert 2 == ran.code
    assert "" == ran.out
    assert ran.err.startswith("omega: no scheduler is registered as 'bach'; did you mean 'batch'?")
    assert 1 == ran.err.count("\n")


def test_every_problem_of_the_settings_is_told(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_LEASE_MS", "0")

    ran = omega("status")

    assert 2 == ran.code
    assert "OMEGA_LEASE_MS in the environment" in ran.err


def test_debug_shows_where_an_error_came_from(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownScheduler):
        omega("--debug", "scheduler", "run", "bach")
    monkeypatch.setenv("OMEGA_DEBUG", "1")
    with pytest.raises(UnknownScheduler):
        omega("scheduler", "run", "bach")


def test_the_schedulers_are_listed(omega: Omega) -> None:
    ran = omega("scheduler", "list")

    assert 0 == ran.code
    for kind in ("batch", "ml-gpu", "service"):
        assert kind in ran.out


def test_a_scheduler_of_any_name_is_listed(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "registered", lambda: [Registered("[/]", "a:B", "[bold]")])

    ran = omega("scheduler", "list")

    assert 0 == ran.code
    assert "[/]" in ran.out


def test_a_folder_that_cannot_be_made_is_one_sentence(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = omega("status", "--data-dir", tmp_path / "file" / "data")

    assert (1, f"omega: {tmp_path / 'file' / 'data'}: Not a directory\n") == (ran.code, ran.err)


def test_a_disk_that_is_full_is_one_sentence(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(jobs, "command", write)

    assert (1, "", "omega: No space left on device\n") == omega("jobs")


def test_an_end_of_what_is_read_is_one_sentence(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> None:
        raise EOFError

    monkeypatch.setattr(jobs, "command", read)

    ran = omega("jobs")

    assert (1, "", "omega: aborted") == (ran.code, ran.out, ran.err.strip())


@pytest.mark.parametrize("words", [[], ["db"]])
def test_without_a_verb_the_help_is_shown(omega: Omega, words: list[str]) -> None:
    ran = omega(*words)

    assert 2 == ran.code
    assert "Usage: omega" in ran.out
    assert "" == ran.err


@pytest.mark.parametrize("said", ["0", "false", "No", "off", ""])
def test_debug_can_be_switched_off(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("OMEGA_DEBUG", said)

    assert 2 == omega("scheduler", "run", "bach").code


def test_what_the_terminal_cannot_show_is_replaced(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    monkeypatch.setattr(jobs, "command", lambda: Output().console.print("na\u00efve \u2026"))

    assert 0 == omega("jobs").code
    sys.stdout.flush()
    assert b"na?ve ?\n" == shown.getvalue()


@pytest.mark.parametrize("moment", ["load", "run"])
def test_an_interrupt_is_a_word_and_a_code(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    if moment == "load":
        monkeypatch.setattr("omega.cli.main.build", lambda _said: interrupted())
    else:
        monkeypatch.setattr(jobs, "command", interrupted)

    assert (130, "", "omega: interrupted\n") == omega("jobs")


def test_an_interrupt_before_anything_is_loaded_is_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omega.cli.main.main", interrupted)
    with pytest.raises(SystemExit) as end:
        __main__.main()

    assert 130 == end.value.code
    assert "omega: interrupted\n" == capsys.readouterr().err


@pytest.mark.parametrize("module", ["omega", "omega.cli"])
def test_the_package_can_be_run_as_a_module(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", module, "--version"], check=True, capture_output=True, text=True
    )

    assert f"omega {__version__}\n" == ran.stdout
