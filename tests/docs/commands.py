"""Whether a command line in a document, or in a compose file, is one that can be typed."""

import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from typing import Any

import typer.main

from benchmarks.__main__ import build as benchmarks
from omega.cli.main import build
from schedulers.ml_gpu.__main__ import build as ml_gpu
from tests.architecture.tree import ROOT

ASSIGNMENT = re.compile(r"[A-Z_]+=")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
NOT_OURS = frozenset(
    {"cat", "cd", "cp", "docker", "export", "git", "kill", "mv", "patronictl", "pip", "psql"}
    | {"pg_basebackup", "pg_ctl", "pg_dump", "pg_restore", "pg_rewind"}
    | {"python3", "source", "touch"}
)
"""Programs that a document may show and whose arguments we leave to them."""
MODULES = {"benchmarks": benchmarks, "schedulers.ml_gpu": ml_gpu}
"""Command lines besides `omega`."""


def problem_with(line: str) -> str | None:
    """Say why a line would fail before it has done anything; None if it would not."""
    words = shlex.split(line, comments=True)
    if words[-1:] == ["&"]:
        del words[-1]
    while words and ASSIGNMENT.match(words[0]):
        del words[0]
    match words:
        case ["omega", *rest] | ["python", "-m", "omega.cli", *rest]:
            return problem_with_omega(rest)
        case ["python", "-m", "benchmarks" | "schedulers.ml_gpu" as module, *rest]:
            return _complaint(_app_of(module), rest)
        case ["docker", "compose", "run" | "exec", *rest] if "omega" in rest:
            return problem_with_omega(rest[rest.index("omega") + 1 :])
        case ["make", *rest]:
            return _problem_with_make(rest)
        case [program, *_] if program not in NOT_OURS:
            return f"nobody here knows {program!r}"
    return None


def problem_with_omega(words: Sequence[str]) -> str | None:
    """Say what the real command line complains of; nothing is run."""
    return _complaint(build(words), words)


@cache
def _app_of(module: str) -> typer.Typer:
    return MODULES[module]()


def _complaint(app: typer.Typer, words: Sequence[str]) -> str | None:
    command = _silent(app)
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            command(list(words), prog_name="it")
        except SystemExit as end:
            if end.code:
                return " ".join(said.getvalue().split()) or f"exit code {end.code}"
    return None


@cache  # to make a command takes longer than to read many lines
def _silent(app: typer.Typer) -> Any:  # noqa: ANN401 - typer's own, which has no public name
    """Return the command of an app, which reads its arguments and runs nothing."""
    command = typer.main.get_command(app)
    _silence(command)
    return command


def _silence(command: Any) -> None:  # noqa: ANN401 - likewise
    command.callback = None
    for below in getattr(command, "commands", {}).values():
        _silence(below)


def _problem_with_make(words: Sequence[str]) -> str | None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    missing = {word for word in words if not ASSIGNMENT.match(word)} - targets
    return f"the Makefile has no target {', '.join(sorted(missing))}" if missing else None
