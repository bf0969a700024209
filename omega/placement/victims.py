"""Victims: which tasks make way for a job that nothing else has room for.

Goal     Place as many of a job's tasks as lower precedences can make room for, and evict as few
         tasks as possible.
Promise  Nobody is named who does not yield to the job's precedence. Of choices that evict equally
         many, one of low precedences is taken, and of these one of tasks that began late. A gang
         that would break counts as a whole. The counts are the least possible for groups without
         GPUs, unless several gangs would have to fall together, or the search is cut off: it is
         bounded, so that no job keeps its scheduler busy for long.
Source   Omega (EuroSys 2013), section 3.4; the order of victims as in Nomad and Kubernetes;
         docs/decisions/0036-preemption.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index, Mask
from omega.model.claims import Claims, Evictions
from omega.model.jobs import LeasedJob
from omega.model.occupants import Occupants
from omega.placement.covers import Budget, Cover
from omega.placement.feasibility import Room, room_on
from omega.placement.groups import claims_for, waiting_groups

GANGS_MAX: Final = 16
"""Gangs that are weighed as a whole; the smallest first."""
WORK_MAX: Final = 50_000
"""Pairs of a machine and a number of tasks that are weighed for one job. After that, the best plan
so far is taken."""
NODES_MAX: Final = 50_000
"""Steps of the searches for covers of one job: sets of victims that free enough. After that, the
first cover that is found is taken."""
PER_TASK: Final = 2**40
"""The cost of a victim. Its rank among all, which is added, decides only between equal numbers."""


def place_with_evictions(
    view: View, job: LeasedJob, machines: Ids, occupants: Occupants, rng: np.random.Generator
) -> Claims:
    """Return claims for as many of the job's unplaced tasks as find room, with the tasks to evict.

    Only `machines` are used, on which `occupants` run. A gang gets at least `job.lacking` claims,
    or none. The view is left unchanged.
    """
    way = _Way(view, job, machines, occupants)
    parts = []
    with view.tentative():
        for group in waiting_groups(job):
            claims = way.place(group, rng)
            view.assume_claims(claims)
            parts.append(claims)
    placed = _within_limits(Claims.of(parts) if parts else Claims.none())
    return placed if len(placed) >= job.lacking else Claims.none()


def _within_limits(claims: Claims) -> Claims:
    """Return the leading claims whose evictions fit into one commit, cut between two machines."""
    most = LIMITS.claims_per_transaction_max
    evictions = claims.evictions
    if len(evictions) <= most:
        return claims
    # The first claim on a machine names all victims there: machines are kept or left out whole.
    last = int(evictions.claim[most])
    named = int(np.searchsorted(evictions.claim, last))
    return Claims(
        task=claims.task[:last],
        machine=claims.machine[:last],
        seen=claims.seen[:last],
        shape=claims.shape[:last],
        shapes=claims.shapes,
        evictions=Evictions(evictions.claim[:named], evictions.job[:named], evictions.task[:named]),
    )


@dataclass(eq=False)
class _Plan:
    """How many tasks each machine gets, and who makes way for them."""

    given: dict[int, int] = field(default_factory=dict)
    """By row of the view."""
    victims: dict[int, list[int]] = field(default_factory=dict)
    """By row of the view, positions in the occupants."""
    fallen: tuple[int, ...] = ()
    """Positions of the tasks of gangs that fall: these are evicted as a whole, and the room of all
    of their tasks is free, also on machines that get no task."""
    cost: int = 0

    @property
    def tasks(self) -> int:
        return sum(self.given.values())

    def is_better_than(self, other: "_Plan") -> bool:
        return (-self.tasks, self.cost) < (-other.tasks, other.cost)


class _Way:
    """Who may make way for one job, on some machines of a view."""

    def __init__(self, view: View, job: LeasedJob, machines: Ids, occupants: Occupants) -> None:
        self._view = view
        rows = view.where(machines)
        self._rows: list[int] = rows[rows >= 0].tolist()
        self._job = job
        self._occupants = occupants
        # Of occupants, `job`, `task`, `machine`, `amounts` and `started_ms` have an entry for each
        # task; `distinct_job`, `precedence`, `yields_to`, `minimum`, `placed` and `running` for
        # each job. A job's `number` is its position there; `of` has it for each task.
        of = np.searchsorted(occupants.distinct_job, occupants.job)
        yields = (occupants.yields_to <= job.spec.precedence) & (occupants.distinct_job != job.id)
        order = np.lexsort(
            (-occupants.task, -occupants.job, -occupants.started_ms, occupants.precedence[of])
        )
        self._rank = np.empty(len(occupants), dtype=np.int64)
        self._rank[order] = np.arange(len(occupants))
        self._at = view.where(occupants.machine)
        self._alive = yields[of] & (self._at >= 0)
        self._work_left = WORK_MAX
        self._budget = Budget(NODES_MAX)
        self._known: dict[tuple[int | bytes, ...], _Options] = {}
        """Options by what decides them: most plans differ on few machines."""
        self._gang: dict[int, Index] = {}
        """By number of a job that is a gang and yields: its tasks on these machines."""
        self._slack = np.maximum(occupants.placed - occupants.minimum, 0)
        """By number of a job: how many tasks it can lose before its gang breaks. `placed` counts
        tasks that have ended, too, for they count towards the minimum."""
        for number in np.flatnonzero(yields & (occupants.minimum > 0)).tolist():
            mine = np.flatnonzero(of == number)
            self._gang[number] = mine[np.argsort(self._rank[mine])]

    def place(self, group: int, rng: np.random.Generator) -> Claims:
        """Return claims for a group's tasks; who makes way for them is evicted in the view."""
        wanted = len(self._job.unplaced_in(group))
        plan = self._best(group, wanted)
        if not plan.tasks:
            return Claims.none()
        rows = sorted(plan.given)
        named = {row: list(plan.victims.get(row, [])) for row in rows}
        for number, tasks in self._gangs_of(plan.fallen).items():
            # A commit evicts all of a gang at the claim that takes it below its minimum. A later
            # claim that names one of its tasks would be refused, for that task runs no more. So
            # the gang's tasks are named machine by machine, in the order of the claims, up to the
            # machine at which the gang breaks.
            spared = int(self._slack[number])
            for row in rows:
                here = [task for task in tasks if self._at[task] == row]
                named[row] += here
                spared -= len(here)
                if spared < 0:
                    break
        gone = np.array(sorted({*plan.fallen, *(v for vs in named.values() for v in vs)}), np.intp)
        self._evict(gone)
        at = np.array(rows, dtype=np.intp)
        given = np.array([plan.given[row] for row in rows])
        claims = claims_for(Room(self._view, self._job, group, at, given), given, rng)
        first = np.cumsum(given) - given
        evictions = [
            (claim, victim)
            for claim, row in zip(first.tolist(), rows, strict=True)
            for victim in named[row]
        ]
        victims = np.array([victim for _, victim in evictions], dtype=np.intp)
        return replace(
            claims,
            evictions=Evictions(
                claim=np.array([claim for claim, _ in evictions], dtype=np.intp),
                job=self._occupants.job[victims],
                task=self._occupants.task[victims].astype(np.intp),
            ),
        )

    def _evict(self, gone: Index) -> None:
        self._view.assume_removed(self._occupants.machine[gone], self._occupants.amounts[gone])
        self._alive[gone] = False
        lost = np.searchsorted(self._occupants.distinct_job, self._occupants.job[gone])
        self._slack = np.maximum(self._slack - np.bincount(lost, minlength=len(self._slack)), 0)

    def _gangs_of(self, fallen: Sequence[int]) -> dict[int, list[int]]:
        gangs: dict[int, list[int]] = {}
        for position in fallen:
            number = int(
                np.searchsorted(self._occupants.distinct_job, self._occupants.job[position])
            )
            gangs.setdefault(number, []).append(position)
        return gangs

    def _best(self, group: int, wanted: int) -> _Plan:
        """Return the best plan: without gangs, then with one more gang while that is better.

        Where no single gang helps, all gangs of a machine are tried together.
        """
        best = self._plan(group, wanted, ())
        gangs = [
            number
            for number, tasks in sorted(
                self._gang.items(), key=lambda gang: int(self._occupants.running[gang[0]])
            )
            if self._alive[tasks].all()
        ][:GANGS_MAX]
        chosen: tuple[int, ...] = ()
        singly = [(number,) for number in gangs]
        together = self._on_one_machine(gangs)
        while True:
            better = self._better(group, wanted, best, chosen, singly)
            if not better and best.tasks < wanted:
                better = self._better(group, wanted, best, chosen, together)
            if not better:
                return best
            best, chosen = min(better, key=lambda one: (-one[0].tasks, one[0].cost))

    def _better(
        self,
        group: int,
        wanted: int,
        best: _Plan,
        chosen: tuple[int, ...],
        more: Sequence[tuple[int, ...]],
    ) -> list[tuple[_Plan, tuple[int, ...]]]:
        """Return the plans that are better than the best so far, with the gangs that fall in each.

        To the gangs `chosen` each plan adds one entry of `more`.
        """
        tried = []
        for some in more:
            gangs = tuple(dict.fromkeys(chosen + some))
            if len(gangs) > len(chosen) and self._work_left > 0:
                tried.append((self._plan(group, wanted, gangs), gangs))
        return [one for one in tried if one[0].is_better_than(best)]

    def _on_one_machine(self, gangs: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the gangs of each machine on which several of these run."""
        here: dict[int, dict[int, None]] = {}
        for number in gangs:
            for row in self._at[self._gang[number]].tolist():
                here.setdefault(row, {})[number] = None
        return [tuple(some) for some in here.values() if len(some) > 1]

    def _plan(self, group: int, wanted: int, gangs: tuple[int, ...]) -> _Plan:
        """Return the cheapest plan for as many tasks as fit if these gangs fall."""
        fallen = np.concatenate([np.zeros(0, np.intp), *(self._gang[g] for g in gangs)])
        cost = sum(
            int(self._occupants.running[g]) * PER_TASK + int(self._rank[self._gang[g]].sum())
            for g in gangs
        )
        may_go = self._alive.copy()
        may_go[fallen] = False
        with self._view.tentative():
            if len(fallen):
                self._view.assume_removed(
                    self._occupants.machine[fallen], self._occupants.amounts[fallen]
                )
            plan = _cheapest(list(self._options(group, wanted, may_go)), wanted)
            # A gang that is not meant to fall loses only as many tasks as it can spare. Each that
            # this plan would break is limited to that, and a plan is made again; once the work is
            # spent, all are limited at once, so that it is made once more only.
            while broken := self._broken(plan):
                for number in broken if self._work_left > 0 else self._gang:
                    may_go[self._gang[number][self._slack[number] :]] = False
                plan = _cheapest(list(self._options(group, wanted, may_go)), wanted)
        plan.cost += cost
        plan.fallen = tuple(fallen.tolist())
        # Claims name only victims on machines that get tasks. If those are too few to break a gang,
        # the commit does not evict the rest, whose room this plan has counted on: it is void.
        for number, tasks in self._gangs_of(plan.fallen).items():
            named = sum(int(self._at[task]) in plan.given for task in tasks)
            if named <= self._slack[number]:
                return _Plan()
        return plan

    def _broken(self, plan: _Plan) -> list[int]:
        """Return the gangs that would lose more tasks singly than they can spare."""
        singles = [victim for victims in plan.victims.values() for victim in victims]
        return [
            number
            for number, victims in self._gangs_of(singles).items()
            if number in self._gang and len(victims) > self._slack[number]
        ]

    def _options(self, group: int, wanted: int, may_go: Mask) -> Iterator["_Options"]:
        """Yield for each machine what each number of tasks on it would cost."""
        rows = np.array(self._rows, dtype=np.intp)
        as_it_is = room_on(self._view, self._job, group, rows)
        with self._view.tentative():
            self._view.assume_removed(
                self._occupants.machine[may_go], self._occupants.amounts[may_go]
            )
            emptied = np.minimum(room_on(self._view, self._job, group, rows), wanted)
        self._work_left -= int(emptied.sum())
        here, free = self._by_row(may_go), self._view.free[rows]
        for at in np.flatnonzero(emptied).tolist():
            if self._budget.is_spent and self._job.spec.groups[group].gpus:
                return  # each number of tasks with GPUs is tried out, which takes longer
            row, most = int(rows[at]), int(emptied[at])
            mine = here.get(row, np.zeros(0, np.intp))
            key = (group, row, int(as_it_is[at]), most, free[at].tobytes(), mine.tobytes())
            if key not in self._known:
                least = self._least(group, row, mine)
                options = _Options(row, [0], [[]])
                for tasks in range(1, most + 1):
                    victims = least(tasks) if tasks > as_it_is[at] else []
                    options.cost.append(len(victims) * PER_TASK + int(self._rank[victims].sum()))
                    options.victims.append(victims)
                self._known[key] = options
            yield self._known[key]

    def _by_row(self, may_go: Mask) -> dict[int, Index]:
        """Return the positions of these tasks by row of the view, in order of rank."""
        which = np.flatnonzero(may_go)
        which = which[np.argsort(self._rank[which])]
        return {row: which[self._at[which] == row] for row in np.unique(self._at[which]).tolist()}

    def _least(self, group: int, row: int, here: Index) -> Callable[[int], list[int]]:
        """Return a function of a number of tasks: the fewest of `here` that must go for them."""
        task_group = self._job.spec.groups[group]
        if task_group.gpus:
            return lambda tasks: self._pruned(group, row, tasks, here)
        kinds = np.flatnonzero(task_group.demand)
        cover = Cover(self._occupants.amounts[np.ix_(here, kinds)], self._budget)
        demand, free = task_group.demand[kinds], self._view.free[row][kinds]
        return lambda tasks: here[cover.fewest(tasks * demand - free)].tolist()

    def _pruned(self, group: int, row: int, tasks: int, here: Index) -> list[int]:
        """Return enough tasks, none of which could stay: by rank, for groups with GPUs."""
        chosen: list[int] = here.tolist()
        for victim in here[::-1].tolist():
            rest = [one for one in chosen if one != victim]
            if self._fits(group, row, tasks, np.array(rest, dtype=np.intp)):
                chosen = rest
        return chosen

    def _fits(self, group: int, row: int, tasks: int, gone: Index) -> bool:
        self._budget.nodes -= 1
        with self._view.tentative():
            self._view.assume_removed(self._occupants.machine[gone], self._occupants.amounts[gone])
            return bool(room_on(self._view, self._job, group, np.array([row]))[0] >= tasks)


@dataclass(eq=False)
class _Options:
    """For one machine, by number of tasks placed there: the cost, and who is evicted for them."""

    row: int
    cost: list[int]
    victims: list[list[int]]


def _cheapest(options: Sequence[_Options], wanted: int) -> _Plan:
    """Return the cheapest division of as many tasks as possible among machines."""
    none = np.iinfo(np.int64).max // 2
    best = np.full(wanted + 1, none, dtype=np.int64)
    best[0] = 0
    taken = np.zeros((len(options), wanted + 1), dtype=np.int64)
    for at, option in enumerate(options):
        after = best.copy()
        for tasks in range(1, len(option.cost)):
            here = np.full(wanted + 1, none, dtype=np.int64)
            here[tasks:] = np.minimum(best[: wanted + 1 - tasks] + option.cost[tasks], none)
            better = here < after
            after[better] = here[better]
            taken[at, better] = tasks
        best = after
    tasks = int(np.flatnonzero(best < none)[-1])
    plan = _Plan(cost=int(best[tasks]))
    for at in range(len(options) - 1, -1, -1):
        given = int(taken[at, tasks])
        if given:
            plan.given[options[at].row] = given
            plan.victims[options[at].row] = options[at].victims[given]
            tasks -= given
    return plan
