"""`omega`: finds the verb, runs it, and turns what goes wrong into one sentence and an exit code.

Goal     Start fast: only the verb that was asked for is imported.
Promise  Exit codes: 0 done; 1 what was asked for failed, or an invariant is broken; 2 bad usage or
         bad input; 130 interrupted. An expected error is one sentence, never a traceback.
Source   docs/decisions/0009-errors-and-retries.md.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from rich.panel import Panel
from rich.text import Text

from omega import __version__
from omega.cli.consoles import warnings
from omega.cli.printable import SENTENCE_MAX, printable
from omega.cli.terminal import PrintableConsole, print_what_can_be
from omega.errors import BadInput, InvariantBroken, OmegaError, SettingsError, UnknownScheduler

VERBS: Final = {
    "demo": "See several schedulers race for the machines of one cell.",
    "db": "Make, migrate, check, examine and prune the database.",
    "cell": "Load machines, show them, and take them in and out.",
    "submit": "Submit the jobs of a YAML file.",
    "jobs": "List jobs, newest first.",
    "job": "Show one job: where its tasks run, or why they do not.",
    "cancel": "End a job and free its room.",
    "quota": "Limit what tenants and kinds of schedulers hold, and see what is left.",
    "scheduler": "Run a scheduler, or list those that can be run.",
    "nodes": "Run the cell's machines, as far as schedulers can tell.",
    "sim": "Compare architectures in virtual time, before one is deployed.",
    "status": "Show the cell, the queue and the processes.",
}
"""The verbs in the order of the help; each one's module has its name."""

DEBUG: Final = "OMEGA_DEBUG"
NO: Final = frozenset({"", "0", "false", "no", "off"})
"""What an environment says that does not want something."""
DONE, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
BAD_USAGE_ERRORS: Final = typer.BadParameter.__bases__
"""What typer raises for what it cannot read."""

GUIDE: Final = """Schedule work on the machines of one cell: any number of schedulers, one Postgres.

Start with [bold]omega demo[/]. For a cell of your own:

  omega db init
  omega cell load synthetic:1000
  omega scheduler run batch &
  omega submit job.yaml --wait
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    said = list(sys.argv[1:] if arguments is None else arguments)
    run_command_line("omega", said, lambda: build(said))


def run_command_line(
    name: str, said: Sequence[str], make: Callable[[], typer.Typer], *, program: str | None = None
) -> None:
    """Make a command line and run it, and end as all of ours do, whatever goes wrong.

    Complaints begin with its name; `program` is what its user types, if that is something else.
    """
    print_what_can_be()
    try:
        code = _run(make(), said, program or name)
        if code == INTERRUPTED:
            _complain(name, "interrupted")
        sys.exit(code)
    except OmegaError as error:
        if _debugs(said):
            raise
        story = error.story if isinstance(error, InvariantBroken) else ()
        what = error.what if isinstance(error, InvariantBroken) else str(error)
        _complain(name, what, *story)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:  # while the verb was being loaded
        _complain(name, "interrupted")
        sys.exit(INTERRUPTED)
    except typer.Abort:  # there was nothing to read
        _complain(name, "aborted")
        sys.exit(FAILED)
    except OSError as error:  # a folder that cannot be made, a disk that is full
        if _debugs(said) or error.strerror is None:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        _complain(name, f"{where}{error.strerror}")
        sys.exit(FAILED)


def _run(app: typer.Typer, said: Sequence[str], program: str) -> int:
    """Run it, and return its exit code."""
    try:
        code = app(said, prog_name=program, standalone_mode=False)
    except Exception as error:
        if not isinstance(error, BAD_USAGE_ERRORS):
            raise
        return _complain_of_usage(error)
    return code if isinstance(code, int) else DONE


def _debugs(said: Sequence[str]) -> bool:
    return "--debug" in said or os.environ.get(DEBUG, "").strip().lower() not in NO


def _complain(name: str, sentence: str, *story: str) -> None:
    told = [printable(each, SENTENCE_MAX) for each in (sentence, *story)]
    for line in (f"{name}: {told[0]}", *(f"  {each}" for each in told[1:])):
        warnings().print(line, highlight=False, soft_wrap=True)


def _complain_of_usage(error: Any) -> int:  # noqa: ANN401 - typer hands out no name of its class
    """Say what typer would, with what was typed made printable; return the exit code."""
    console, context = warnings(), error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":  # typer has already printed the help
        return int(error.exit_code)
    if context is not None:
        for line in context.get_usage().splitlines():
            console.print(Text(line, "yellow"))
        ask = f"'{context.command_path} {context.help_option_names[0]}'"
        console.print(Text.assemble("Try ", (ask, "blue"), " for help.", style="dim"))
    sentence = Text(printable(error.format_message(), SENTENCE_MAX))
    console.print(Panel(sentence, title=Text("Error"), title_align="left", border_style="red"))
    return int(error.exit_code)


def exit_code(error: OmegaError) -> int:
    """Tell what the operator can mend from what failed."""
    match error:
        case BadInput() | SettingsError() | UnknownScheduler():
            return BAD_USAGE
        case InvariantBroken() | OmegaError():
            return FAILED


def build(said: Sequence[str]) -> typer.Typer:
    """Return the command line with all its verbs, of which those named in `said` can be run."""
    app = typer.Typer(
        help=GUIDE,
        rich_markup_mode="rich",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    for verb, sentence in VERBS.items():
        if verb in said or completing:
            _add(app, verb)
        else:
            app.command(verb, help=sentence)(_not_asked_for)
    return app


def _add(app: typer.Typer, verb: str) -> None:
    module = import_module(f"omega.cli.{verb}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=verb, help=VERBS[verb])
    else:
        app.command(verb)(module.command)


def _not_asked_for() -> None:
    raise AssertionError("a verb that is run was named, and then it is the real one")


def _print_version(asked: bool) -> None:
    if asked:
        PrintableConsole().print(f"omega {__version__}", highlight=False)
        raise typer.Exit


def _before(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error (also: OMEGA_DEBUG=1)."),
    ] = False,
) -> None:
    assert not version
    del debug  # read from the command line itself, for errors come out past typer
