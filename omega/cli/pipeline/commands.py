"""`omega pipeline`: submits pipelines, shows how far they have come, and cancels them.

Goal     Submit stages that wait for each other, and say which of them are late.
Promise  All pipelines of a file are submitted in one submission, or none. `status` reads, and
         changes nothing.
Source   omega.workload.pipeline_spec; omega.reports.pipelines; docs/decisions/0059.
"""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader, cell_store
from omega.cli.job.screens import cut
from omega.cli.pipeline import cancel
from omega.cli.pipeline.named import named_pipeline
from omega.cli.spec_input import parsed
from omega.reports.pipelines import PipelineReport, read_reports
from omega.reports.printable import printable, short
from omega.reports.wording import UNKNOWN, duration, ranges, things
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.workload.pipeline_spec import parse_pipelines

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
app.command("cancel")(cancel.command)

MS_PER_S: Final = 1_000


@app.command()
def submit(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC.yaml|-", help="A pipeline, or a list of them; - is standard input."
        ),
    ],
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Submit the pipelines of a YAML file.

    A pipeline has a time within which it is to end, and stages, each with groups of tasks:

    [bold]{name: chat, scheduler: batch, pipeline: {within: 30s, stages: \\[...]}}[/]
    """
    output = Output(json_to)
    specs = parsed(spec, parse_pipelines)
    with cell_store(data_dir) as store:
        ids = store.submit_pipelines(specs)
    stages = sum(len(it.stages) for it in specs)
    output.document(
        parameters={"spec": str(spec)},
        rows=[{"pipeline": number, "name": it.name} for number, it in zip(ids, specs, strict=True)],
        summary={"pipelines": len(ids), "stages": stages},
    )
    output.console.print(
        f"Submitted {things(len(ids), 'pipeline')} with {things(stages, 'stage')}:"
        f" {ranges(ids)}. See: omega pipeline status {ids[0]}",
        highlight=False,
    )


@app.command()
def status(
    pipeline: Annotated[
        int | None,
        typer.Argument(metavar="PIPELINE", help="Its number; without it all, newest first."),
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show pipelines: the graph of one, how far each stage has come, and what is late."""
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        now_ms = store.now_ms()
        found = store.pipelines() if pipeline is None else [named_pipeline(store, pipeline)]
        reports = read_reports(store, found, now_ms)
    summaries = [report.summary() for report in reports]
    output.document(
        parameters={"pipeline": pipeline, "demo": demo},
        rows=summaries if pipeline is None else reports[0].rows(),
        summary={"pipelines": len(reports), "late": sum(it.late > 0 for it in reports)}
        if pipeline is None
        else summaries[0],
    )
    output.console.print(_list(reports) if pipeline is None else _one(reports[0]))


def _list(reports: list[PipelineReport]) -> RenderableType:
    if not reports:
        return "No pipeline was submitted."
    table = _table("pipeline", "name", "tenant", "state", "ended", "time left", "late")
    for report in reports:
        it = report.summary()
        table.add_row(
            str(it["pipeline"]),
            cut(it["name"]),
            cut(it["tenant"]),
            it["state"],
            f"{it['ended']} of {it['stages']}",
            _time(it["left_ms"]),
            str(it["late"] or UNKNOWN),
        )
    return table


def _one(report: PipelineReport) -> RenderableType:
    it = report.pipeline
    head = (
        f"Pipeline {it.id}, {short(it.name)} of tenant {short(it.tenant)}: {report.state}, to end"
        f" within {duration(it.within_ms / MS_PER_S)}, {_left(report.left_ms)}"
    )
    table = _table("stage", "after", "job", "state", "cost", "start in", "")
    for line in report.lines:
        stage = line.stage
        over = stage.end is not None or stage.began
        table.add_row(
            cut(stage.name),
            cut(", ".join(stage.after) or UNKNOWN),
            UNKNOWN if stage.job is None else str(stage.job),
            line.state,
            duration(line.cost_ms / MS_PER_S),
            UNKNOWN if over else _time(line.start_in_ms),
            "late" if line.is_late else printable(stage.cause),
        )
    return Group(head, table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    return table


def _time(ms: int) -> str:
    """Write a time that may be past."""
    return duration(ms / MS_PER_S) if ms >= 0 else f"-{duration(-ms / MS_PER_S)}"


def _left(ms: int) -> str:
    told = duration(abs(ms) / MS_PER_S)
    return f"{told} early" if ms >= 0 else f"{told} late"
