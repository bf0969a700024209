"""Fair order against a slow twin: every share anew, as fractions, before each job."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import Amounts, integers
from omega.ordering.fair import Lanes, fair_order
from omega.ordering.tenants import Path, Tenant, TenantTree
from tests.fixtures.doses import examples

T = TypeVar("T")

KINDS = 2
AMOUNTS = st.lists(st.integers(0, 9), min_size=KINDS, max_size=KINDS)


@dataclass(frozen=True)
class Queue:
    """All that the order depends on."""

    tree: TenantTree
    names: Sequence[str]
    lanes: Lanes
    use: Amounts
    capacity: Amounts
    eligible: Sequence[bool]


@st.composite
def queues(draw: st.DrawFn) -> Queue:
    listed: list[Tenant] = []
    for name in draw(st.permutations("abcdef"))[: draw(st.integers(0, 6))]:
        parent = draw(st.sampled_from([None, *(tenant.name for tenant in listed)]))
        listed.append(Tenant(name, draw(st.integers(1, 3)), parent))
    names = draw(st.permutations("abcdefg"))[: draw(st.integers(1, 7))]
    count = draw(st.integers(0, 10))

    def for_each(elements: st.SearchStrategy[T]) -> list[T]:
        return draw(st.lists(elements, min_size=count, max_size=count))

    lanes = Lanes(
        tenant=integers(for_each(st.integers(0, len(names) - 1))),
        pending=integers(for_each(st.integers(0, 4))),
        demand=integers(for_each(AMOUNTS)).reshape(-1, KINDS),
        precedence=integers(for_each(st.integers(-1, 1))),
        head=integers(draw(st.permutations(range(count)))),
    )
    use = integers([draw(AMOUNTS) for _ in names])
    capacity = integers(draw(st.lists(st.integers(0, 30), min_size=KINDS, max_size=KINDS)))
    eligible = for_each(st.booleans())
    return Queue(TenantTree(listed), names, lanes, use, capacity, eligible)


def slow_order(queue: Queue, wanted: int) -> list[int]:
    """Return the lanes of the jobs that go, found from the definition alone."""
    pending = [
        int(count) * allowed
        for count, allowed in zip(queue.lanes.pending, queue.eligible, strict=True)
    ]
    used = {name: row.copy() for name, row in zip(queue.names, queue.use, strict=True)}
    order: list[int] = []
    while any(pending) and len(order) < wanted:
        tenant = poorest(queue, used, pending)
        mine = [
            lane
            for lane in range(len(pending))
            if pending[lane] and queue.names[queue.lanes.tenant[lane]] == tenant
        ]
        order.append(min(mine, key=lambda at: (-queue.lanes.precedence[at], queue.lanes.head[at])))
        pending[order[-1]] -= 1
        used[tenant] += queue.lanes.demand[order[-1]]
    return order


def poorest(queue: Queue, used: dict[str, Amounts], pending: Sequence[int]) -> str:
    """Go down from the root to a tenant that has a job."""
    waits = {
        queue.names[tenant]
        for tenant, count in zip(queue.lanes.tenant, pending, strict=True)
        if count
    }
    path: Path = ()
    below = set(queue.names)
    while len(below) > 1:
        groups: dict[str, set[str]] = {}
        for name in below:
            groups.setdefault((*queue.tree.path(name), "")[len(path)], set()).add(name)
        child = min(
            (each for each, tenants in groups.items() if tenants & waits),
            key=lambda each: (share(queue, used, each, groups[each]), each),
        )
        below, path = groups[child], (*path, child)
    return below.pop()


def share(queue: Queue, used: dict[str, Amounts], child: str, below: set[str]) -> Fraction:
    """Return the weighted dominant share of a child; '' are the own jobs of its parent."""
    total = sum((used[name] for name in below), start=np.zeros(KINDS, dtype=np.int64))
    shares = [Fraction(int(u), int(of)) for u, of in zip(total, queue.capacity, strict=True) if of]
    return max(shares, default=Fraction(0)) / (queue.tree.weight(child) if child else 1)


@given(queues(), st.integers(0, 30))
@examples(1_000)
def test_the_order_is_that_of_the_slow_twin(queue: Queue, wanted: int) -> None:
    order = fair_order(
        queue.lanes,
        queue.tree.nodes(queue.names),
        queue.use,
        queue.capacity,
        wanted,
        eligible=np.array(queue.eligible, dtype=np.bool_),
    )

    assert slow_order(queue, wanted) == order.lane.tolist()
    assert np.bincount(order.lane, minlength=len(queue.eligible)).tolist() == order.count.tolist()


@given(queues(), st.integers(0, 15), st.integers(0, 15))
@examples(500)
def test_the_first_jobs_are_the_same_however_many_are_wanted(
    queue: Queue, few: int, more: int
) -> None:
    nodes = queue.tree.nodes(queue.names)
    first = fair_order(queue.lanes, nodes, queue.use, queue.capacity, few)
    longer = fair_order(queue.lanes, nodes, queue.use, queue.capacity, few + more)

    assert first.lane.tolist() == longer.lane[:few].tolist()
