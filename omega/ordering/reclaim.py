"""Reclaiming: which running tasks may be evicted for a tenant that has a smaller share.

Goal     Even out the shares of tenants where tasks run for long, and take no tenant below what is
         fair between it and its siblings in the tree of tenants.
Promise  A *node* is one of the tree of tenants (`TenantNodes`), never a machine. On the paths from
         the root to the job's tenant and to a victim's, the first nodes that differ are siblings:
         the *job's node* and the *victim's node*. Their shares are compared. After placements and
         evictions the weighted dominant share of the job's node is at most that of the victim's
         node. So the victim's tenant cannot reclaim in turn, and nobody is evicted for a
         difference that evictions cannot make smaller. The victim's node also keeps at least the
         *level*: the share that all siblings that use something, and the job's node, would have if
         what they use together were divided by weight. Tasks of the nodes that are furthest above
         what they must keep are tried first, others only if more tasks are placed so. Only tasks
         that yield to the job's precedence are offered to placement, never those of its own tenant.
         A gang is offered as a whole or not at all, and only if all of its tasks were read. Claims
         may evict tasks above its minimum alone; if they take more, all of it goes. No I/O; arrays
         in, arrays out. (resources,) are amounts of each of `omega.store.holdings.RESOURCES`.
Source   Fair sharing with preemption as in Kueue, which compares shares after the evictions, and in
         YARN; dominant shares: DRF (NSDI 2011); docs/decisions/0063-reclaim.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask, Score, integers
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left, task_demand
from omega.model.occupants import Occupants
from omega.ordering.fair import by_resource, dominant_shares
from omega.ordering.tenants import ROOT, TenantNodes


@dataclass(frozen=True, eq=False)
class Shares:
    """What tenants use of a cell."""

    nodes: TenantNodes
    use: Amounts
    """(tenants, resources) by the positions of `nodes.names`."""
    capacity: Amounts
    """(resources,) of the machines that take claims."""

    @cached_property
    def used(self) -> Amounts:
        """What is used below each node: (nodes, resources)."""
        return self.nodes.summed(self.use)

    @cached_property
    def whole(self) -> Amounts:
        """The capacity times each node's weight: (nodes, resources)."""
        return self.capacity * self.nodes.weight[:, np.newaxis]

    def path(self, tenant: str) -> list[int]:
        """Return the nodes from below the root down to a tenant's jobs."""
        path = [int(self.nodes.leaf[self.nodes.position[tenant]])]
        while (above := int(self.nodes.parent[path[-1]])) != ROOT:
            path.append(above)
        return path[::-1]


def is_below(shares: Shares, job: LeasedJob) -> bool:
    """Return whether the job's tenant, or a node above it, has a sibling with a larger share.

    The tenant's share counts as if it had one more task of the job already, or as many as the
    job's gang lacks.
    """
    mine = shares.path(job.spec.tenant)
    least = _demands(job)[max(1, job.lacking) - 1]
    for parent, node in zip((ROOT, *mine), mine, strict=False):
        others = shares.nodes.children[parent]
        others = others[others != node]
        share = dominant_shares(shares.used[[node]] + least, shares.whole[[node]])
        if (dominant_shares(shares.used[others], shares.whole[others]) > share).any():
            return True
    return False


