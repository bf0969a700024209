"""Where a cell's machines come from: a trace's folder, a list of machines, or `synthetic:N`.

Goal     Let a user name a source in one word.
Promise  An unknown source is BadInput that lists the possible ones, before anything is loaded.
Source   omega.workload.traces.detect; omega.workload.machines_file; omega.workload.demo.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from omega.errors import BadInput
from omega.workload.arrivals import Prefill, Workload
from omega.workload.demo_cell import demo_machines
from omega.workload.machines_file import MACHINES_MAX, read_machines
from omega.workload.traces.detect import detect

SYNTHETIC: Final = "synthetic:"


def read_source(
    source: str, rng: np.random.Generator, options: Mapping[str, str] | None = None
) -> Workload:
    """Read a source; lists of machines and synthetic cells have no tasks and no arrivals.

    Raises BadInput.
    """
    if source.startswith(SYNTHETIC):
        machines = demo_machines(_machines(source), rng)
        return Workload(source, machines, Prefill.none(), ())
    try:
        path = Path(source).expanduser()
    except RuntimeError:
        raise BadInput(
            f"{source} begins with a home folder that is not known", field="SOURCE"
        ) from None
    if path.is_dir():
        return read_trace(path, rng, options or {})
    if path.is_file():
        return Workload(path.stem, read_machines(path), Prefill.none(), ())
    raise BadInput(
        f"there is no {source}; name a trace's folder, a .csv or .yaml file, or {SYNTHETIC}1000",
        field="SOURCE",
    )


def read_trace(folder: Path, rng: np.random.Generator, options: Mapping[str, str]) -> Workload:
    """Read the trace in a folder."""
    return detect(folder).load(folder, rng, **options)


def _machines(source: str) -> int:
    number = source.removeprefix(SYNTHETIC)
    if not number.isdecimal() or not 1 <= int(number) <= MACHINES_MAX:
        raise BadInput(
            f"{SYNTHETIC}N takes a number of machines from 1 to {MACHINES_MAX:,}, not {number!r}",
            field="SOURCE",
        )
    return int(number)
