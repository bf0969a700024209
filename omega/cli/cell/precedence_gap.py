"""`omega cell precedence-gap`: by how much a job must be more urgent to evict another's tasks.

Goal     Show and set the one number of the cell that decides who yields to whom.
Promise  Every commit after it is judged by it, whatever a scheduler sends. Nothing is evicted by
         setting it.
Source   docs/decisions/0036-preemption.md.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, cell_store
from omega.model.jobs import PRECEDENCE_GAP_MAX, checked_gap
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo


def precedence_gap(
    gap: Annotated[
        int | None,
        typer.Argument(
            metavar="[N]",
            min=1,
            max=PRECEDENCE_GAP_MAX,
            help="The gap from now on; without it, the present one is shown.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show or set by how much a job's precedence must be higher to evict another's tasks.

    With 10, the usual gap, a job of precedence 10 may evict tasks of precedence 0 and not of 1. A
    job that says [bold]preemptible: false[/] is evicted for no job of another scheduler.
    """
    output = Output(json_to)
    with cell_store(data_dir, demo=demo) as store:
        before = store.precedence_gap()
        if gap is not None:
            store.set_precedence_gap(checked_gap(gap))
    now = before if gap is None else gap
    output.document(
        parameters={"gap": gap, "demo": demo}, rows=[], summary={"before": before, "gap": now}
    )
    was = "" if now == before else f" (it was {before:,})"
    output.console.print(
        f"A job may evict tasks whose precedence is lower by {now:,} or more{was}.",
        highlight=False,
    )
