"""Fragmentation: how much of the free GPUs the tasks that usually come could still use.

Goal     Put a task where it costs least future room: not where the leftovers are smallest, but
         where they are of sizes that others ask for, beside the CPU and memory that these need.
Promise  A function of the view, of the typical tasks that are passed in, and of chance; no state.
         Chance takes one of the fullest machines that lose nearly the least.
Source   Fragmentation gradient descent (Weng et al., USENIX ATC 2023): docs/papers/fgd.md.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Amounts, Counts, Index, Score, freeze
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES
from omega.placement.devices import free_devices
from omega.placement.feasibility import Room, room
from omega.placement.groups import claims_for, waiting_groups
from omega.placement.scores import best_first, left_fullest

POPULAR: Final = 0.95
"""The most popular shapes that make up so much of all tasks are typical; the paper's value."""
NEARLY: Final = 100.0
"""Slices: losses that differ by no more, a tenth of a GPU, are told apart by best fit. Without it
machines that are empty are broken into for a slice or two: benchmarks/findings/fragmentation.md."""
AMONG: Final = 8
"""Machines of which chance takes one, the fullest of those that lose nearly the least: all replicas
of a scheduler rank machines alike, and would else want the same one."""
GANGS: Final = np.arange(2, DEVICES_MAX + 1)
"""How many GPUs a task of several can ask for."""


@dataclass(frozen=True, eq=False)
class Typical:
    """Tasks with GPUs as they usually come: their shapes, and how often each is asked for."""

    demand: Amounts
    """What each needs besides GPUs: (shapes, kinds)."""
    gpus: Counts
    slices: Counts
    """Of each GPU."""
    share: Score
    """Of all tasks; sums up to 1."""

    def __post_init__(self) -> None:
        assert len(self.demand) == len(self.gpus) == len(self.slices) == len(self.share) > 0
        assert (self.gpus > 0).all()
        assert ((self.slices == GPU_SLICES) | (self.gpus == 1)).all()
        freeze(self.demand, self.gpus, self.slices, self.share)

    @classmethod
    def of(cls, groups: Iterable[TaskGroup], *, popular: float = POPULAR) -> "Typical":
        """Return the most popular shapes of these groups, some of which must ask for GPUs."""
        seen: Counter[tuple[int, ...]] = Counter()
        for one in groups:
            if one.gpus:
                seen[one.gpus, one.gpu_slices, *one.demand.tolist()] += one.tasks
        assert seen, "groups without GPUs say nothing about those with"
        by_popularity = seen.most_common()
        tasks = np.array([count for _, count in by_popularity])
        kept = np.cumsum(tasks) - tasks < popular * tasks.sum()
        shapes = np.array([shape for shape, _ in by_popularity], np.int64)[kept]
        gpus, slices, demand = np.split(shapes, [1, 2], axis=1)
        return cls(demand, gpus[:, 0], slices[:, 0], tasks[kept] / tasks[kept].sum())

    @cached_property
    def sizes(self) -> Counts:
        """The distinct numbers of slices that tasks of one GPU ask for, ascending."""
        return np.unique(self.slices[self.gpus == 1])

    @cached_property
    def _rank(self) -> Index:
        """For each number of free slices, how many of the sizes it suffices for."""
        return np.searchsorted(self.sizes, np.arange(GPU_SLICES + 1), side="right")

    @cached_property
    def _weights(self) -> Score:
        """What each shape adds to how popular things are: (shapes, ranks and gangs).

        A slot of a rank is wanted by all shapes of one GPU up to its size, a number of whole GPUs
        by the shapes of so many.
        """
        largest = np.concatenate([[0], self.sizes])
        slots = (self.gpus == 1)[:, np.newaxis] & (self.slices[:, np.newaxis] <= largest)
        several = self.gpus[:, np.newaxis] == GANGS
        return np.asarray(np.hstack([slots, several]) * self.share[:, np.newaxis])

    def popularity(self, free: Amounts) -> tuple[Score, Score]:
        """Return how popular a slot of each rank is on machines with so much free besides GPUs.

        And how popular 2, 3, ... whole GPUs are.
        """
        fits = np.ones((len(free), len(self.share)), np.bool_)
        for kind in np.flatnonzero(self.demand.any(axis=0)).tolist():
            fits &= free[:, kind, np.newaxis] >= self.demand[:, kind]
        popular = fits @ self._weights
        ranks = len(self.sizes) + 1
        return popular[:, :ranks], popular[:, ranks:]

    def alone(self, devices: Amounts, popular: Score) -> Score:
        """Return how many slices of each slot tasks of one GPU could use, on average."""
        machine = np.arange(len(devices))[:, np.newaxis]
        return np.asarray(devices * popular[machine, self._rank[devices]])


def together(whole: Counts, popular: Score) -> Score:
    """Return how many slices of so many whole GPUs tasks of several could use, on average."""
    wanted = ((whole[:, np.newaxis] >= GANGS) * popular).sum(axis=1)
    return np.asarray(wanted * whole * GPU_SLICES)


def usable(free: Amounts, typical: Typical) -> Score:
    """Return how many free slices of each machine a typical task could use, on average.

    The others are fragments: a task that does not fit on a machine could use none of its slices,
    one that does fit those of the slots that are large enough for it.
    """
    devices = np.maximum(free[:, DEVICES], 0)
    one, several = typical.popularity(free)
    whole = (devices == GPU_SLICES).sum(axis=1)
    return np.asarray(typical.alone(devices, one).sum(axis=1) + together(whole, several))


def lost(room: Room, typical: Typical) -> Score:
    """Return the usable slices that a machine loses by a task in each slot: (machines, slots).

    Infinite for a slot that does not take the task. Several whole GPUs are taken together, so
    that all slots of a machine that are whole say the same.
    """
    asked, free = room.asked, room.view.free.take(room.at, axis=0)
    assert asked.gpus, "a task without GPUs has no slot to go to"
    devices = np.maximum(free_devices(room.view.free, room.at), 0)
    one, several = typical.popularity(free - asked.demand)
    wanted = typical.alone(devices, one)
    is_whole = devices == GPU_SLICES
    whole = is_whole.sum(axis=1)
    base = usable(free, typical) - wanted.sum(axis=1)
    unbroken, broken = together(whole, several), together(whole - asked.gpus, several)
    given_up = asked.gpus * (wanted - typical.alone(np.maximum(devices - asked.gpu_slices, 0), one))
    kept = np.where(is_whole, broken[:, np.newaxis], unbroken[:, np.newaxis])
    loss = base[:, np.newaxis] + given_up - kept
    return np.where(devices >= asked.gpu_slices, loss, np.inf)


def place_alone(
    view: View,
    job: LeasedJob,
    typical: Typical,
    rng: np.random.Generator,
    *,
    nearly: float = NEARLY,
    among: int = AMONG,
) -> Claims:
    """Return the claim of a job's only unplaced task, which asks for GPUs, or none without room.

    Of the machines whose loss is least, or nearly so, chance takes one of the fullest; of its
    slots the task gets the fullest that lose as little.
    """
    (group,) = waiting_groups(job)
    its_room = room(view, job, group)
    if not its_room.total:
        return Claims.none()
    loss = lost(its_room, typical)
    near = loss <= loss.min() + nearly
    likely = np.flatnonzero(near.any(axis=1))
    fullness = left_fullest(Room(view, job, group, its_room.at[likely], its_room.tasks[likely]))
    machine = likely[rng.choice(best_first(fullness, rng)[:among])]
    given = np.zeros_like(its_room.tasks)
    given[machine] = 1
    return claims_for(its_room, given, rng, slots=near[machine])
