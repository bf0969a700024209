"""`omega sim fit`: what a generator would have to be told to make work like a trace's.

Goal     Let one simulate a cell like one's own, for longer or with more load than was recorded.
Promise  Each law stands beside what was observed, with how far it is off: the exponential ones of
         the paper's simulator, too. Nothing is drawn from a law that one has not been shown.
Source   Omega (EuroSys 2013), figures 3 and 4; omega.workload.fits.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import sqrt
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from omega.cli.options import TraceOptions, read_trace_options
from omega.cli.sim.plan import HOURS_MAX
from omega.errors import BadInput
from omega.plots.fit import draw
from omega.plots.picture import refuse_undrawable
from omega.reports.wording import UNKNOWN
from omega.terminal.consoles import Output, refuse_unwritable
from omega.terminal.options import JsonTo, PlotTo, Seed, number_option
from omega.terminal.rng import rng_from_seed
from omega.terminal.terminal import PrintableConsole
from omega.workload.arrivals import Arrival
from omega.workload.fits import DURATION, LISTED, Fit, FittedWorkload, draw_list, fitted
from omega.workload.laws import PARAMETRIC, Exponential, Law
from omega.workload.traces.detect import detect
from omega.workload.traces.omega_sim import read_job_list

SHARES: Final = (0.1, 0.5, 0.9, 0.99)
"""The quantiles that are told."""
AS_SUBMITTED: Final = {"times": "replay", "pending": "leave", "returning": "leave"}
"""Options of loaders that leave what was submitted, when it was; what is said goes before."""
FAR: Final = 0.1
"""A distance from which a law is said not to fit: one in ten is on the wrong side."""
MILLION: Final = 1e6
NAMES: Final = {"gap_s": "gap, s", "tasks": "tasks", "duration_s": "duration, s"}


class Choice(StrEnum):
    """Of which law the list is drawn."""

    BEST = "best"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"
    WEIBULL = "weibull"
    EMPIRICAL = "empirical"


Hours = Annotated[
    float | None,
    number_option(
        lowest=0.001,
        highest=HOURS_MAX,
        metavar="H",
        help="Hours of it; as many as the trace has.",
    ),
]


def command(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace's folder, or a job list as .csv.")
    ],
    trace_option: TraceOptions = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE.csv", help="Write a job list drawn from the laws."),
    ] = None,
    law: Annotated[
        Choice, typer.Option(help="Of which law; best: for each quantity the nearest.")
    ] = Choice.BEST,
    hours: Hours = None,
    seed: Seed = 0,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
) -> None:
    """Fit laws to a trace's gaps, tasks a job and durations, and see how far they are off.

    [bold]omega sim fit traces/google-2011 --plot fit.png --to like-it.csv[/]
    """
    output = Output(json_to)
    if to is not None:
        refuse_unwritable(to, field="--to")
    refuse_undrawable(plot_to)
    options = read_trace_options(trace_option or [])
    arrivals = _read(trace, options, seed)
    workloads = fitted(arrivals)
    last_s = arrivals[-1].submit_s
    notes = list(_notes(workloads))
    if to is not None:
        text, left_out = _draw(workloads, law, last_s if hours is None else hours * 3_600, seed)
        to.write_text(text, encoding="utf-8")
        notes += left_out
    output.document(
        parameters={
            "trace": trace.name,
            "trace_options": options,
            "law": law.value,
            "hours": hours,
            "seed": seed,
        },
        rows=[row for one in workloads.values() for row in _rows(one)],
        summary={
            "jobs": {kind: one.jobs for kind, one in workloads.items()},
            "hours": last_s / 3_600,
            "size_and_duration": {kind: one.size_and_duration for kind, one in workloads.items()},
            "notes": notes,
        },
    )
    _show(workloads, notes, output.console)
    if plot_to is not None:
        draw(trace.name, workloads).save(plot_to)


def _read(trace: Path, options: Mapping[str, str], seed: int) -> Sequence[Arrival]:
    if not os.path.isdir(trace):  # which no name is too long for
        if options:
            raise BadInput("a job list has no options", field="--trace-option")
        return read_job_list(trace)
    loader = detect(trace)
    ours = {name: value for name, value in AS_SUBMITTED.items() if name in loader.options}
    return loader.load(trace, rng_from_seed(seed), **{**ours, **options}).arrivals


def _draw(
    workloads: Mapping[str, FittedWorkload], law: Choice, horizon_s: float, seed: int
) -> tuple[str, list[str]]:
    """Draw a job list; say which workloads it cannot hold."""
    listed = {n: one for n, one in workloads.items() if n in LISTED and DURATION in one.fits}
    if not listed:
        raise BadInput("no workload of this trace can be in a job list", field="--to")
    laws = {
        (kind, name): fit.best if law is Choice.BEST else fit.laws[law.value]
        for kind, one in listed.items()
        for name, fit in one.fits.items()
    }
    text = draw_list(listed, laws, horizon_s, rng_from_seed(seed))
    return text, [f"{kind} is not in the list" for kind in workloads if kind not in listed]


def _show(
    workloads: Mapping[str, FittedWorkload], notes: Sequence[str], console: PrintableConsole
) -> None:
    for one in workloads.values():
        console.print(_table(one))
        console.print()
    for note in notes:
        console.print(f"- {note}", highlight=False)


def _rows(workload: FittedWorkload) -> Iterator[dict[str, object]]:
    """Yield a row for each quantity as it was seen, and for each law."""
    for fit in workload.fits.values():
        shared: dict[str, object] = {"workload": workload.scheduler, "quantity": fit.quantity}
        yield {
            **shared,
            "law": None,
            "seen": len(fit.seen),
            "censored": int(fit.seen.is_censored.sum()),
            "quantiles": {str(share): fit.seen.quantile(share) for share in SHARES},
        }
        for name, law in fit.laws.items():
            yield {
                **shared,
                "law": name,
                "parameters": law.parameters,
                "distance": fit.distances[name],
                "by_sampling": fit.by_sampling,
                "is_best": name == fit.best.name,
                "quantiles": dict(zip(map(str, SHARES), fit.quantiles(law, SHARES), strict=True)),
            }


def _notes(workloads: Mapping[str, FittedWorkload]) -> Iterator[str]:
    """Say in sentences what the figures mean."""
    fits = [fit for workload in workloads.values() for fit in workload.fits.values()]
    if any(_is_off(fit, fit.best) for fit in fits):
        yield "where no law fits, --law empirical draws from what was observed"
    for kind, workload in workloads.items():
        for fit in workload.fits.values():
            off, nearest = fit.distances[Exponential.name], fit.distances[fit.best.name]
            what = f"{kind}, {NAMES[fit.quantity].partition(',')[0]}"
            if _is_off(fit, fit.best):
                yield (
                    f"{what}: no law fits; exponential is off by {off:.0%}, the nearest,"
                    f" {fit.best.name}, by {nearest:.0%}"
                )
            elif _is_off(fit, fit.laws[Exponential.name]):
                yield (
                    f"{what}: not exponential, which is off by {off:.0%}; {fit.best.name} by"
                    f" {nearest:.0%}"
                )
            if censored := int(fit.seen.is_censored.sum()):
                yield f"{what}: {censored:,} of {len(fit.seen):,} were not seen to end"
        if DURATION not in workload.fits:
            yield f"{kind}: no job was seen to end"
        if abs(workload.size_and_duration) > max(FAR, 3 / sqrt(workload.jobs)):
            yield (
                f"{kind}: tasks and duration go together (rank correlation"
                f" {workload.size_and_duration:+.2f}); what is drawn has them independent"
            )


def _is_off(fit: Fit, law: Law) -> bool:
    """Say whether a law is off, by more than the chance of few jobs would make it."""
    return fit.distances[law.name] > max(FAR, fit.by_sampling)


def _table(workload: FittedWorkload) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        title=f"{workload.scheduler}: {workload.jobs:,} jobs",
        title_justify="left",
    )
    table.add_column("quantity")
    table.add_column("law")
    for share in SHARES:
        table.add_column(f"p{share * 100:g}", justify="right")
    table.add_column("off by", justify="right")
    for fit in workload.fits.values():
        observed = [fit.seen.quantile(share) for share in SHARES]
        table.add_row(NAMES[fit.quantity], Text("trace", "bold"), *map(_figure, observed), "")
        for law in (fit.laws[one.name] for one in PARAMETRIC):
            is_best = law is fit.best
            table.add_row(
                "",
                f"{law.name} *" if is_best else law.name,
                *map(_figure, fit.quantiles(law, SHARES)),
                f"{fit.distances[law.name]:.1%}",
            )
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if value >= MILLION:
        return f"{value:.2g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
