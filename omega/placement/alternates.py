"""Alternates: other machines on which claims are tried if their own refuses them.

Goal     Let a commit place a task elsewhere at once that another scheduler has taken the room of.
Promise  An alternate is open, meets the group's constraints, and has room on the view for one more
         task when all claims of this and of earlier jobs are granted. The group claims nothing on
         it. If the group is spread, it is in the failure domain of the claim's own machine; if the
         group wants different machines, no two claims name the same one. Machines that the group
         prefers are chosen first, as for its claims. Claims stay as they are. Groups with GPUs get
         none: which slots are free there depends on who else lands there.
Source   docs/decisions/0015-evictions-alternates-machines.md, 0040-alternates.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Ids, Index, Mask, distinct
from omega.model.claims import Alternates, Claims
from omega.model.jobs import LeasedJob
from omega.placement.feasibility import Choose, Room, room, room_on
from omega.placement.first_fit import first_fit
from omega.placement.preferences import choose_preferred

ALTERNATES_MAX: Final = 8
"""Most alternates of a claim that a setting may ask for: each is a machine that a commit locks."""
DRAWN: Final = 3
"""Machines drawn for each alternate wanted, where not all machines are looked at ..."""
DRAWN_BESIDES: Final = 8
"""... and so many more."""

_FindRoom = Callable[[View, LeasedJob, int, Ids, int], Room]
"""Returns machines with room for a group, given by its number, without the machines of its claims.
Together they have room for the number of tasks given last, if the cell has. The job is as if its
claims were granted."""


def with_alternates(
    view: View,
    job: LeasedJob,
    claims: Claims,
    choose: Choose,
    number: int,
    rng: np.random.Generator,
) -> Claims:
    """Return the claims with up to `number` alternates each, on machines that `choose` chooses.

    The first alternates of all claims are those that `choose` would place as many more tasks on;
    the second ones, those that it would choose if these machines were full; and so on.
    """
    return _with(view, job, claims, _Search(_all_room, choose, number, rng))


def with_random_alternates(
    view: View, job: LeasedJob, claims: Claims, number: int, rng: np.random.Generator
) -> Claims:
    """Return the claims with up to `number` alternates each, on random machines that have room.

    While most machines have room, only machines that are drawn are checked; for a group with
    preferences all are.
    """

    def drawn_room(view: View, job: LeasedJob, group: int, claimed: Ids, wanted: int) -> Room:
        if job.spec.groups[group].preferences:
            return _all_room(view, job, group, claimed, wanted)
        size = min(len(view), DRAWN * wanted + DRAWN_BESIDES)
        at = distinct(rng.integers(len(view), size=size))
        drawn = _without(Room(view, job, group, at, room_on(view, job, group, at)), claimed)
        return drawn if drawn.total >= wanted else _all_room(view, job, group, claimed, wanted)

    return _with(view, job, claims, _Search(drawn_room, first_fit, number, rng))


def _all_room(view: View, job: LeasedJob, group: int, claimed: Ids, wanted: int) -> Room:
    del wanted
    return _without(room(view, job, group), claimed)


def _without(its: Room, claimed: Ids) -> Room:
    """Return the machines that take a task and are not among those claimed."""
    return _part(its, (its.tasks > 0) & ~np.isin(its.view.id[its.at], claimed))


def _part(its: Room, which: Mask) -> Room:
    return Room(its.view, its.job, its.group, its.at[which], its.tasks[which])


class _Search:
    """How alternates are found."""

    def __init__(
        self, find: _FindRoom, choose: Choose, number: int, rng: np.random.Generator
    ) -> None:
        self.find = find
        self.number = number
        self._choose = choose
        self._rng = rng

    def rows_for(self, its: Room, claims: int) -> Iterator[tuple[Index, Index]]:
        """Yield alternates for so many claims: the position of each claim, and a row of the view.

        A claim may get the same row twice.
        """
        slots = self._slots(its, claims)
        if not len(slots):
            return
        if its.task_group.different_machines:
            # Any of the claims may land on its alternate, so none is named by two of them.
            for first in range(0, len(slots), claims):
                rows = slots[first : first + claims]
                yield np.arange(len(rows)), rows
            return
        stride = max(1, min(claims, len(slots) // self.number))
        for nth in range(self.number):
            claim = np.arange(claims)
            yield claim, slots[(claim + nth * stride) % len(slots)]

    def _slots(self, its: Room, claims: int) -> Index:
        """Return a row for each of `number` x `claims` more tasks, or for as many as there is room.

        The rows of the first alternates come first. No row is named more than `claims` times, and
        those times adjoin.
        """
        found = [its.at[:0]]
        left = Room(its.view, its.job, its.group, its.at, np.minimum(its.tasks, claims))
        for _ in range(self.number):
            if not len(left.at):
                break
            given = left.tasks
            if left.total > claims:
                given = choose_preferred(left, claims, self._choose, self._rng)
            found.append(np.repeat(left.at, given))
            left = _part(left, given == 0)
        return np.concatenate(found)


def _with(view: View, job: LeasedJob, claims: Claims, search: _Search) -> Claims:
    if not search.number or not len(claims):
        return claims
    assert not len(claims.alternates), "the claims have alternates already"
    found: list[tuple[Index, Index]] = []
    with view.tentative():
        view.assume_claims(claims)
        as_if_granted = replace(
            job,
            placed_task=np.concatenate([job.placed_task, claims.task]),
            placed_machine=np.concatenate([job.placed_machine, claims.machine]),
        )
        for group, mine in _by_group(job, claims):
            found += _of_group(view, as_if_granted, group, mine, claims, search)
    if not found:
        return claims
    return replace(claims, alternates=_alternates(view, claims, found))


def _by_group(job: LeasedJob, claims: Claims) -> Iterator[tuple[int, Index]]:
    """Yield each group without GPUs that has claims, with the positions of these."""
    first = 0
    for number, group in enumerate(job.spec.groups):
        last = first + group.tasks
        mine = np.flatnonzero((claims.task >= first) & (claims.task < last))
        if len(mine) and not group.gpus:
            yield number, mine
        first = last


def _of_group(
    view: View, job: LeasedJob, group: int, mine: Index, claims: Claims, search: _Search
) -> Iterator[tuple[Index, Index]]:
    """Yield the alternates of a group's claims: positions among all claims, rows of the view."""
    its = search.find(view, job, group, claims.machine[mine], search.number * len(mine))
    attribute = job.spec.groups[group].spread_over
    column = None if attribute is None else view.catalogue.column(attribute)
    if column is None:
        yield from _for_claims(search, its, mine)
        return
    domain = view.codes[view.where(claims.machine[mine]), column]
    for one in np.unique(domain):
        there = _part(its, view.codes[its.at, column] == one)
        yield from _for_claims(search, there, mine[domain == one])


def _for_claims(search: _Search, its: Room, mine: Index) -> Iterator[tuple[Index, Index]]:
    """Yield the alternates of the claims at these positions: positions, rows of the view."""
    for claim, rows in search.rows_for(its, len(mine)):
        yield mine[claim], rows


def _alternates(view: View, claims: Claims, found: list[tuple[Index, Index]]) -> Alternates:
    """Return what was found as alternates: by claim, in the order found, each machine once."""
    claim = np.concatenate([one for one, _ in found])
    row = np.concatenate([rows for _, rows in found])
    _, first = np.unique(claim * len(view) + row, return_index=True)
    first.sort()  # in the order found, which is that of preference
    order = first[np.argsort(claim[first], kind="stable")]
    claim, row = claim[order], row[order]
    return Alternates(
        claim=claim.astype(np.intp),
        machine=view.id[row],
        seen=view.sequence[row],
        shape=claims.shape[claim],
    )
