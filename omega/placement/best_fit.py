"""Best fit: machines filled one after the other, those with the best score first; and spread.

Goal     Place groups where they run best, at the cost of scoring every machine.
Promise  For scores that rise as a machine fills, best fit equals placing task by task, each on the
         machine with the best score at that moment. Spread makes the numbers of tasks per failure
         domain as equal as the room allows, counting tasks that run already.
Source   Spread and bin packing as in Nomad and Kubernetes.
"""

import numpy as np

from omega.model.arrays import Codes, Counts, Index
from omega.model.resources import DEVICES_MAX, GPU_SLICES
from omega.placement.devices import free_devices, gpus_left
from omega.placement.feasibility import Room
from omega.placement.scores import ScoreFunction, best_first, most_allocated


def best_fit(
    room: Room,
    wanted: int,
    rng: np.random.Generator | None,
    *,
    prefer: ScoreFunction = most_allocated,
) -> Counts:
    """Return how many tasks each machine of the room gets if the best are filled first.

    `wanted` is at most the room's total. Ties are broken at random, or by row if `rng` is None.
    """
    score = prefer(room)
    likely = np.arange(len(score))
    if wanted < len(score):  # each takes at least one task, so the `wanted` best machines suffice
        likely = np.flatnonzero(score >= np.partition(score, -wanted)[-wanted])
    return fill(likely[best_first(score[likely], rng)], room.tasks, wanted)


def fill(order: Index, takes: Counts, wanted: int) -> Counts:
    """Return how many tasks each machine gets, filled in this order until `wanted` are given.

    `takes` (machines,) is how many tasks each machine takes, and `order` has positions in it.
    """
    ordered = takes[order]
    before = np.cumsum(ordered) - ordered
    given = np.zeros_like(takes)
    given[order] = np.clip(wanted - before, 0, ordered)
    return given


def spread(
    room: Room,
    wanted: int,
    rng: np.random.Generator,
    *,
    prefer: ScoreFunction = most_allocated,
) -> Counts:
    """Return how many tasks each machine of the room gets if failure domains are balanced.

    A failure domain is the machines with one value of the group's `spread_over`; those that lack
    this attribute are one more. Within a domain the best machine is filled first.
    """
    domain, running = _domains(room)
    by_domain = _sums(domain, room.tasks, len(running))
    share = balance(running, by_domain, wanted, rng)

    likely = np.flatnonzero(share[domain])
    order = likely[best_first(prefer(room)[likely], rng)]
    order = order[np.argsort(domain[order], kind="stable")]
    ordered, its_domain = room.tasks[order], domain[order]
    # `before`: the room of better machines of the same domain. The sums run over all domains, so
    # the room of domains with lower numbers is subtracted.
    lower = np.where(share > 0, by_domain, 0)
    before = np.cumsum(ordered) - ordered - (np.cumsum(lower) - lower)[its_domain]
    given = np.zeros_like(room.tasks)
    given[order] = np.clip(share[its_domain] - before, 0, ordered)
    return given


def balance(running: Counts, room: Counts, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many of the wanted tasks each domain gets if the lowest count is raised first.

    `running` (domains,) has how many tasks each domain runs, `room` (domains,) how many more it
    takes; `wanted` is at most the sum of `room`. Ties are broken at random.
    """
    assert wanted <= room.sum()
    low, high = int(running.min()), int(running.max()) + wanted
    while low < high:  # the highest level up to which all domains can be raised
        level = (low + high + 1) // 2
        if np.clip(level - running, 0, room).sum() <= wanted:
            low = level
        else:
            high = level - 1
    share = np.clip(low - running, 0, room)
    one_more = np.flatnonzero((running + share <= low) & (share < room))
    share[rng.permutation(one_more)[: wanted - share.sum()]] += 1
    return share


def _domains(room: Room) -> tuple[Codes, Counts]:
    """Return the domain of each machine, and how many tasks of the group run in each domain."""
    view, attribute = room.view, room.task_group.spread_over
    column = view.catalogue.column(attribute) if attribute is not None else None
    assert column is not None, "no machine has room if none of the cell has the spread attribute"
    codes = view.codes[:, column]
    machines, tasks = room.job.machines_of(room.group)
    at = view.where(machines)
    running = _sums(codes[at[at >= 0]], tasks[at >= 0], len(view.catalogue.values[column]) + 1)
    return codes[room.at], running


def _sums(domain: Codes, tasks: Counts, domains: int) -> Counts:
    return np.bincount(domain, weights=tasks, minlength=domains).astype(np.int64)


def best_fit_slots(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine gets if each task goes to the fullest slot that takes it.

    For groups that ask for a fraction of a GPU, in slices (thousandths). If a whole GPU must be
    divided, it is one of a machine with few whole GPUs, so that machines with many keep room for
    gangs.
    """
    slices = room.task_group.gpu_slices
    devices = free_devices(room.view.free, room.at)
    whole = (devices >= GPU_SLICES).sum(axis=1)
    tie = whole + rng.random(len(whole))  # below DEVICES_MAX + 1: decides only between equals

    # A machine is first used by its best slot, so only the `wanted` machines with the best slots
    # can get a task.
    likely = np.arange(len(devices))
    if wanted < len(devices):
        left = (devices - slices).view(np.uint64).min(axis=1)  # negative wraps to very large
        likely = np.argpartition(left * (DEVICES_MAX + 1) + tie, wanted - 1)[:wanted]
    devices, tie = devices[likely], tie[likely, np.newaxis]

    key = np.where(devices >= slices, devices * (DEVICES_MAX + 1) + tie, np.inf)
    order = np.argsort(key, axis=1)
    units = np.take_along_axis(gpus_left(devices, slices), order, axis=1)
    before = np.cumsum(units, axis=1) - units
    units = np.clip(room.tasks[likely, np.newaxis] - before, 0, units)  # limit of other kinds
    best = np.argsort(np.take_along_axis(key, order, axis=1).ravel(), kind="stable")

    given = np.zeros_like(room.tasks)
    given[likely] = fill(best, units.ravel(), wanted).reshape(units.shape).sum(axis=1)
    return given
