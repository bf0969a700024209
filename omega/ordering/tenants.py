"""Tenants with weights, as a tree: who shares with whom, and in which proportion.

Goal     Let an organisation have a part of the cell, and its teams parts of that part.
Promise  A TenantTree has no cycle, no unknown parent, no weight outside 1 to
         `LIMITS.tenant_weight_max` and no more than `LIMITS.tenant_depth_max` levels. A tenant
         that was not set has the weight 1 and no parent. A tenant with children may have jobs of
         its own: they are one more child, of the weight 1, that comes before the others. Children
         of one parent are in the order of their names.
Source   Hierarchical shares as in Mesos' roles and YARN's queues; weights as in DRF (NSDI 2011).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omega.errors import BadInput, did_you_mean, shortened
from omega.limits import LIMITS
from omega.model.acyclic import topological_order
from omega.model.arrays import Amounts, Counts, Index, freeze, integers

Path = tuple[str, ...]
"""The names from a tenant without a parent down to one tenant."""

ROOT = 0
"""The node above all tenants."""
_OWN = ""
"""The last part of the path of a tenant's own jobs; no tenant has this name."""


@dataclass(frozen=True)
class Tenant:
    """The weight and the parent that the owner of a cell has set for a tenant."""

    name: str
    weight: int = 1
    """How many times as much it gets as a tenant of the weight 1 with the same parent."""
    parent: str | None = None

    def __post_init__(self) -> None:
        assert self.name != _OWN


@dataclass(frozen=True, eq=False)
class TenantNodes:
    """Tenants and all above them as arrays, with a row per node.

    A node is a tenant, or the own jobs of a tenant that has children here. A parent comes before
    its children, these are in the order of their names, and what is below a node follows it
    directly. The node ROOT is above all others.
    """

    names: tuple[str, ...]
    leaf: Index
    """(tenants,) the node of the jobs of each of `names`."""
    weight: Counts
    """(nodes,) that of the root, and of a tenant's own jobs, is 1."""
    end: Index
    """(nodes,) the first node after the subtree of each node."""
    children: tuple[Index, ...]
    """For each node, the nodes directly below it: (children,)."""

    def __post_init__(self) -> None:
        freeze(self.leaf, self.weight, self.end, *self.children)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each name in `names`."""
        return {name: at for at, name in enumerate(self.names)}

    @cached_property
    def parent(self) -> Index:
        """(nodes,) the node above each; the root is its own."""
        parent = np.full(len(self.end), ROOT, dtype=np.intp)
        for node, children in enumerate(self.children):
            parent[children] = node
        return parent

    @cached_property
    def levels(self) -> tuple[Index, ...]:
        """The nodes of each level below the root, from the top down."""
        levels = [self.children[ROOT]]
        while len(levels[-1]):
            levels.append(np.concatenate([self.children[node] for node in levels[-1]]))
        return tuple(levels[:-1])

    def summed(self, rows: Amounts) -> Amounts:
        """Return for each node the sum over the tenants in it: (tenants, ...) to (nodes, ...)."""
        sums = np.zeros((len(self.end) + 1, *rows.shape[1:]), dtype=np.int64)
        sums[self.leaf + 1] = rows
        sums.cumsum(axis=0, out=sums)
        return sums[self.end] - sums[:-1]


class TenantTree:
    """The tenants that were set."""

    def __init__(self, tenants: Iterable[Tenant] = ()) -> None:
        """Raise BadInput, which names the field, if the tenants make no tree or break a limit."""
        by_name: dict[str, Tenant] = {}
        for tenant in tenants:
            if tenant.name in by_name:
                raise BadInput(f"tenant {_quoted(tenant.name)} was set twice", field="name")
            if not 1 <= tenant.weight <= LIMITS.tenant_weight_max:
                raise BadInput(
                    f"the weight of tenant {_quoted(tenant.name)} is {tenant.weight}; it must be"
                    f" from 1 to {LIMITS.tenant_weight_max}",
                    field="weight",
                )
            by_name[tenant.name] = tenant
        self._weights = {name: tenant.weight for name, tenant in by_name.items()}
        self._paths = _paths(by_name)

    def weight(self, tenant: str) -> int:
        """Return the weight of a tenant, set or not."""
        return self._weights.get(tenant, 1)

    def path(self, tenant: str) -> Path:
        """Return the names from the top down to a tenant, set or not."""
        return self._paths.get(tenant, (tenant,))

    def nodes(self, names: Sequence[str]) -> TenantNodes:
        """Return these tenants, each named once, and all tenants above them as arrays.

        This takes longer than `fair_order` does: keep the result while names and tree stay.
        """
        paths = [self.path(name) for name in names]
        parents = {path[:depth] for path in paths for depth in range(len(path))} | {()}
        leaves = [(*path, _OWN) if path in parents else path for path in paths]
        nodes = sorted(parents.union(leaves))  # a path comes just before those that it begins
        at = {path: node for node, path in enumerate(nodes)}
        assert len(set(leaves)) == len(names)
        below: list[list[int]] = [[] for _ in nodes]
        for node, path in enumerate(nodes[1:], 1):
            below[at[path[:-1]]].append(node)
        end = np.arange(1, len(nodes) + 1)
        for node in reversed(range(len(nodes))):
            if below[node]:
                end[node] = end[below[node][-1]]
        return TenantNodes(
            names=tuple(names),
            leaf=np.array([at[path] for path in leaves], dtype=np.intp),
            weight=integers([self.weight(path[-1]) if path else 1 for path in nodes]),
            end=end,
            children=tuple(np.array(each, dtype=np.intp) for each in below),
        )


def _paths(by_name: Mapping[str, Tenant]) -> dict[str, Path]:
    """Return the path of each tenant that was set; raise BadInput if they make no tree."""
    parents = {name: tenant.parent for name, tenant in by_name.items()}
    for name, parent in parents.items():
        if parent is not None and parent not in by_name:
            raise BadInput(
                f"the parent {_quoted(parent)} of tenant {_quoted(name)} was not set as a"
                f" tenant{did_you_mean(parent, by_name)}",
                field="parent",
            )
    order = topological_order(
        {name: [] if parent is None else [parent] for name, parent in parents.items()},
        field="parent",
        itself="tenant {} is its own parent",
        by_others="tenant {} is its own ancestor",
    )
    paths: dict[str, Path] = {}
    for name in order:
        parent = parents[name]
        paths[name] = (name,) if parent is None else (*paths[parent], name)
        if len(paths[name]) > LIMITS.tenant_depth_max:
            raise BadInput(
                f"tenant {_quoted(name)} is on level {len(paths[name])} of the tree; there are at"
                f" most {LIMITS.tenant_depth_max}",
                field="parent",
            )
    return paths


def _quoted(name: str) -> str:
    return repr(shortened(name))
