"""Traces of training jobs, as Gavel's authors publish them.

Goal     Read the jobs of others' experiments.
Promise  Jobs in order of arrival, or BadInput with file, line and field.
Source   The traces of Gavel's release: ten columns, tab separated; the same as CSV with a header.
"""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Final

import numpy as np

from omega.errors import BadInput, shortened
from omega.workload.text_file import read_text
from schedulers.ml_gpu.replay import Trace
from schedulers.ml_gpu.throughputs import Kind, Throughputs

COLUMNS: Final = (
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "priority_weight",
    "SLO",
    "arrival_s",
)
"""Of a .trace file, which has no header."""
STEPS_MAX: Final = 10**12


def read_trace(path: Path, table: Throughputs) -> Trace:
    """Read a .trace file, or a .csv with a header of these names."""
    jobs = sorted(_jobs(path), key=lambda job: job[3])
    if not jobs:
        raise BadInput("it holds no jobs", file=str(path))
    kinds, steps, weight, arrival_s = zip(*jobs, strict=True)
    return Trace(
        row=table.rows(kinds),
        steps=np.array(steps, np.int64),
        weight=np.array(weight),
        arrival_s=np.array(arrival_s),
    )


def _jobs(path: Path) -> Iterator[tuple[Kind, int, float, float]]:
    file = StringIO(read_text(path), newline="")
    if path.suffix == ".csv":
        rows = csv.DictReader(file)
    else:
        rows = csv.DictReader(file, COLUMNS, delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        for row in rows:
            yield _job(row, path, rows.line_num)
    except csv.Error as error:
        raise BadInput(f"it is no table: {error}", file=str(path)) from None


def _job(row: Mapping[str, str], path: Path, line: int) -> tuple[Kind, int, float, float]:
    def number(field: str, least: float, most: float, *, whole: bool = False) -> float:
        try:
            value = float(row[field])
        except (KeyError, TypeError):
            raise BadInput("it is missing", file=str(path), line=line, field=field) from None
        except ValueError:
            value = np.nan
        if not least <= value <= most or (whole and not value.is_integer()):
            said = shortened(repr(row[field]))
            raise BadInput(
                f"{said} is not a {'whole ' if whole else ''}number from {least:g} to {most:g}",
                file=str(path),
                line=line,
                field=field,
            )
        return value

    model = row.get("job_type")
    if not model:
        raise BadInput("it is missing", file=str(path), line=line, field="job_type")
    gang = int(number("scale_factor", 1, 1_000_000, whole=True))
    steps = int(number("total_steps", 1, STEPS_MAX, whole=True))
    weight = number("priority_weight", 1e-6, 1e6)
    return (model, gang), steps, weight, number("arrival_s", 0, 1e12)
