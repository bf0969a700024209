"""Fragmentation: how much of the free GPUs typical tasks could still use.

Goal     Place a task where future tasks lose least room: not where the fewest slices remain, but
         where slices remain in sizes that other tasks ask for, with the CPU and memory they need,
         on machines that these tasks may use.
Promise  A function of the view, of the typical tasks that are passed in, and of a random generator;
         no state. Machines that tasks with constraints must have are taken last. The generator
         chooses one of the fullest machines among those that lose nearly the least.
Source   Fragmentation gradient descent (Weng et al., USENIX ATC 2023): docs/papers/fgd.md.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omega.cell.demand import NO_DEMAND, Constraints, Demand
from omega.cell.view import View
from omega.model.arrays import Amounts, Counts, Index, Mask, Score, distinct, freeze
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES
from omega.placement.devices import free_devices
from omega.placement.feasibility import Room, room
from omega.placement.groups import claims_for, waiting_groups
from omega.placement.preferences import most_preferred
from omega.placement.scarcity import Eligibility, cheap_part, eligibility
from omega.placement.scores import best_first, most_allocated

POPULAR: Final = 0.95
"""The most popular shapes that make up this share of all tasks are typical; the paper's value."""
NEARLY: Final = 100.0
"""In slices, a tenth of a GPU. Machines whose losses differ by no more than this are ranked by best
fit. Without it tasks go to empty machines to save a slice or two:
benchmarks/findings/fragmentation.md."""
AMONG: Final = 8
"""How many machines, the fullest of those that lose nearly the least, one is chosen from at random.
All replicas of a scheduler rank machines alike and would otherwise choose the same one."""
GANGS: Final = np.arange(2, DEVICES_MAX + 1)
"""How many GPUs a task of several can ask for."""


@dataclass(frozen=True, eq=False)
class TypicalTasks:
    """Typical tasks with GPUs: their shapes, and how often each shape is asked for."""

    demand: Amounts
    """What each shape needs besides GPUs: (shapes, kinds)."""
    gpus: Counts
    slices: Counts
    """Slices of each GPU."""
    share: Score
    """The share of each shape in all tasks; the sum is 1."""
    constraints: tuple[Constraints, ...]
    """The distinct sets of constraints that tasks of these shapes have."""
    share_of: Score
    """How `share` is divided among these sets: (shapes, sets)."""
    wanted: Demand = NO_DEMAND
    """What all tasks with GPUs ask for, typical or not, by their constraints."""

    def __post_init__(self) -> None:
        assert len(self.demand) == len(self.gpus) == len(self.slices) == len(self.share) > 0
        assert self.share_of.shape == (len(self.share), len(self.constraints))
        assert (self.gpus > 0).all()
        assert ((self.slices == GPU_SLICES) | (self.gpus == 1)).all()
        freeze(self.demand, self.gpus, self.slices, self.share, self.share_of)

    @classmethod
    def of(cls, groups: Iterable[TaskGroup], *, popular: float = POPULAR) -> "TypicalTasks":
        """Return the most popular shapes of these groups; at least one group must ask for GPUs."""
        seen: Counter[tuple[int, ...]] = Counter()
        with_constraints: Counter[tuple[tuple[int, ...], Constraints]] = Counter()
        with_gpus = [one for one in groups if one.gpus]
        for one in with_gpus:
            shape = (one.gpus, one.gpu_slices, *one.demand.tolist())
            seen[shape] += one.tasks
            with_constraints[shape, frozenset(one.constraints)] += one.tasks
        assert seen, "groups without GPUs say nothing about those with"
        by_popularity = seen.most_common()
        tasks = np.array([count for _, count in by_popularity])
        kept = np.cumsum(tasks) - tasks < popular * tasks.sum()
        by_popularity = by_popularity[: int(kept.sum())]
        shapes = np.array([shape for shape, _ in by_popularity], np.int64)
        gpus, slices, demand = np.split(shapes, [1, 2], axis=1)
        sets = tuple(dict.fromkeys(constraints for _, constraints in with_constraints))
        counts = [[with_constraints[shape, each] for each in sets] for shape, _ in by_popularity]
        total = tasks[kept].sum()
        return cls(
            demand,
            gpus[:, 0],
            slices[:, 0],
            tasks[kept] / total,
            sets,
            np.array(counts) / total,
            Demand.of(with_gpus),
        )

    @cached_property
    def sizes(self) -> Counts:
        """The distinct numbers of slices that tasks of one GPU ask for, ascending."""
        return np.unique(self.slices[self.gpus == 1])

    @cached_property
    def _rank(self) -> Index:
        """For each number of free slices, from 0 to 1000, for how many of the sizes it suffices."""
        return np.searchsorted(self.sizes, np.arange(GPU_SLICES + 1), side="right")

    @cached_property
    def _counts_for(self) -> Mask:
        """Which shapes add to the popularity of slots and whole GPUs: (shapes, ranks + GANGS).

        A slot of a rank can be used by all shapes of one GPU up to its size; k whole GPUs by the
        shapes with k GPUs.
        """
        largest = np.concatenate([[0], self.sizes])
        slots = (self.gpus == 1)[:, np.newaxis] & (self.slices[:, np.newaxis] <= largest)
        several = self.gpus[:, np.newaxis] == GANGS
        return np.hstack([slots, several])

    @cached_property
    def _weights(self) -> Score:
        """What each shape adds if all of its tasks may use the machine."""
        return np.asarray(self._counts_for * self.share[:, np.newaxis])

    def popularity(self, free: Amounts, eligible: Eligibility | None) -> tuple[Score, Score]:
        """Return the share of typical tasks that could use slots, and several GPUs, of machines.

        `free` (machines, kinds) is what machines have free; `eligible` says whose constraints they
        meet, None: everybody's. The first result (machines, ranks) is for a slot of each rank, the
        second (machines, GANGS) for 2, 3, ... whole GPUs.
        """
        fits = np.ones((len(free), len(self.share)), np.bool_)
        for kind in np.flatnonzero(self.demand.any(axis=0)).tolist():
            fits &= free[:, kind, np.newaxis] >= self.demand[:, kind]
        if eligible is None:
            popular = fits @ self._weights
        else:
            popular = np.empty((len(free), self._counts_for.shape[1]))
            for number in distinct(eligible.class_of).tolist():
                mine = np.flatnonzero(eligible.class_of == number)
                share = self.share_of @ eligible.meets[number]
                popular[mine] = fits[mine] @ (self._counts_for * share[:, np.newaxis])
        ranks = len(self.sizes) + 1
        return popular[:, :ranks], popular[:, ranks:]

    def eligible(self, room: Room) -> Eligibility | None:
        """Return whose constraints the machines of a room meet; None: no shape has constraints."""
        if self.constraints == (frozenset(),):
            return None
        return eligibility(room.view, self.constraints).of(room.at)

    def alone(self, devices: Amounts, popular: Score) -> Score:
        """Return how many slices of each slot typical tasks of one GPU could use, on average.

        `devices` (machines, slots) has free slices; `popular` is the first result of `popularity`.
        """
        machine = np.arange(len(devices))[:, np.newaxis]
        return np.asarray(devices * popular[machine, self._rank[devices]])


