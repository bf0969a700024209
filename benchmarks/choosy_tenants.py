"""Tenants and machines for Choosy's experiments: of two published traces, or made up.

The traces are not part of the repository. Without their folders a stand-in of our own making is
used, whose figures say nothing about the published machines and tenants.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Counts, integers
from omega.model.jobs import Constraint, Operator
from omega.model.machines import Machines
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES, machine_capacity
from omega.workload.traces.columns import find_table, read_table
from omega.workload.traces.openb import GPU_MODEL, OPENB

Constraints = tuple[Constraint, ...]
JOBS: Final = "jobs.csv"
GPUS_MAX: Final = 1_024
"""The most GPUs that a job of the trace philly may ask for."""
MADE_UP_MODELS: Final = (("A", 8, 8), ("B", 8, 2), ("C", 4, 2))
"""Model, machines, and GPUs of a machine of the stand-in."""
MADE_UP_MIX: Final = ((), (), (), (), ("B",), ("B",), ("C",), ("B", "C"))
"""The models that the jobs of the stand-in insist on, as often as they come here."""
MADE_UP_TENANTS: Final = {"t1": (1,), "t2": (1, 2), "t3": (1, 1, 4), "t4": (1,), "t5": (2, 8)}
"""The tasks of the jobs of each tenant of the stand-in."""


@dataclass(frozen=True, eq=False)
class Site:
    """Machines, the mix of constraints of jobs, and the tenants with the sizes of their jobs."""

    name: str
    machines: Machines
    """Only those with GPUs."""
    mix: Sequence[Constraints]
    """Constraints of jobs, each as often as it comes."""
    tenants: tuple[str, ...]
    sizes: tuple[Counts, ...]
    """(jobs,) GPUs of the jobs of each tenant."""

    @property
    def gpus(self) -> Counts:
        """(machines,) how many GPUs each machine has."""
        return integers(self.machines.capacity[:, DEVICES].sum(axis=1) // GPU_SLICES)


def site(openb: Path | None, philly: Path | None, *, every: int) -> Site:
    """Return the site of the two traces, with one of `every` machines, or else the stand-in.

    Raises BadInput for a folder that holds no such trace, or if only one of the two is named.
    """
    if openb is None and philly is None:
        return _made_up()
    for folder, option in ((openb, "--openb"), (philly, "--philly")):
        if folder is None:
            raise BadInput("name the folders of both traces or of none", field=option)
    assert openb is not None
    assert philly is not None
    cell = OPENB.load(openb, np.random.default_rng(0), pods="gpuspec33")
    groups = [arrival.spec.groups[0] for arrival in cell.arrivals]
    sizes = read_sizes(philly)
    return Site(
        name="openb and philly",
        machines=_some_with_gpus(cell.machines, every),
        mix=[group.constraints for group in groups if group.gpus],
        tenants=tuple(sizes),
        sizes=tuple(sizes.values()),
    )


def read_sizes(folder: Path) -> dict[str, Counts]:
    """Return the GPUs of each job of the trace philly, by virtual cluster. Raises BadInput."""
    path = find_table(folder, (JOBS,))
    if path is None:
        raise BadInput(
            f"this folder does not hold the trace philly (looked for {JOBS}, plain or .gz)",
            file=str(folder),
        )
    table = read_table(path, ["vc", "num_gpus"])
    found: dict[str, list[int]] = defaultdict(list)
    gpus = table.integers("num_gpus", lowest=1, highest=GPUS_MAX).tolist()
    for name, number in zip(table.words("vc"), gpus, strict=True):
        found[name].append(number)
    if not found:
        raise BadInput("there is no job in it", file=str(path))
    return {name: integers(found[name]) for name in sorted(found)}


def labelled(machines: Machines, label: str, which: Sequence[bool]) -> Machines:
    """Return the machines with one more attribute, which is `yes` for some of them."""
    values = tuple("yes" if has else None for has in which)
    return Machines(machines.names, machines.capacity, {**machines.attributes, label: values})


def _some_with_gpus(machines: Machines, every: int) -> Machines:
    """Return one of `every` machines with GPUs, of each model alike."""
    models = machines.attributes[GPU_MODEL]
    with_gpus = np.flatnonzero(machines.capacity[:, DEVICES].any(axis=1)).tolist()
    chosen = sorted(sorted(with_gpus, key=lambda at: (models[at] or "", at))[::every])
    return Machines(
        tuple(machines.names[at] for at in chosen),
        machines.capacity[chosen],
        {GPU_MODEL: tuple(models[at] for at in chosen)},
    )


def _made_up() -> Site:
    models = [model for model, machines, _ in MADE_UP_MODELS for _ in range(machines)]
    gpus = [number for _, machines, number in MADE_UP_MODELS for _ in range(machines)]
    assert max(gpus) <= DEVICES_MAX
    return Site(
        name="a made-up stand-in",
        machines=Machines(
            tuple(f"machine-{number}" for number in range(len(models))),
            np.array([machine_capacity(96_000, 393_216, 0, number) for number in gpus]),
            {GPU_MODEL: tuple(models)},
        ),
        mix=[
            (Constraint(GPU_MODEL, Operator.IN, names),) if names else () for names in MADE_UP_MIX
        ],
        tenants=tuple(MADE_UP_TENANTS),
        sizes=tuple(integers(sizes) for sizes in MADE_UP_TENANTS.values()),
    )
