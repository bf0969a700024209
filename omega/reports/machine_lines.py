"""Machines as lines of a list, in order: which part of each resource is used, and what is free.

Goal     Show the fullest, the emptiest or the closed machines of a cell of 100,000.
Promise  Machines are chosen and sorted as arrays; only those that are returned become values.
Source   omega.cell.view.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.cell.view import View
from omega.model.arrays import Index
from omega.model.machines import MachineState
from omega.model.resources import GPU_SLICES, Kind

RESOURCES: Final = (
    ("cpu", slice(Kind.CPU_MILLI, Kind.CPU_MILLI + 1), 1_000),
    ("memory", slice(Kind.MEMORY_MIB, Kind.MEMORY_MIB + 1), 1_024),
    ("disk", slice(Kind.DISK_MIB, Kind.DISK_MIB + 1), 1_024),
    ("gpu", slice(Kind.GPU_0, Kind.GPU_7 + 1), GPU_SLICES),
)
"""Columns: the kinds of each, and how many of their units make one core, GiB or GPU."""
FREE: Final = "free_"
ORDERS: Final = (
    "machine",
    "state",
    *(name for name, *_ in RESOURCES),
    *(f"{FREE}{name}" for name, *_ in RESOURCES),
)
"""What machines are sorted by: names in the order in which the machines were added."""


@dataclass(frozen=True)
class MachineLine:
    """One machine."""

    id: int
    name: str
    state: MachineState
    used: tuple[float | None, ...]
    """Which part of CPU, memory, disk and GPUs; None without any."""
    free: tuple[float, ...]
    """Cores, GiB, GiB of disk and GPUs."""


def machine_lines(
    view: View,
    *,
    state: MachineState | None,
    is_named: Callable[[str], bool] | None,
    order: str,
    descending: bool,
    lines_max: int,
) -> tuple[list[MachineLine], int]:
    """Return the first machines in one of ORDERS, and how many there are.

    `state` and `is_named` choose them; without a state, those that are not gone.
    """
    assert order in ORDERS
    mask = view.state != MachineState.GONE if state is None else view.state == state
    chosen = np.flatnonzero(mask)
    if is_named is not None:
        names = view.names
        kept = [at for at in chosen.tolist() if is_named(names[at])]
        chosen = np.array(kept, dtype=np.intp)
    weights = _weights(view, chosen, order, none=-1.0 if descending else np.inf)
    places = np.argsort(-weights if descending else weights, kind="stable")[:lines_max]
    return [_line(view, at) for at in chosen[places].tolist()], len(chosen)


def _weights(view: View, at: Index, order: str, *, none: float) -> NDArray[np.float64]:
    """Return what machines are sorted by; a share of `none` stands for a machine without any."""
    if order == "machine":
        return view.id[at].astype(np.float64)
    if order == "state":
        return view.state[at].astype(np.float64)
    name = order.removeprefix(FREE)
    ((kinds, unit),) = [(kinds, unit) for it, kinds, unit in RESOURCES if it == name]
    free = view.free[at, kinds].sum(axis=1)
    if order != name:
        return np.asarray(free / unit, dtype=np.float64)
    capacity = view.capacity[at, kinds].sum(axis=1)
    shares = np.full(len(at), none)
    np.divide(capacity - free, capacity, out=shares, where=capacity > 0)
    return shares


def _line(view: View, at: int) -> MachineLine:
    used: list[float | None] = []
    left: list[float] = []
    for _, kinds, unit in RESOURCES:
        whole, free = int(view.capacity[at, kinds].sum()), int(view.free[at, kinds].sum())
        used.append((whole - free) / whole if whole else None)
        left.append(free / unit)
    state = MachineState(int(view.state[at]))
    return MachineLine(int(view.id[at]), view.names[at], state, tuple(used), tuple(left))
