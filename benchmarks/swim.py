"""What more workers would bring to the jobs of a published MapReduce trace, SWIM's of 2009.

The trace has bytes and no tasks. A map reads a block, and a reduce takes as many bytes of what was
shuffled as `REDUCE_BYTES`. All activities take equally long, so that times are counted in waves.
"""

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Smoke
from benchmarks.paper.elastic_jobs import CHOSEN
from omega.errors import BadInput
from omega.model.arrays import Counts, Score
from omega.plots.picture import Picture, series

FILES: Final = "fb2009_*.csv.gz"
COLUMNS: Final = ("map_input_bytes", "shuffle_bytes")
BLOCK_BYTES: Final = 128 * 2**20
REDUCE_BYTES: Final = 2**30
FEW: Final = 5
"""The fewest workers that users of the paper mostly choose."""
RELATIVE: Final = 4
BYTES_MAX: Final = 2**62


@dataclass(frozen=True, kw_only=True)
class Swim:
    """The parameters: the folder of the trace."""

    trace: Path | None = field(default=None, repr=False)

    def measure(self, stage: Stage) -> Findings:
        """Read all jobs, and count whom more workers would help."""
        del stage
        if self.trace is None:
            raise BadInput("name the folder of the trace swim-facebook-2009", field="--trace")
        maps, reduces = read_jobs(self.trace)
        rows = [_row(maps, reduces, wanted) for wanted in CHOSEN]
        more = float((maps > FEW).mean())
        five, eleven, *_ = rows
        finding = (
            f"Of {len(maps):,} jobs {more:.0%} have more than {FEW} maps; with {FEW} workers"
            f" {five['gains']:.0%} gain from more, with {eleven['wanted']} {eleven['gains']:.0%}"
        )
        summary = {"jobs": len(maps), "more_than_five_maps": more}
        return Findings(finding, rows, summary, {"jobs": len(maps), "maps": int(maps.sum())})

    def show(self, findings: Findings) -> Table:
        """Return a line for each number of workers that users choose."""
        names = ("wanted", "gains", "max_p80", "max_p95", "relative_p80", "relative_p95")
        table = Table(*names, box=None, pad_edge=False, header_style="bold")
        for row in findings.rows:
            table.add_row(str(row["wanted"]), *(f"{row[name]:.3g}" for name in names[1:]))
        return table

    def draw(self, findings: Findings) -> Picture:
        """Draw the share of jobs that gain by the workers that their users chose."""
        picture = Picture(findings.finding, rows=1, columns=1)
        panel = picture.panels[0, 0]
        points = [(row["wanted"], row["gains"]) for row in findings.rows]
        series(panel, 0, points, "jobs that gain from more workers")
        panel.set_xscale("log")
        panel.set_xlabel("workers wanted")
        panel.set_ylabel("share of the jobs")
        panel.set_ylim(0, 1)
        return picture


def read_jobs(folder: Path) -> tuple[Counts, Counts]:
    """Return the maps and the reduces of each job. Raises BadInput."""
    files = sorted(folder.glob(FILES))
    if not files:
        raise BadInput(f"there is no {FILES} in it", file=str(folder))
    read = [its for path in files for its in _bytes_in(path)]
    table = np.array(read, dtype=np.int64).reshape(-1, len(COLUMNS))
    if not len(table):
        raise BadInput("there is no job in it", file=str(folder))
    maps = np.maximum(1, -(-table[:, 0] // BLOCK_BYTES))
    return maps, -(-table[:, 1] // REDUCE_BYTES)


def _bytes_in(path: Path) -> list[list[int]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            return [_numbers(path, number, row) for number, row in enumerate(lines, start=2)]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        said = f"it cannot be read ({type(error).__name__})"
        raise BadInput(said, file=str(path)) from None


def _numbers(path: Path, line: int, row: Mapping[str, str | None]) -> list[int]:
    numbers = []
    for name in COLUMNS:
        text = row.get(name) or ""
        if not (text.isascii() and text.isdecimal()) or len(text) > len(str(BYTES_MAX)):
            shown = repr(text[:30])
            raise BadInput(f"{shown} is no number of bytes", file=str(path), line=line, field=name)
        if int(text) > BYTES_MAX:
            raise BadInput(f"{text} is more than 2^62", file=str(path), line=line, field=name)
        numbers.append(int(text))
    return numbers


def _row(maps: Counts, reduces: Counts, wanted: int) -> dict[str, Any]:
    """Return how many jobs would gain from more than so many workers, and how much."""
    base = _waves(maps, reduces, np.full(len(maps), wanted))
    enough = np.maximum(np.maximum(maps, reduces), wanted)
    faster = {
        "max": base / _waves(maps, reduces, enough),
        "relative": base / _waves(maps, reduces, np.minimum(enough, RELATIVE * wanted)),
    }
    return {
        "wanted": wanted,
        "gains": float((faster["max"] > 1).mean()),
        **{
            f"{policy}_p{share}": float(np.percentile(speedups, share))
            for policy, speedups in faster.items()
            for share in (80, 95)
        },
    }


def _waves(maps: Counts, reduces: Counts, workers: Counts) -> Score:
    return np.asarray(-(-maps // workers) + -(-reduces // workers), dtype=np.float64)


Trace = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of swim-facebook-2009; required.")
]


def command(
    trace: Trace = None,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """How many jobs of a published MapReduce trace would gain from more workers, by the model."""
    del smoke  # it takes a second
    conduct(Swim(trace=trace), json_to=json_to, plot_to=plot_to, data_dir=data_dir)
