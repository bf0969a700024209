"""Best fit: the machines that a score likes best, filled one after the other; and spread.

Goal     Serve groups that care where they run, at the price of looking at every machine.
Promise  Equal to placing task by task, each where the score is best at that moment, for scores
         that rise as a machine fills. Spread keeps the tasks per failure domain as even as the
         room allows, tasks that run already included.
Source   Spread and bin packing as in Nomad and Kubernetes.
"""

import numpy as np

from omega.model.arrays import Codes, Counts, Index
from omega.model.resources import DEVICES_MAX, GPU_SLICES
from omega.placement.devices import free_devices, gpus_left
from omega.placement.feasibility import Room
from omega.placement.scores import Preference, best_first, left_fullest


def best_fit(
    room: Room,
    wanted: int,
    rng: np.random.Generator | None,
    *,
    prefer: Preference = left_fullest,
) -> Counts:
    """Return how many tasks each machine gets when the best is filled first, and so on."""
    score = prefer(room)
    likely = np.arange(len(score))
    if wanted < len(score):  # each takes a task at least: so many of the best are enough
        likely = np.flatnonzero(score >= np.partition(score, -wanted)[-wanted])
    return fill(likely[best_first(score[likely], rng)], room.tasks, wanted)


def fill(order: Index, room: Counts, wanted: int) -> Counts:
    """Give the machines, in this order, as many tasks as they take until `wanted` are given."""
    ordered = room[order]
    before = np.cumsum(ordered) - ordered
    given = np.zeros_like(room)
    given[order] = np.clip(wanted - before, 0, ordered)
    return given


def spread(
    room: Room,
    wanted: int,
    rng: np.random.Generator,
    *,
    prefer: Preference = left_fullest,
) -> Counts:
    """Return how many tasks each machine gets when the group's failure domains are balanced.

    Machines that lack the attribute are a domain of their own. Within a domain the best machine
    is filled first.
    """
    domain, running = _domains(room)
    by_domain = _sums(domain, room.tasks, len(running))
    share = balance(running, by_domain, wanted, rng)

    likely = np.flatnonzero(share[domain])
    order = likely[best_first(prefer(room)[likely], rng)]
    order = order[np.argsort(domain[order], kind="stable")]
    ordered, its_domain = room.tasks[order], domain[order]
    lower = np.where(share > 0, by_domain, 0)
    before = np.cumsum(ordered) - ordered - (np.cumsum(lower) - lower)[its_domain]
    given = np.zeros_like(room.tasks)
    given[order] = np.clip(share[its_domain] - before, 0, ordered)
    return given


def balance(running: Counts, room: Counts, wanted: int, rng: np.random.Generator) -> Counts:
    """Share tasks out over domains so that the lowest count is raised first; ties by chance.

    `running` counts what each domain has, `room` what it still takes; `wanted` is at most the sum
    of `room`.
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
    view, attribute = room.view, room.asked.spread_over
    column = view.catalogue.column(attribute) if attribute is not None else None
    assert column is not None, "a group has room only where its spread attribute is known"
    codes = view.codes[:, column]
    machines, tasks = room.job.machines_of(room.group)
    at = view.where(machines)
    running = _sums(codes[at[at >= 0]], tasks[at >= 0], len(view.catalogue.values[column]) + 1)
    return codes[room.at], running


def _sums(domain: Codes, tasks: Counts, domains: int) -> Counts:
    return np.bincount(domain, weights=tasks, minlength=domains).astype(np.int64)


def best_fit_slots(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine gets when each goes to the fullest slot that takes it.

    For groups that ask for a fraction of a GPU. Where a whole GPU must be broken, it is one of a
    machine with few of them, so that machines with many stay good for gangs.
    """
    slices = room.asked.gpu_slices
    devices = free_devices(room.view.free, room.at)
    whole = (devices >= GPU_SLICES).sum(axis=1)
    tie = whole + rng.random(len(whole))

    # A machine is entered by its best slot: only the `wanted` machines best in that can matter.
    likely = np.arange(len(devices))
    if wanted < len(devices):
        left = (devices - slices).view(np.uint64).min(axis=1)  # too little wraps to very much
        likely = np.argpartition(left * (DEVICES_MAX + 1) + tie, wanted - 1)[:wanted]
    devices, tie = devices[likely], tie[likely, np.newaxis]

    key = np.where(devices >= slices, devices * (DEVICES_MAX + 1) + tie, np.inf)
    order = np.argsort(key, axis=1)
    units = np.take_along_axis(gpus_left(devices, slices), order, axis=1)
    before = np.cumsum(units, axis=1) - units
    units = np.clip(room.tasks[likely, np.newaxis] - before, 0, units)  # the other kinds' limit
    best = np.argsort(np.take_along_axis(key, order, axis=1).ravel(), kind="stable")

    given = np.zeros_like(room.tasks)
    given[likely] = fill(best, units.ravel(), wanted).reshape(units.shape).sum(axis=1)
    return given
