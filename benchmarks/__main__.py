"""`python -m benchmarks list | run | show | findings`: exit codes and complaints as of `omega`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from benchmarks import (
    alternates,
    cameo,
    choosy,
    commit,
    conflicts,
    deltas,
    drains,
    end_to_end,
    execution,
    fragmentation,
    gavel,
    gavel_policies,
    gpu_rounds,
    growth,
    idle_agents,
    orders,
    pages,
    paper,
    parsync,
    placement,
    preemption,
    rules,
    share_gap,
    side_by_side,
    sim_speed,
    swim,
    sync,
    trace_preemptions,
    turns,
)
from benchmarks.documents import read
from benchmarks.harness import present
from benchmarks.options import PlotTo
from omega.plots.picture import refuse_undrawable
from omega.terminal.program import run_command_line
from omega.terminal.terminal import PrintableConsole

BENCHMARKS: Final[Mapping[str, Callable[..., None]]] = {
    "commit": commit.command,
    "rules": rules.command,
    "sync": sync.command,
    "deltas": deltas.command,
    "drains": drains.command,
    "turns": turns.command,
    "parsync": parsync.command,
    "cameo": cameo.command,
    "placement": placement.command,
    "fragmentation": fragmentation.command,
    "conflicts": conflicts.command,
    "alternates": alternates.command,
    "preemption": preemption.command,
    "end_to_end": end_to_end.command,
    "orders": orders.command,
    "execution": execution.command,
    "idle_agents": idle_agents.command,
    "growth": growth.command,
    "sim_speed": sim_speed.command,
    "gavel": gavel.command,
    "gavel_policies": gavel_policies.command,
    "gpu_rounds": gpu_rounds.command,
    "share_gap": share_gap.command,
    "side_by_side": side_by_side.command,
    "choosy": choosy.command,
    "swim": swim.command,
    "trace_preemptions": trace_preemptions.command,
    **paper.COMMANDS,
}
"""Each benchmark is the module of its name."""


def build() -> typer.Typer:
    """Return the command line."""
    settings = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        help=__doc__,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=settings,
        add_completion=False,
    )
    run = typer.Typer(
        no_args_is_help=True, help="Run one of them; run NAME --help for its options."
    )
    for name, command in BENCHMARKS.items():
        run.command(name)(command)
    app.add_typer(run, name="run")
    app.command("list")(show_list)
    app.command("show")(show)
    app.command("findings")(pages.command)
    return app


def show_list() -> None:
    """Say which benchmarks there are, and what each measures."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, command in BENCHMARKS.items():
        table.add_row(Text(name, "cyan"), (command.__doc__ or "").splitlines()[0])
    PrintableConsole().print(table)


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="What --json wrote.")],
    plot_to: PlotTo = None,
) -> None:
    """Show the results of an earlier run again, or draw them."""
    refuse_undrawable(plot_to)
    present(*read(file), PrintableConsole(), plot_to)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    said = list(sys.argv[1:] if arguments is None else arguments)
    run_command_line("benchmarks", said, build, program="python -m benchmarks")


if __name__ == "__main__":
    main()
