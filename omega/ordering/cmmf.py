"""Fair shares by linear programs: constrained max-min fairness (CMMF), exactly.

Goal     Say what each tenant would have if tasks could be divided and moved, for auditors.
Promise  The smallest weighted share is as large as can be, then the next, and so on; in a tree this
         holds for the children of the root first, then for the level below, and so on. A share is
         of the capacity of all machines, and of a node's dominant resource: the one of which all
         tasks below the node, as far as the cell could hold them, need the largest share. Shares
         are exact to 1e-6 of the cell. With one resource this is Choosy's fairness, and with
         machines that all may use, and one lane for each tenant, it is DRF's: each keeps what its
         paper proves. Otherwise it is not promised that a lie never pays.
Source   Ghodsi et al., Choosy (EuroSys 2013), by an iterated linear program; DRF (NSDI 2011). The
         dual values (prices) of the program say which shares are frozen: a share whose floor has a
         price is at its floor in each best solution (complementary slackness), so that it cannot
         be raised.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from omega.errors import InvariantBroken
from omega.model.arrays import Amounts, Index, Mask, Score, integers
from omega.ordering.tenants import ROOT, TenantNodes

TOLERANCE = 1e-9
"""HiGHS' tolerance; and the fraction by which the floor of a frozen share is lowered, so that the
next program is not infeasible by rounding."""
CLEAR_PRICE = 1e-9
"""A price below this fraction of the largest price is a rounding error, and counts as 0."""


@dataclass(frozen=True, eq=False)
class LaneDemands:
    """What the tasks of each lane need, running ones and pending ones."""

    tenant: Index
    """(lanes,) the position of each lane's tenant among the names of the tree's nodes."""
    demand: Amounts
    """(lanes, resources) of one task."""
    tasks: Score
    """(lanes,) how many tasks there are; may be infinite."""
    may_use: Mask
    """(lanes, machines) whether the tasks of a lane may run on a machine, by their constraints."""


@dataclass(frozen=True, eq=False)
class FairShares:
    """The shares that are fair, and one assignment of tasks that gives them."""

    share: Score
    """(tenants,) the share of each of its dominant resource, of the capacity of all machines."""
    tasks: Score
    """(lanes, machines) how many tasks run where, in fractions. Other assignments may give the same
    shares."""


def fair_shares(lanes: LaneDemands, capacity: Amounts, nodes: TenantNodes) -> FairShares:
    """Return the fair shares of tenants of machines with `capacity` (machines, resources).

    Raises InvariantBroken if HiGHS finds no optimum.
    """
    program = _Program(lanes, capacity, nodes)
    share = np.zeros(len(nodes.weight))
    for level in nodes.levels:
        live = np.zeros(len(share), dtype=np.bool_)
        live[level] = program.has_room[level]
        while live.any():
            smallest, price = program.solve(live, share * (1 - TOLERANCE))
            weighted = np.where(live, price * nodes.weight, 0.0)
            frozen = live & (weighted >= CLEAR_PRICE * weighted.max())
            share[frozen] = nodes.weight[frozen] * smallest
            live &= ~frozen
    return FairShares(share[nodes.leaf] / program.whole, program.tasks)


def pooled(capacity: Amounts, may_use: Mask) -> tuple[Amounts, Mask]:
    """Return capacity and `may_use` with equal machines that the same lanes may use added up.

    `capacity` is (machines, resources), `may_use` (lanes, machines); both are returned with fewer
    machines. Fair shares stay the same, and the program is smaller: cells have few kinds of
    machines.
    """
    rows = np.concatenate((capacity, may_use.T), axis=1)
    unlike, counts = np.unique(rows, axis=0, return_counts=True)
    machines, users = np.split(integers(unlike), [capacity.shape[1]], axis=1)
    return machines * counts[:, np.newaxis], users.T.astype(np.bool_)


class _Program:
    """The linear program of one cell; from solve to solve only the rows of nodes change.

    A column is what a lane has of one machine, as a dominant share; the last one is the smallest
    weighted share of all live nodes. Live nodes are those whose shares may still grow.
    """

    def __init__(self, lanes: LaneDemands, capacity: Amounts, nodes: TenantNodes) -> None:
        total = capacity.sum(axis=0)
        whole = self.whole = float(nodes.weight.sum())
        """The share of the whole cell: the sum of weights. So shares are of the size of weights,
        even with many tenants, and HiGHS' tolerance does not matter."""
        task = whole * lanes.demand / np.where(total > 0, total, np.inf)
        unit = task.max(axis=1, initial=0.0)
        lacks = (lanes.demand[:, np.newaxis] > 0) & (capacity == 0)
        can_use = lanes.may_use & ~lacks.any(axis=2)
        can_use[(unit == 0) | (lanes.tasks <= 0)] = False
        self._lane, self._machine = np.nonzero(can_use)
        self._unit = unit[self._lane]
        self.tasks = np.zeros(can_use.shape)
        """(lanes, machines) of the solution that was found last."""

        limited = np.flatnonzero(can_use.any(axis=1) & np.isfinite(lanes.tasks))
        within = self._sums_by(nodes, nodes.leaf[lanes.tenant[self._lane]])
        self.has_room = np.asarray(within.sum(axis=1)).ravel() > 0
        """(nodes,) whether anybody in them can use any machine."""
        self._weight = nodes.weight.astype(np.float64)
        part = task[self._lane] / self._unit[:, np.newaxis]
        usable = np.flatnonzero(can_use.any(axis=1))
        held = np.minimum(lanes.tasks[usable], whole / unit[usable])
        needed = self._sums_by(nodes, nodes.leaf[lanes.tenant[usable]])
        dominant = (needed @ (held[:, np.newaxis] * task[usable])).argmax(axis=1)
        within.data = part[within.col, dominant[within.row]]
        self._rows = sparse.vstack(
            (self._of_machines(part, len(capacity)), self._of_lanes(limited), -within)
        )
        self._upper = np.concatenate(
            (
                (whole * capacity / np.where(total > 0, total, 1)).ravel(),
                lanes.tasks[limited] * unit[limited],
            )
        )

    def solve(self, live: Mask, floor: Score) -> tuple[float, Score]:
        """Return the smallest weighted share of the live nodes, at its largest, and prices.

        Shares of other nodes are at least `floor` (nodes,). A price (nodes,) is how much larger the
        result would be if the node's share were allowed to be smaller.
        """
        fixed, columns = len(self._upper), len(self._lane)
        smallest = np.concatenate((np.zeros(fixed), np.where(live, self._weight, 0.0)))
        bounds = np.tile((0.0, np.inf), (columns + 1, 1))
        bounds[-1] = (-np.inf, np.inf)
        found = linprog(
            np.append(np.zeros(columns), -1.0),
            A_ub=sparse.hstack((self._rows, smallest[:, np.newaxis]), format="csr"),
            b_ub=np.concatenate((self._upper, np.where(live, 0.0, -floor))),
            bounds=bounds,
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": TOLERANCE,
                "dual_feasibility_tolerance": TOLERANCE,
            },
        )
        if found.status:
            raise InvariantBroken(f"HiGHS ended the program of fair shares with {found.message!r}")
        self.tasks[self._lane, self._machine] = found.x[:-1] / self._unit
        return float(found.x[-1]), -np.asarray(found.ineqlin.marginals[fixed:])

    def _of_machines(self, part: Score, machines: int) -> sparse.coo_array:
        """Return a row for each resource of each machine: its use, as a share of the cell's total.

        `part` (columns, resources) is what each unit of a column uses.
        """
        column, resource = np.nonzero(part)
        row = self._machine[column] * part.shape[1] + resource
        shape = (machines * part.shape[1], len(self._lane))
        return sparse.coo_array((part[column, resource], (row, column)), shape=shape)

    def _of_lanes(self, lanes: Index) -> sparse.coo_array:
        """Return a row for each of `lanes`: the sum of its columns."""
        column = np.flatnonzero(np.isin(self._lane, lanes))
        row = np.searchsorted(lanes, self._lane[column])
        shape = (len(lanes), len(self._lane))
        return sparse.coo_array((np.ones(len(column)), (row, column)), shape=shape)

    @staticmethod
    def _sums_by(nodes: TenantNodes, leaf: Index) -> sparse.coo_array:
        """Return a row for each node: the sum of the columns in its subtree.

        `leaf` (columns,) is the node that each column belongs to.
        """
        rows, columns = [leaf], [np.arange(len(leaf))]
        for _ in nodes.levels:
            rows.append(nodes.parent[rows[-1]])
            columns.append(columns[0])
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (len(nodes.weight), len(leaf))
        below = row != ROOT
        return sparse.coo_array((np.ones(below.sum()), (row[below], column[below])), shape=shape)
