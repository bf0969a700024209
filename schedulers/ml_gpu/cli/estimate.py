"""`python -m schedulers.ml_gpu estimate`: how far rates are off that are lent by other kinds.

Goal     Let researchers judge estimated rates on a table that is known.
Promise  One seed gives one result.
Source   Gavel (OSDI 2020), section 6; docs/papers/gavel.md.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.table import Table

from omega.errors import BadInput
from omega.model.arrays import Score
from omega.terminal.consoles import Output
from omega.terminal.options import JsonTo, Seed, number_option
from omega.terminal.progress import progress_bar
from omega.terminal.rng import rng_from_seed
from schedulers.ml_gpu.estimate_errors import KindErrors, comparable, errors_of
from schedulers.ml_gpu.throughputs import GPUS_MAX, Throughputs, read_throughputs

DRAWS_MAX: Final = 10_000
MOST: Final = 90
"""Per cent of the errors that the second figure bounds."""


def estimate(
    throughputs: Annotated[
        Path, typer.Argument(metavar="THROUGHPUTS", help="Rates of all kinds, also beside others.")
    ],
    profiled: Annotated[
        float,
        number_option(
            lowest=0, highest=1, metavar="PART", help="Of the other kinds: beside how many."
        ),
    ] = 0.5,
    gpus: Annotated[
        int, typer.Option(min=1, max=GPUS_MAX, metavar="N", help="Kinds of jobs on so many GPUs.")
    ] = 1,
    draws: Annotated[
        int, typer.Option(min=1, max=DRAWS_MAX, metavar="N", help="Profiles drawn of each kind.")
    ] = 20,
    seed: Seed = 0,
    json_to: JsonTo = None,
) -> None:
    """Take each kind of a table for unknown, and compare the rates that others lend it.

    It is profiled beside a part of the other kinds, matched to one of them, and lent its rates.
    Errors are parts of the rate that it has alone.

    [bold]python -m schedulers.ml_gpu estimate simulation_throughputs.json --profiled 0.25[/]
    """
    output = Output(json_to)
    table = _comparable(throughputs, gpus)
    rng = rng_from_seed(seed)
    with progress_bar(output.console) as progress:
        bar = progress.add_task("kinds", total=len(table.kinds))
        kinds = []
        for kind in range(len(table.kinds)):
            kinds.append(errors_of(table, kind, profiled, draws, rng))
            progress.advance(bar)
    figures = {
        "matched": _figures(one.matched for one in kinds),
        "best": _figures(one.best for one in kinds),
        "average": _figures(one.average for one in kinds),
    }
    itself = sum(one.itself for one in kinds) / (draws * len(kinds))
    output.document(
        parameters={
            "throughputs": throughputs.name,
            "profiled": profiled,
            "gpus": gpus,
            "draws": draws,
            "seed": seed,
        },
        rows=_rows(kinds),
        summary={**figures, "itself": itself},
    )
    output.console.print(
        f"{len(kinds):,} kinds, each unknown in turn and profiled {draws:,} times beside"
        f" {profiled:.0%} of the others"
    )
    output.console.print(_screen(figures))
    output.console.print(f"A kind that is itself a reference is found: {itself:.1%}")


def _comparable(path: Path, gpus: int) -> Throughputs:
    """Return the kinds of so many GPUs in a file; raise BadInput if they cannot be compared."""
    table = read_throughputs(path)
    try:
        return comparable(table, gpus)
    except BadInput as error:
        raise BadInput(error.sentence, file=str(path), field="--gpus") from None


def _figures(errors: Iterable[Score]) -> dict[str, float]:
    """Return what half of the errors, and nine tenths of them, do not exceed."""
    of_all = np.concatenate(list(errors))
    half, most = np.percentile(of_all, [50, MOST])
    return {"median": round(float(half), 6), "nine_tenths": round(float(most), 6)}


def _rows(kinds: Sequence[KindErrors]) -> list[dict[str, object]]:
    return [
        {
            "model": one.kind[0],
            "gpus": one.kind[1],
            "matched": _figures([one.matched]),
            "best": {"model": one.best_kind[0], **_figures([one.best])},
            "average": _figures([one.average]),
            "itself": one.itself,
        }
        for one in kinds
    ]


def _screen(figures: dict[str, dict[str, float]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("rates lent by", "half are within", "nine tenths within"):
        table.add_column(title, justify="left" if title == "rates lent by" else "right")
    names = {
        "matched": "the kind that it is matched to",
        "best": "the best choice of a kind",
        "average": "the average of all kinds",
    }
    for part, name in names.items():
        its = figures[part]
        table.add_row(name, f"{its['median']:.1%}", f"{its['nine_tenths']:.1%}")
    return table
