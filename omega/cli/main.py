"""`omega`: finds the verb and runs it.

Goal     Start fast: only the verb that was asked for is imported.
Promise  Ends as every command line here does: omega.terminal.program.
Source   typer.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Final

import typer

from omega import __version__
from omega.terminal.program import run_command_line
from omega.terminal.terminal import PrintableConsole


@dataclass(frozen=True)
class Verb:
    """A verb: its module, relative to omega.cli, and its sentence in the help."""

    module: str
    about: str


VERBS: Final = {
    "demo": Verb("demo.command", "See several schedulers compete for the machines of one cell."),
    "up": Verb(
        "up.command",
        "Run a whole cell on this machine, until Ctrl-C.",
    ),
    "run": Verb("job.run", "Run a command in the cell; output and exit code come back here."),
    "db": Verb("db.commands", "Make, migrate, check, examine and prune the database."),
    "cell": Verb("cell.commands", "Load machines, show them, and take them in and out."),
    "plan": Verb("job.plan", "Show what a submission would do, and change nothing."),
    "submit": Verb("job.submit", "Submit the jobs of a YAML file."),
    "jobs": Verb("job.listing", "List jobs, newest first."),
    "job": Verb("job.show", "Show one job: where its tasks run, why not, and its story in time."),
    "why": Verb("job.why", "Say why a job is not placed, and what would help."),
    "logs": Verb(
        "job.logs",
        "Print what a job's tasks wrote.",
    ),
    "stop": Verb("job.cancel", "End jobs and free their room."),
    "cancel": Verb("job.cancel", "End jobs and free their room."),
    "hold": Verb("job.hold", "Keep jobs from being placed until they are released."),
    "release": Verb("job.release", "Put held jobs back into the queue."),
    "requeue": Verb("job.requeue", "Have jobs that wait tried as soon as possible."),
    "pipeline": Verb(
        "pipeline.commands", "Submit stages that wait for each other, and see what is late."
    ),
    "quota": Verb(
        "quota.commands", "Limit what tenants and kinds of schedulers hold, and see what is left."
    ),
    "tenant": Verb("tenant.commands", "Set who shares with whom, and in which proportion."),
    "fairness": Verb(
        "fairness.command",
        "Compare the shares of tenants with what is fair, and say why they differ.",
    ),
    "audit": Verb("audit.command", "See who held more of the cell than a policy allows."),
    "usage": Verb("usage.command", "See what tenants, jobs or kinds of schedulers used."),
    "scheduler": Verb("scheduler.commands", "Run a scheduler, or list those that can be run."),
    "node": Verb("node.commands", "Run a machine's tasks, or simulate the machines."),
    "sim": Verb("sim.commands", "Compare architectures in virtual time, before one is deployed."),
    "snapshot": Verb(
        "snapshot.save", "Copy the cell into a file: what it holds now, and what happened lately."
    ),
    "restore": Verb("snapshot.restore", "Make a cell of a file again, in an empty database."),
    "what-if": Verb(
        "snapshot.what_if", "Simulate what the cell has just done, as it was and otherwise."
    ),
    "replay": Verb(
        "snapshot.replay", "Judge recorded transactions again, and list verdicts that differ."
    ),
    "health": Verb("health.command", "Say whether one process of this machine is ready."),
    "web": Verb("web.command", "Serve a page that shows the cell, live, in a browser."),
    "top": Verb("top.command", "Watch schedulers, jobs and machines; sort, narrow and open them."),
    "status": Verb("status.command", "Show the cell, the queue and the processes."),
}
"""The verbs in the order of the help."""

GUIDE: Final = """Schedule work on the machines of one cell: any number of schedulers, one Postgres.

Start with [bold]omega demo[/]. For a cell of your own:

  omega db init
  omega cell load synthetic:1000
  omega scheduler run batch &
  omega submit job.yaml --wait
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    if arguments is None:
        said, make = sys.argv[1:], _build_for_good
    else:
        said, make = list(arguments), build
    run_command_line("omega", said, lambda: make(said))


def _build_for_good(said: Sequence[str]) -> typer.Typer:
    """Return the command line of a process that runs no other.

    What is imported for it stays until the process ends. It is left out of garbage collection,
    which would look at all of it many times at the start, and once more at the end.
    """
    gc.disable()
    try:
        return build(said)
    finally:
        gc.enable()
        gc.freeze()


def build(said: Sequence[str]) -> typer.Typer:
    """Return the command line with all verbs; those named in `said` are imported and can run."""
    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    return _built(
        tuple((name, _imported(name)) for name in VERBS if name in said or completing),
    )


def _imported(name: str) -> typer.Typer | Callable[..., None]:
    module = import_module(f"omega.cli.{VERBS[name].module}")
    found: typer.Typer | Callable[..., None] = getattr(module, "app", None) or module.command
    return found


@lru_cache(maxsize=32)  # a process may run many command lines
def _built(can_run: tuple[tuple[str, typer.Typer | Callable[..., None]], ...]) -> typer.Typer:
    app = typer.Typer(
        help=GUIDE,
        rich_markup_mode="rich",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    imported = dict(can_run)
    for name, verb in VERBS.items():
        runs = imported.get(name, _not_asked_for)
        if isinstance(runs, typer.Typer):
            app.add_typer(runs, name=name, help=verb.about)
        elif name in imported:
            app.command(name)(runs)
        else:
            app.command(name, help=verb.about)(runs)
    return app


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
    del debug  # omega.terminal.program reads it from the arguments, as it handles the errors
