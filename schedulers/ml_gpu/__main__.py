"""`python -m schedulers.ml_gpu`: policies and rounds by themselves, without a cell.

Goal     Let researchers try a policy on an instance or a trace.
Promise  Exit codes and complaints as of `omega`.
Source   Gavel (OSDI 2020); docs/papers/gavel.md.
"""

import sys
from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from omega.terminal.program import run_command_line
from omega.terminal.terminal import PrintableConsole
from schedulers.ml_gpu.cli.estimate import estimate
from schedulers.ml_gpu.cli.replay import replay
from schedulers.ml_gpu.cli.solve import solve
from schedulers.ml_gpu.policies.named import POLICIES


def build() -> typer.Typer:
    """Return the command line."""
    app = typer.Typer(
        help="Divide GPUs of several types among training jobs.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in (policies, solve, replay, estimate):
        app.command()(command)
    return app


def policies() -> None:
    """List the policies."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy", no_wrap=True)
    table.add_column("what it gives")
    table.add_column("objective")
    for policy in POLICIES.values():
        table.add_row(Text(policy.name, "cyan"), policy.about, policy.measure)
    PrintableConsole().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    said = list(sys.argv[1:] if arguments is None else arguments)
    run_command_line("ml_gpu", said, build, program="python -m schedulers.ml_gpu")


if __name__ == "__main__":
    main()
