"""A job's groups: from a choice of machines to the claims of the whole job.

Goal     Let a scheduler consist of one function that chooses machines; constraints, GPUs, several
         groups and gangs are handled here.
Promise  Whether any task of a job can be placed does not depend on the function that chooses;
         `omega.placement.diagnosis.has_room` computes it. The view is left unchanged.
Source   docs/decisions/0003-the-commit-rule.md, on gangs.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Counts, Mask
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import best_fit
from omega.placement.devices import choose_slots, free_devices
from omega.placement.feasibility import Choose, Room, room
from omega.placement.first_fit import draw, first_fit
from omega.placement.preferences import choose_preferred, scores

MARK: Final = "is_random_first_fit"
"""The attribute by which `random_first_fit` marks a function."""
_Place = TypeVar("_Place", bound=Callable[..., Claims])


def place_groups(view: View, job: LeasedJob, choose: Choose, rng: np.random.Generator) -> Claims:
    """Return claims for all of a job's tasks that find room, on machines that `choose` chooses.

    A gang gets at least `job.lacking` claims, or none. Several groups of a gang may compete for the
    same room. Then `pack`, which is the same for every scheduler, decides whether the gang is
    placed, and its claims are returned if those of `choose` are too few.
    """

    def place(group: int) -> Claims:
        return chosen_claims(view, job, group, choose, rng)

    return place_each(view, job, place, rng)


def random_first_fit(place: _Place) -> _Place:
    """Mark a scheduler's `place` whose result equals `draw_groups(view, job, rng)`.

    It may return something else if the view has signals. Simulations set no signals, so they may
    replace a marked `place` by compiled loops with the same result. A subclass that overrides
    `place` is not marked. If a setting makes `place` return something else,
    `Scheduler.places_at_random` must return False.
    """
    vars(place)[MARK] = True
    return place


def is_random_first_fit(place: Callable[..., Claims]) -> bool:
    """Return whether a scheduler's `place` is marked by `random_first_fit`."""
    return getattr(place, MARK, False)


def draw_groups(view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
    """Return claims as `place_groups` with `first_fit`, checking only drawn machines if it can."""

    def place(group: int) -> Claims:
        if job.spec.groups[group].preferences:
            return chosen_claims(view, job, group, first_fit, rng)
        at, given = draw(view, job, group, len(job.unplaced_in(group)), rng)
        return claims_for(Room(view, job, group, at, given), given, rng)

    return place_each(view, job, place, rng)


def chosen_claims(
    view: View, job: LeasedJob, group: int, choose: Choose, rng: np.random.Generator
) -> Claims:
    """Return claims for all tasks of a group that find room, on machines that `choose` chooses.

    It chooses among the machines that the group prefers most, then among the next ones.
    """
    its_room = room(view, job, group)
    wanted = len(job.unplaced_in(group))
    if its_room.total <= wanted:
        return claims_for(its_room, its_room.tasks, rng)
    given = choose_preferred(its_room, wanted, choose, rng)
    assert given.sum() == wanted, "all that are wanted, for there is room"
    assert (given <= its_room.tasks).all(), "no more than the machine takes"
    return claims_for(its_room, given, rng)


def place_each(
    view: View, job: LeasedJob, place: Callable[[int], Claims], rng: np.random.Generator
) -> Claims:
    """Return the claims of all groups, joined.

    `place` gets the number of a group. It must return claims for all of the group's unplaced tasks
    that find room on the view as it is then.
    """
    groups = waiting_groups(job)
    if job.lacking > 1 and len(groups) > 1:
        packed = pack(view, job, rng)
        if len(packed) < job.lacking:
            return Claims.none()
        chosen = _in_turn(view, job, groups, place)
        return chosen if len(chosen) >= job.lacking else packed
    claims = _in_turn(view, job, groups, place)
    return claims if len(claims) >= job.lacking else Claims.none()


def waiting_groups(job: LeasedJob) -> list[int]:
    """Return the numbers of the groups that have unplaced tasks."""
    if len(job.spec.groups) == 1:
        return [0] if len(job.unplaced) else []
    ends = np.cumsum([group.tasks for group in job.spec.groups])
    return [int(group) for group in np.unique(np.searchsorted(ends, job.unplaced, side="right"))]


def pack(view: View, job: LeasedJob, rng: np.random.Generator | None = None) -> Claims:
    """Return claims for as many of the job's unplaced tasks as best fit packs into the view.

    The groups that are hardest to place go first. If the gang then gets too few claims, the order
    is reversed, and the larger of both results is returned. The random generator only chooses among
    equal device slots and does not change how many tasks are placed.
    """

    def place(group: int) -> Claims:
        its_room = room(view, job, group)
        wanted = min(its_room.total, len(job.unplaced_in(group)))
        return claims_for(its_room, best_fit(its_room, wanted, None), rng)

    groups = waiting_groups(job)
    slack = {group: room(view, job, group).total / len(job.unplaced_in(group)) for group in groups}
    hardest_first = sorted(groups, key=slack.__getitem__)
    packed = _in_turn(view, job, hardest_first, place)
    if len(packed) >= job.lacking:
        return packed
    return max(packed, _in_turn(view, job, hardest_first[::-1], place), key=len)


def claims_for(
    room: Room,
    given: Counts,
    rng: np.random.Generator | None,
    *,
    slots: Mask | None = None,
) -> Claims:
    """Return claims that place `given` tasks of the group on each machine of the room.

    `given` (machines,) sums to at most the group's unplaced tasks. Tasks are taken in order.
    Machines are taken in order too, except that those of a higher score come first, because a quota
    that is too small for all claims grants the first ones. Ties between device slots are broken at
    random. `slots` (machines used, slots) limits the device slots to choose from.
    """
    used = given.nonzero()[0]
    if room.task_group.preferences and len(used) > 1:
        preferred_first = np.argsort(-scores(room)[used], kind="stable")
        used = used[preferred_first]
        slots = None if slots is None else slots[preferred_first]
    at, tasks = room.at[used], given[used]
    rows = np.repeat(at, tasks)
    shape, shapes = np.zeros(len(rows), dtype=np.intp), room.task_group.demand[np.newaxis]
    if room.task_group.gpus and len(rows):
        devices = free_devices(room.view.free, at)
        if slots is not None:
            devices = np.where(slots, devices, 0)
        shape, shapes = choose_slots(devices, tasks, room.task_group, rng)
    return Claims(
        task=room.job.unplaced_in(room.group)[: len(rows)],
        machine=room.view.id[rows],
        seen=room.view.sequence[rows],
        shape=shape,
        shapes=shapes,
    )


def _in_turn(
    view: View, job: LeasedJob, groups: Sequence[int], place: Callable[[int], Claims]
) -> Claims:
    """Return the claims of the groups, placed in this order, each in the room that is left."""
    if len(groups) == 1:
        return place(groups[0])
    parts = {}
    with view.tentative():
        for group in groups:
            parts[group] = place(group)
            view.assume_claims(parts[group])
    return Claims.of([parts[group] for group in sorted(groups)])
