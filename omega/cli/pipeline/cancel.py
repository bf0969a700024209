"""`omega pipeline cancel`: ends what is left of pipelines.

Goal     End pipelines that should not go on, and free the capacity of their jobs.
Promise  A stage is cancelled by cancelling its job, which skips the stages after it. Each job is
         cancelled in a transaction of its own: a call that is interrupted can be repeated.
Source   docs/decisions/0059-start-deadlines.md.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.pipeline.named import named_pipeline
from omega.errors import OmegaError
from omega.reports.wording import things
from omega.store.pipelines import PipelineStatus, StageEnd
from omega.store.protocols import SubmitterStore
from omega.terminal.consoles import Output, warn
from omega.terminal.options import DataDir


def command(
    pipelines: Annotated[
        list[int], typer.Argument(metavar="PIPELINE...", help="Numbers of pipelines.")
    ],
    data_dir: DataDir = None,
    demo: DemoOption = False,
) -> None:
    """Cancel the stages of pipelines that have not ended, and free their room.

    Their programs get their time to stop. All that can be cancelled are; the exit code is 1 if one
    cannot.
    """
    console, problems = Output().console, 0
    with cell_store(data_dir, demo=demo) as store:
        for number in dict.fromkeys(pipelines):
            try:
                ended = cancel_pipeline(store, named_pipeline(store, number))
            except OmegaError as problem:
                warn(str(problem))
                problems += 1
                continue
            done = sum(stage.end is StageEnd.SUCCEEDED for stage in ended.stages)
            said = f"{done} of {things(len(ended.stages), 'stage')} had succeeded"
            console.print(f"Pipeline {number} is cancelled; {said}.", highlight=False)
    if problems:
        raise typer.Exit(1)


def cancel_pipeline(store: SubmitterStore, pipeline: PipelineStatus) -> PipelineStatus:
    """Cancel the stages of a pipeline that have not ended; return it as it is then.

    A stage may succeed while others are cancelled, and make jobs of the stages after it. So the
    stages are read again until all have ended. In each turn at least one ends.

    Raises OmegaError if none was left to cancel.
    """
    cancelled = 0
    while pipeline.finished_ms is None:
        for stage in pipeline.stages:
            if stage.job is not None and stage.end is None:
                cancelled += store.cancel(stage.job)
        pipeline = named_pipeline(store, pipeline.id)
    if not cancelled:
        raise OmegaError(f"pipeline {pipeline.id} is over already; see: omega pipeline status")
    return pipeline