class Reclaimable:
    """What a job may have by evictions on some machines."""

    def __init__(self, shares: Shares, job: LeasedJob, occupants: Occupants, free: Amounts) -> None:
        """`free` (resources,) is what is free on the machines of the occupants."""
        self._shares = shares
        self._job = job
        self._occupants = occupants
        self._free = free
        self._demands = _demands(job)
        self._fewest = max(1, job.lacking)
        self._victims = _Victims(shares, job, occupants)

    def options(self) -> Iterator[tuple[int, Mask]]:
        """Yield options: how many unplaced tasks to place, and which tasks may be evicted for them.

        The first unplaced tasks are placed. The mask is of the occupants' tasks; placement chooses
        among those that it names. The options are, in this order:

        1. What `by_sums` returns. These tasks may run where none of the job's fits, or hold what it
           does not need.
        2. All tasks of the nodes that are furthest above what they must keep.
        3. All tasks of the nodes that have at least what they must keep.

        2 and 3 are repeated with half the number of tasks, down to what a gang lacks. What
        placement chooses from them may be too much: `allows` says so.
        """
        tasks, may_go = self.by_sums()
        if tasks:
            yield tasks, may_go
        for tasks in self._numbers():
            demand = self._demands[tasks - 1]
            enough = self._victims.have_enough(demand)
            richest = enough & self._victims.are_of_the_richest(demand)
            for which in (richest, enough):
                if which.any():
                    yield tasks, self._mask(which)

    def by_sums(self) -> tuple[int, Mask]:
        """Return how many tasks to place, and which may be evicted, as if all machines were one.

        The nodes that are furthest above what they must keep lose tasks first, and no more than
        suffices. The number is the largest possible. If it is too small for a gang, the number is 0
        and the mask names nothing.
        """
        lower, tasks = 0, len(self._demands)
        while lower < tasks:
            middle = (lower + tasks + 1) // 2
            if len(self._sufficient(middle)):
                lower = middle
            else:
                tasks = middle - 1
        if tasks < self._fewest:
            return 0, self._mask(np.zeros(0, dtype=np.intp))
        return tasks, self._mask(self._sufficient(tasks))

    def allows(self, claims: Claims) -> bool:
        """Return whether each node keeps what it must, if it loses tasks by these claims."""
        demand = demand_left(replace(self._job, unplaced=np.sort(claims.task)))
        named = self._occupants.named_in(claims.evictions)
        return self._victims.are_left_enough(demand, named[self._victims.at])

    def _numbers(self) -> Iterator[int]:
        """Yield all tasks, half of them, and so on; last as many as a gang lacks, or one."""
        tasks = len(self._demands)
        while tasks > self._fewest:
            yield tasks
            tasks = max(tasks // 2, self._fewest)
        if tasks == self._fewest:
            yield tasks

    def _sufficient(self, tasks: int) -> Index:
        demand = self._demands[tasks - 1]
        return self._victims.sufficient(demand, demand - self._free)

    def _mask(self, which: Index | Mask) -> Mask:
        may_go = np.zeros(len(self._occupants), dtype=np.bool_)
        may_go[self._victims.at[which]] = True
        return may_go


class _Victims:
    """Tasks that yield to a job, by their nodes, and within a node in the order of their eviction.

    Within a node single tasks come first, then gangs, small ones first; among these the lowest
    precedence, then the latest start, of a gang that of its last task. In the methods, `demand`
    (resources,) is what the job's tenant gets.
    """

    def __init__(self, shares: Shares, job: LeasedJob, occupants: Occupants) -> None:
        of = np.searchsorted(occupants.distinct_job, occupants.job)
        mine, other = _partings(shares, job.spec.tenant, occupants.tenant)
        is_gang = occupants.minimum > 0
        read = np.bincount(of, minlength=len(occupants.distinct_job))
        yields = (occupants.yields_to <= job.spec.precedence) & (occupants.distinct_job != job.id)
        yields &= (other != ROOT) & (~is_gang | (read == occupants.running))
        latest = np.zeros(len(occupants.distinct_job), dtype=np.int64)
        np.maximum.at(latest, of, occupants.started_ms)
        began_ms = np.where(is_gang[of], latest[of], occupants.started_ms)
        at = np.flatnonzero(yields[of])
        of = of[at]
        keys = (
            -occupants.task[at],
            -occupants.job[at],
            -began_ms[at],
            occupants.precedence[of],
            np.where(is_gang[of], occupants.running[of], 0),
            other[of],
        )
        order = np.lexsort(keys)
        self.at: Index = at[order]
        """(tasks,) their positions in the occupants."""
        self._amounts = by_resource(occupants.amounts[self.at])
        """(tasks, resources)"""
        self._of: Index = of[order]
        """(tasks,) the number of each task's job."""
        self._slack = np.where(is_gang, occupants.placed - occupants.minimum, len(of))
        """By job, how many tasks it can lose before all of it is evicted."""
        self._shares = shares
        position = shares.nodes.position
        self._mine_at = position[job.spec.tenant]
        of_tenants = [position.get(name, -1) for name in occupants.tenant]
        self._tenant: Index = np.array(of_tenants, dtype=np.intp)[self._of]
        self._mine: Index = mine[self._of]
        """(tasks,) the job's node, where the paths of the two tenants part."""
        self._other: Index = other[self._of]
        """(tasks,) the victim's node; ascends."""
        self._level = self._levels()
        lost = self._amounts.copy()
        for its in self._gangs(is_gang):  # all of a gang goes with its first task
            lost[its] = 0
            lost[its[0]] = self._amounts[its].sum(axis=0)
        self._left = _left(shares, self._other, lost)
        """(tasks,) the share that the node has when the task and those before it are gone."""

    def sufficient(self, demand: Amounts, shortfall: Amounts) -> Index:
        """Return which tasks to evict to free `shortfall` (resources,), as if on one machine.

        The result is empty if the nodes may not lose that much.
        """
        spare = self._left - self._least(demand)
        order = np.argsort(-spare, kind="stable")
        order = order[spare[order] >= 0]
        enough = (self._amounts[order].cumsum(axis=0) >= shortfall).all(axis=1)
        if not enough.any():
            return order[:0]
        # A gang's tasks adjoin, and all of it is lost with the first: they have the same `spare`.
        return np.flatnonzero(spare >= spare[order[enough.argmax()]])

    def have_enough(self, demand: Amounts) -> Mask:
        """Return for each task whether its node has at least what it must keep: (tasks,)."""
        return np.asarray(self._now() >= self._least(demand))

    def are_of_the_richest(self, demand: Amounts) -> Mask:
        """Return for each task whether its node is furthest above what it must keep: (tasks,)."""
        spare = self._now() - self._least(demand)
        return np.asarray(spare >= spare.max(initial=-np.inf))

    def are_left_enough(self, demand: Amounts, named: Mask) -> bool:
        """Return whether each node that loses tasks keeps at least what `_least` says.

        `named` (tasks,) are evicted. All of a gang that falls below its minimum is evicted.
        """
        lost = np.bincount(self._of[named], minlength=len(self._slack))
        gone = named | (lost > self._slack)[self._of]
        if not gone.any():
            return True
        use = self._shares.use.copy()
        np.subtract.at(use, self._tenant[gone], self._amounts[gone])
        use[self._mine_at] += demand
        after = replace(self._shares, use=use)
        left, mine = (
            dominant_shares(after.used[nodes], after.whole[nodes])
            for nodes in (self._other[gone], self._mine[gone])
        )
        return bool((left >= np.maximum(mine, self._level[gone])).all())

    def _now(self) -> Score:
        return dominant_shares(self._shares.used[self._other], self._shares.whole[self._other])

    def _least(self, demand: Amounts) -> Score:
        """Return the share that each victim's node must keep: (tasks,).

        It is the level, or the share that the job's node has with `demand`, if that is larger.
        """
        used, whole = self._shares.used[self._mine], self._shares.whole[self._mine]
        return np.maximum(dominant_shares(used + demand, whole), self._level)

    def _levels(self) -> Score:
        """Return the level of each task's node: (tasks,).

        See the module's Promise.
        """
        nodes, used = self._shares.nodes, self._shares.used
        level = np.zeros(len(used))
        for mine in np.unique(self._mine).tolist():
            beside = nodes.children[int(nodes.parent[mine])]
            active = beside[used[beside].any(axis=1) | (beside == mine)]
            whole = self._shares.whole[active].sum(axis=0)
            level[beside] = dominant_shares(used[active].sum(axis=0)[np.newaxis], whole)
        return level[self._other]

    def _gangs(self, is_gang: Mask) -> Iterator[Index]:
        """Yield the positions of each gang's tasks here."""
        for number in np.unique(self._of[is_gang[self._of]]).tolist():
            yield np.flatnonzero(self._of == number)


def _demands(job: LeasedJob) -> Amounts:
    """Return what the first unplaced tasks of a job need: (tasks, resources).

    Row n is what the first n + 1 of them need together.
    """
    groups = job.spec.groups
    tasks = [len(job.unplaced_in(number)) for number in range(len(groups))]
    return np.repeat([task_demand(group) for group in groups], tasks, axis=0).cumsum(axis=0)


def _left(shares: Shares, node: Index, lost: Amounts) -> Score:
    """Return the share of each task's node when it and those of its node before it are gone.

    `node` (tasks,) ascends. `lost` (tasks, resources) is what the node loses with each task.
    """
    gone = lost.cumsum(axis=0)
    first = np.searchsorted(node, node)
    before = np.where((first > 0)[:, np.newaxis], gone[first - 1], 0)
    return dominant_shares(shares.used[node] - (gone - before), shares.whole[node])


def _partings(shares: Shares, mine: str, tenants: Sequence[str]) -> tuple[Index, Index]:
    """Return where the paths of a tenant and others part: the nodes of both, by other tenant.

    They are ROOT for the tenant itself and for tenants that nothing is known of.
    """
    path = shares.path(mine)
    known: dict[str, tuple[int, int]] = {mine: (ROOT, ROOT)}
    for tenant in set(tenants) - {mine}:
        known[tenant] = (ROOT, ROOT)
        if tenant in shares.nodes.position:
            pairs = zip(path, shares.path(tenant), strict=False)
            known[tenant] = next((a, b) for a, b in pairs if a != b)
    nodes: Ids = integers([known[tenant] for tenant in tenants]).reshape(-1, 2)
    return nodes[:, 0].astype(np.intp), nodes[:, 1].astype(np.intp)
