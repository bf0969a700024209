"""Runs a command line, and turns an error into one sentence and an exit code.

Goal     Let every command line of this project end alike.
Promise  Exit codes: 0 done; 1 what was asked for failed, or an invariant is broken; 2 bad usage or
         bad input; 130 interrupted. An expected error is one sentence, never a traceback.
Source   docs/decisions/0009-errors-and-retries.md.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import typer

from omega.errors import BadInput, InvariantBroken, OmegaError, SettingsError, UnknownScheduler
from omega.reports.printable import SENTENCE_MAX, printable
from omega.terminal.consoles import warnings
from omega.terminal.terminal import escape_standard_streams

DEBUG: Final = "OMEGA_DEBUG"
NO: Final = frozenset({"", "0", "false", "no", "off"})
"""Values of an environment variable that mean no."""
DONE, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
_command: Final = lru_cache(maxsize=32)(typer.main.get_command)
"""What typer makes of an app: to make it takes longer than most command lines take to be read."""
INVALID: Final = re.compile(r"Invalid value(?: for (?P<where>.+?))?: (?P<about>.*)", re.DOTALL)
"""What typer says of a value; what it is for is in quotation marks."""
BAD_USAGE_ERRORS: Final = typer.BadParameter.__bases__
"""The errors that typer raises for arguments that it cannot read."""


def run_command_line(
    name: str, said: Sequence[str], make: Callable[[], typer.Typer], *, program: str | None = None
) -> None:
    """Create a command line, run it, and exit with its code.

    Error messages begin with `name`; `program` is what its user types, if that differs.
    """
    escape_standard_streams()
    try:
        code = _run(name, make(), said, program or name)
        if code == INTERRUPTED:
            _print_error(name, "interrupted")
        sys.exit(code)
    except OmegaError as error:
        if _debugs(said):
            raise
        story = error.story if isinstance(error, InvariantBroken) else ()
        what = error.what if isinstance(error, InvariantBroken) else str(error)
        _print_error(name, what, *story)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:  # while the verb was being imported
        _print_error(name, "interrupted")
        sys.exit(INTERRUPTED)
    except typer.Abort:  # a prompt found no input
        _print_error(name, "aborted")
        sys.exit(FAILED)
    except OSError as error:  # a folder that cannot be made, a disk that is full
        if _debugs(said) or error.strerror is None:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        _print_error(name, f"{where}{error.strerror}")
        sys.exit(FAILED)


def _run(name: str, app: typer.Typer, said: Sequence[str], program: str) -> int:
    """Run the command line, and return its exit code."""
    try:
        code = _command(app)(said, prog_name=program, standalone_mode=False)
    except Exception as error:
        if not isinstance(error, BAD_USAGE_ERRORS):
            raise
        return _print_usage_error(name, error)
    return code if isinstance(code, int) else DONE


def _debugs(said: Sequence[str]) -> bool:
    return "--debug" in said or os.environ.get(DEBUG, "").strip().lower() not in NO


def _print_error(name: str, sentence: str, *story: str) -> None:
    told = [printable(each, SENTENCE_MAX) for each in (sentence, *story)]
    for line in (f"{name}: {told[0]}", *(f"  {each}" for each in told[1:])):
        warnings().print(line, highlight=False, soft_wrap=True)


def _print_usage_error(name: str, error: Any) -> int:  # noqa: ANN401 - typer names no class
    """Print typer's message as one sentence; return the exit code."""
    context = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":  # typer has already printed the help
        return int(error.exit_code)
    told = printable(usage_sentence(error.format_message()), SENTENCE_MAX)
    ask = "" if context is None else f"; see {context.command_path} {context.help_option_names[0]}"
    _print_error(name, f"{told}{ask}")
    return int(error.exit_code)


def usage_sentence(message: str) -> str:
    """Return typer's message in the form of our own: the option first, then what it should be."""
    value = INVALID.fullmatch(message)
    if value is None:
        return f"{message[:1].lower()}{message[1:]}".removesuffix(".")
    about = value["about"].removeprefix("Value error, ").removesuffix(".")
    about = about.replace("Input should", "it should", 1)
    where = re.sub(r"['\[\]]", "", value["where"] or "")
    return f"field {where}: {about}" if where else about


def exit_code(error: OmegaError) -> int:
    """Return BAD_USAGE for errors that the operator can correct, FAILED for all others."""
    match error:
        case BadInput() | SettingsError() | UnknownScheduler():
            return BAD_USAGE
        case InvariantBroken() | OmegaError():
            return FAILED
