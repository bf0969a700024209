"""The options of `omega run`, and the job that they describe.

Goal     Describe in a line of a shell what a file of jobs describes.
Promise  The values are read as those of a file, with the same limits. An error names the option.
Source   omega.workload.spec.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Final

import typer
import yaml

from omega.errors import BadInput
from omega.model.jobs import JobSpec
from omega.terminal.options import read_pairs
from omega.workload.spec import parse_specs

OPTIONS: Final = {"--command": "COMMAND", "--constraints": "--constraint", "--groups": "--cpu"}
"""Options whose name is not that of the field of a spec."""


@dataclass(frozen=True)
class RunPlan:
    """The options, as they were given."""

    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job's; the program's if not given.")
    ] = None
    scheduler: Annotated[str, typer.Option(metavar="KIND", help="Who places it.")] = "batch"
    tasks: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many; OMEGA_TASK says which.")
    ] = 1
    gang: Annotated[bool, typer.Option("--gang", help="Start all tasks together, or none.")] = False
    cpu: Annotated[str, typer.Option(metavar="CORES", help="For each task: 2, 0.5 or 500m.")] = "1"
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="For each task: 512MiB or 4GiB; 0: no limit.")
    ] = "0"
    gpus: Annotated[
        str | None, typer.Option(metavar="N", help="For each task: 1 to 8, or a share: 0.5.")
    ] = None
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Run it in a container of this image.")
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable for it; can be said again."),
    ] = None
    working_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="A folder on the machine that runs it.")
    ] = None
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop it after 30s, 10m or 2h.")
    ] = None
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Whose job it is.")] = "default"
    precedence: Annotated[int, typer.Option(metavar="N", help="Higher is served first.")] = 0
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="As in 'zone in a|b'; can be said again."),
    ] = None
    prefer: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="As --constraint, but preferred and not required."),
    ] = None
    patience: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long after its submission it waits for that."),
    ] = None

    def spec(self, words: Sequence[str]) -> JobSpec:
        """Return the job that runs these words. Raises BadInput that names the option."""
        group = {
            "tasks": self.tasks,
            "command": list(words),
            "cpu": self.cpu,
            "memory": 0 if self.memory == "0" else self.memory,
            "gpus": self.gpus,
            "image": self.image,
            "env": dict(read_pairs(self.env or [], option="--env")) or None,
            "working_dir": self.working_dir,
            "timeout": self.timeout,
            "constraints": self.constraint or None,
            "prefer": self.prefer or None,
            "patience": self.patience,
        }
        job = {
            "name": self.name or PurePosixPath(words[0]).name or "run",
            "scheduler": self.scheduler,
            "tenant": self.tenant,
            "precedence": self.precedence,
            "minimum": "all" if self.gang else 0,
            "groups": [{key: value for key, value in group.items() if value is not None}],
        }
        try:
            # As YAML and not as JSON, whose escapes for characters beyond 16 bits YAML has not.
            (spec,) = parse_specs(yaml.safe_dump(job), "")
        except BadInput as error:
            raise BadInput(error.sentence, field=_option(error.field)) from None
        return spec


def _option(field: str | None) -> str | None:
    """Return the option that stands for a field of a spec."""
    if field is None:
        return None
    place = field.removeprefix("groups[0].").partition("[")[0].partition(".")[0]
    option = f"--{place.replace('_', '-')}"
    return OPTIONS.get(option, option)
