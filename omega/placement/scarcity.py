"""Scarcity: tasks with a choice of machines leave those that others must have.

Goal     Place a task where the tasks to come lose least choice; only then ask which machine suits
         it best.
Promise  A machine's price rises with what tasks that may use it ask for, and falls with what is
         free for them. If the cheap machines do not suffice, dearer ones are added in order. As
         long as all tasks have the same constraints, nothing is computed and placement is as
         without prices. No state: a function of the view and its signals.
Source   Contention for resources, in Sadeh and Fox (Artificial Intelligence 86, 1996): the demand
         of each activity is divided evenly over all that may serve it;
         docs/decisions/0060-what-is-scarce.md.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omega.cell.demand import RESOURCES, Constraints, Demand
from omega.cell.view import View
from omega.model.arrays import Counts, Index, Mask, Score, all_true
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.resources import DEVICES
from omega.placement.feasibility import Choose, Room, meets, room
from omega.placement.first_fit import draw_from, first_fit
from omega.placement.groups import chosen_claims, claims_for, place_each
from omega.placement.scores import ScoreFunction

NEARLY: Final = 0.1
"""How far above the cheapest price of a level a price may be, as a share of it: machines of one
level are equally cheap. Without levels, a small difference in price between two hardware models
would send tasks to empty machines of the cheaper model although machines of the other are partly
used."""


@dataclass(frozen=True, eq=False)
class Eligibility:
    """Which sets of constraints machines meet; those that meet the same ones are a class."""

    meets: Mask
    """Which sets the machines of each class meet: (classes, sets)."""
    class_of: Index
    """The class of each machine."""

    @cached_property
    def is_of(self) -> Score:
        """1.0 where a machine is of a class, 0.0 elsewhere: (machines, classes)."""
        return np.eye(len(self.meets))[self.class_of]

    def of(self, at: Index) -> "Eligibility":
        """Return that of the machines at these positions, with the same classes."""
        return Eligibility(self.meets, self.class_of[at])


def eligibility(view: View, constraints: tuple[Constraints, ...]) -> Eligibility:
    """Return which of these sets of constraints the machines of a view meet."""

    def find() -> Eligibility:
        mask = np.ones((len(view), len(constraints)), dtype=np.bool_)
        for number, each in enumerate(constraints):
            for constraint in each:
                mask[:, number] &= meets(view, constraint)
        packed = np.packbits(mask, axis=1)
        _, first, class_of = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        return Eligibility(mask[first], class_of.ravel())

    return view.by_attributes(constraints, find)


def prices(view: View, demand: Demand) -> tuple[Score, Index]:
    """Return the prices of classes of machines, and for each machine the position of its price.

    If GPUs are asked for, a class has two prices: first all those of machines without GPUs, then
    all those of machines with. Prices may repeat, and some may be of no machine.

    Each set of constraints costs what its tasks ask for, as a multiple of what is free on the open
    machines that they may use, in the resource where this is highest. The price of a machine is the
    sum of the costs of all sets of constraints that it meets. GPUs count on machines with GPUs
    only.
    """
    eligible = eligibility(view, demand.constraints)
    classes = len(eligible.meets)
    has_gpus = bool(demand.amounts[:, -1].any())
    by_class = _free(view, RESOURCES if has_gpus else RESOURCES - 1) @ eligible.is_of
    costs = demand.amounts[:, : len(by_class)] / np.maximum(eligible.meets.T @ by_class.T, 1)
    if not has_gpus:
        return eligible.meets @ costs.max(axis=1), eligible.class_of
    without_gpus = eligible.meets @ costs[:, : DEVICES.start].max(axis=1)
    with_gpus = eligible.meets @ costs.max(axis=1)
    is_with = view.capacity.T[DEVICES].any(axis=0)
    return np.concatenate([without_gpus, with_gpus]), eligible.class_of + is_with * classes


def _free(view: View, resources: int) -> Score:
    """Return what is free on open machines: (resources, machines).

    These are the first `resources` of CPU, memory, disk, and the GPUs of a machine together.
    """
    free = np.empty((resources, len(view)))
    free[: DEVICES.start] = view.free.T[: DEVICES.start]
    if resources > DEVICES.start:
        free[DEVICES.start] = view.free.T[DEVICES].sum(axis=0)
    if not all_true(view.open):
        free[:, ~view.open] = 0
    return free


def ranks(room: Room, demand: Demand) -> Counts:
    """Return how dear each machine of a room is: 0 for the cheapest, 1 for the next, ..."""
    price, which = prices(room.view, demand)
    if len(room.at) < len(which):
        which = which[room.at]
    present = np.flatnonzero(np.bincount(which, minlength=len(price)))
    return np.asarray(_ranked(price, present)[which])


def _ranked(price: Score, present: Index) -> Counts:
    """Return the rank of each of the prices at these positions; other entries are 0."""
    rank = np.zeros(len(price), dtype=np.int64)
    level, limit = -1, -1.0
    for one in present[np.argsort(price[present], kind="stable")].tolist():
        if price[one] > limit:
            level, limit = level + 1, price[one] * (1 + NEARLY)
        rank[one] = level
    return rank


def cheap_part(room: Room, wanted: int, demand: Demand) -> Room:
    """Return the cheapest machines of a room that together take the wanted tasks, and their equals.

    `wanted` is at most the room's total.
    """
    if not demand.tells_apart or not len(room.at):
        return room
    rank = ranks(room, demand)
    dearest = _dearest(room, rank, wanted)
    return room if dearest == rank.max() else _those(room, rank <= dearest)


def cheap_first(choose: Choose) -> Choose:
    """Return a function that fills cheap machines, and lets `choose` choose among equals.

    Levels of price are filled completely, from the cheapest on. At the last level, where not all
    machines are needed, `choose` decides.
    """

    def chosen(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
        demand = room.view.signals.demand
        if not demand.tells_apart:
            return choose(room, wanted, rng)
        rank = ranks(room, demand)
        dearest = _dearest(room, rank, wanted)
        given = np.where(rank < dearest, room.tasks, 0)
        left, equals = wanted - int(given.sum()), rank == dearest
        given[equals] = _given_of(_those(room, equals), left, choose, rng)
        return given

    return chosen


def cheap_if_as_few(choose: Choose) -> Choose:
    """Return a function for a `choose` that takes as few machines as it can.

    It lets `choose` choose among the cheap machines only, unless that takes more machines than
    choosing among all.
    """

    def chosen(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
        given = choose(room, wanted, rng)
        part = cheap_part(room, wanted, room.view.signals.demand)
        if part is room:
            return given
        cheap = np.zeros_like(room.tasks)
        cheap[np.searchsorted(room.at, part.at)] = _given_of(part, wanted, choose, rng)
        return cheap if np.count_nonzero(cheap) <= np.count_nonzero(given) else given

    return chosen


def dear_last(prefer: ScoreFunction) -> ScoreFunction:
    """Return `prefer`, but with every dearer machine scored below all cheaper ones."""

    def scored(room: Room) -> Score:
        score, demand = prefer(room), room.view.signals.demand
        if not demand.tells_apart or not len(score):
            return score
        return score - ranks(room, demand) * (np.ptp(score) + 1.0)

    return scored


_FIRST_FIT: Final = cheap_first(first_fit)


def draw_cheap_groups(view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
    """Return claims by randomised first fit, as `groups.draw_groups`, on cheap machines first.

    If it can, it checks only machines that are drawn among the cheapest.
    """

    def place(group: int) -> Claims:
        wanted = len(job.unplaced_in(group))
        if job.spec.groups[group].preferences:
            return chosen_claims(view, job, group, _FIRST_FIT, rng)
        pool = _cheapest(view, job.spec.groups[group])
        drawn = draw_from(pool, view, job, group, wanted, rng)
        if drawn is not None:
            at, given = drawn
            return claims_for(Room(view, job, group, at, given), given, rng)
        its_room = room(view, job, group)
        if its_room.total <= wanted:
            return claims_for(its_room, its_room.tasks, rng)
        return claims_for(its_room, _FIRST_FIT(its_room, wanted, rng), rng)

    return place_each(view, job, place, rng)


def _cheapest(view: View, group: TaskGroup) -> Index:
    """Return the rows of the cheapest machines that a group may use, whether they have room or not.

    Empty for a group whose set of constraints is not in the demand, which leaves out sets with
    which little is asked for.
    """
    demand, constraints = view.signals.demand, frozenset(group.constraints)
    if constraints not in demand.constraints:
        return np.zeros(0, dtype=np.intp)
    price, which = prices(view, demand)
    meets_it = eligibility(view, demand.constraints).meets[:, demand.constraints.index(constraints)]
    there = np.bincount(which[view.open], minlength=len(price)) > 0
    usable = there & np.tile(meets_it, len(price) // len(meets_it))
    if group.gpus and len(price) > len(meets_it):
        usable[: len(meets_it)] = False
    is_cheap = usable & (_ranked(price, np.flatnonzero(usable)) == 0)
    return np.asarray(is_cheap[which].nonzero()[0])


def _dearest(room: Room, rank: Counts, wanted: int) -> int:
    """Return the lowest rank up to which machines take the wanted tasks."""
    return int(np.searchsorted(np.cumsum(np.bincount(rank, weights=room.tasks)), wanted))


def _those(room: Room, which: Mask) -> Room:
    return Room(room.view, room.job, room.group, room.at[which], room.tasks[which])


def _given_of(room: Room, wanted: int, choose: Choose, rng: np.random.Generator) -> Counts:
    """Return how many of the wanted tasks each machine of a room gets.

    If they fill the room, each machine gets as many as it takes. Otherwise `choose` decides: it may
    assume that there is more room than it needs.
    """
    return room.tasks if room.total == wanted else choose(room, wanted, rng)