def together(whole: Counts, popular: Score) -> Score:
    """Return how many slices of free whole GPUs typical tasks of several could use, on average.

    `whole` (machines,) has free whole GPUs; `popular` is the second result of `popularity`.
    """
    wanted = ((whole[:, np.newaxis] >= GANGS) * popular).sum(axis=1)
    return np.asarray(wanted * whole * GPU_SLICES)


def usable(free: Amounts, typical: TypicalTasks, eligible: Eligibility | None = None) -> Score:
    """Return how many free slices of each machine a typical task could use, on average.

    The other free slices are fragments. A task that does not fit on a machine can use none of its
    slices; a task that fits can use the slices of all slots that are large enough for it.
    """
    devices = np.maximum(free[:, DEVICES], 0)
    one, several = typical.popularity(free, eligible)
    whole = (devices == GPU_SLICES).sum(axis=1)
    return np.asarray(typical.alone(devices, one).sum(axis=1) + together(whole, several))


def lost(room: Room, typical: TypicalTasks) -> Score:
    """Return how many usable slices a machine loses if a slot gets the task: (machines, slots).

    It is infinite for a slot that has no room for the task. Several whole GPUs are taken together,
    so that all whole slots of a machine have the same loss.
    """
    asked, free = room.task_group, room.view.free.take(room.at, axis=0)
    assert asked.gpus, "a task without GPUs has no slot to go to"
    devices = np.maximum(free_devices(room.view.free, room.at), 0)
    eligible = typical.eligible(room)
    one, several = typical.popularity(free - asked.demand, eligible)
    wanted = typical.alone(devices, one)
    is_whole = devices == GPU_SLICES
    whole = is_whole.sum(axis=1)
    base = usable(free, typical, eligible) - wanted.sum(axis=1)
    unbroken, broken = together(whole, several), together(whole - asked.gpus, several)
    given_up = asked.gpus * (wanted - typical.alone(np.maximum(devices - asked.gpu_slices, 0), one))
    kept = np.where(is_whole, broken[:, np.newaxis], unbroken[:, np.newaxis])
    loss = base[:, np.newaxis] + given_up - kept
    return np.where(devices >= asked.gpu_slices, loss, np.inf)


def place_alone(
    view: View,
    job: LeasedJob,
    typical: TypicalTasks,
    rng: np.random.Generator,
    *,
    nearly: float = NEARLY,
    among: int = AMONG,
) -> Claims:
    """Return a claim for a job's only unplaced task, which asks for GPUs; no claims without room.

    Of the machines that its group prefers most, only the cheapest are looked at, by what the
    typical tasks ask for if some have other constraints than others, or else by what the jobs of
    late did. Candidates are slots whose loss
    exceeds the least by at most `nearly` slices. Of the `among` fullest machines that have one, one
    is chosen at random; on it the task gets the fullest candidates.
    """
    (group,) = waiting_groups(job)
    demand = typical.wanted if typical.wanted.tells_apart else view.signals.demand
    its_room = cheap_part(most_preferred(room(view, job, group)), 1, demand)
    if not its_room.total:
        return Claims.none()
    loss = lost(its_room, typical)
    near = loss <= loss.min() + nearly
    likely = np.flatnonzero(near.any(axis=1))
    fullness = most_allocated(Room(view, job, group, its_room.at[likely], its_room.tasks[likely]))
    machine = likely[rng.choice(best_first(fullness, rng)[:among])]
    given = np.zeros_like(its_room.tasks)
    given[machine] = 1
    return claims_for(its_room, given, rng, slots=near[machine])
