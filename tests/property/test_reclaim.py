"""Who may be evicted for a tenant below its share, judged anew by fractions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from omega.model.arrays import Amounts, integers
from omega.model.claims import Claims, Evictions
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.occupants import Occupants
from omega.model.resources import KINDS, amounts
from omega.ordering.reclaim import Reclaimable, Shares, is_below
from omega.ordering.tenants import Path, Tenant, TenantTree
from omega.store.holdings import RESOURCES
from omega.testing.builders import a_job, a_spec, some_claims
from tests.fixtures.doses import examples

MINE = "m"
PRECEDENCE = 10


@dataclass(frozen=True)
class Running:
    """A job of others that runs on the machines that are looked at."""

    tenant: str
    yields: bool
    is_gang: bool
    tasks: Sequence[tuple[int, int]]
    """The cores and the gigabytes of each."""
    elsewhere: int
    """How many more tasks of it run on other machines."""


@dataclass(frozen=True)
class Case:
    """A cell, and a job that asks for room."""

    tree: TenantTree
    running: Sequence[Running]
    use: dict[str, tuple[int, int]]
    """What each tenant uses, what runs here included."""
    capacity: tuple[int, int]
    job: LeasedJob
    free: tuple[int, int]
    starts: Sequence[int]
    """When each task began: a gang's tasks may have begun at different times."""

    @property
    def shares(self) -> Shares:
        return Shares(
            self.tree.nodes(list(self.use)),
            integers([four(*of) for of in self.use.values()]),
            integers(four(*self.capacity)),
        )

    @property
    def occupants(self) -> Occupants:
        flat = [
            (job, task, it)
            for job, of in enumerate(self.running)
            for task, it in enumerate(of.tasks)
        ]
        of_jobs = [len(it.tasks) + it.elsewhere for it in self.running]
        return Occupants(
            job=integers([job for job, *_ in flat]),
            task=np.array([task for _, task, _ in flat], dtype=np.intp),
            machine=integers([1] * len(flat)),
            amounts=integers(
                [amounts(cpu_milli=cores, memory_mib=gib) for *_, (cores, gib) in flat]
            ).reshape(-1, KINDS),
            started_ms=integers(self.starts),
            distinct_job=integers(range(len(self.running))),
            precedence=integers([0] * len(self.running)),
            yields_to=integers([PRECEDENCE + (not it.yields) for it in self.running]),
            minimum=integers(
                [of * it.is_gang for it, of in zip(self.running, of_jobs, strict=True)]
            ),
            placed=integers(of_jobs),
            running=integers(of_jobs),
            scheduler=("batch",) * len(self.running),
            tenant=tuple(it.tenant for it in self.running),
        )

    def used_below(self, path: Path, use: dict[str, tuple[int, int]] | None = None) -> list[int]:
        """Return the cores and gigabytes used below a node of the tree, named by its path."""
        below = [
            amounts
            for name, amounts in (self.use if use is None else use).items()
            if (self.leaf(name) == path if path[-1] == "" else self.leaf(name)[: len(path)] == path)
        ]
        return [sum(it[at] for it in below) for at in (0, 1)]

    def weight_of(self, path: Path) -> int:
        return 1 if path[-1] == "" else self.tree.weight(path[-1])

    def share(self, path: Path, use: dict[str, tuple[int, int]]) -> Fraction:
        """Return the weighted dominant share of a node."""
        return max(
            Fraction(used, of * self.weight_of(path)) if of else Fraction(0)
            for used, of in zip(self.used_below(path, use), self.capacity, strict=True)
        )

    def leaf(self, tenant: str) -> Path:
        """Return the path of a tenant's own jobs, which has a last part if it is above others."""
        path = self.tree.path(tenant)
        others = (self.tree.path(name) for name in self.use)
        has_children = any(other[: len(path)] == path and other != path for other in others)
        return (*path, "") if has_children else path

    def parting(self, tenant: str) -> tuple[Path, Path]:
        """Return where the paths of the job's tenant and of another part."""
        mine, other = self.leaf(MINE), self.leaf(tenant)
        depth = next(at for at, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b)
        return mine[: depth + 1], other[: depth + 1]


def four(cores: int, gib: int) -> tuple[int, ...]:
    return (cores, gib, *[0] * (len(RESOURCES) - 2))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = [MINE, *"abc"]
    tenants: list[Tenant] = []
    for name in draw(st.permutations(["x", "y", *names]))[: draw(st.integers(0, 6))]:
        parent = draw(st.sampled_from([None, *(tenant.name for tenant in tenants)]))
        tenants.append(Tenant(name, draw(st.integers(1, 3)), parent))
    size = st.tuples(st.integers(0, 3), st.integers(0, 3))
    running = [
        Running(
            draw(st.sampled_from(names)),
            draw(st.booleans()) or draw(st.booleans()),
            draw(st.booleans()),
            draw(st.lists(size, min_size=1, max_size=5)),
            draw(st.integers(0, 1)) * draw(st.integers(0, 1)),
        )
        for _ in range(draw(st.integers(0, 8)))
    ]
    elsewhere = {name: draw(size) for name in names}
    use = {
        name: (
            elsewhere[name][0] + sum(t[0] for it in running if it.tenant == name for t in it.tasks),
            elsewhere[name][1] + sum(t[1] for it in running if it.tenant == name for t in it.tasks),
        )
        for name in names
    }
    asked = draw(st.lists(st.tuples(st.integers(1, 4), size), min_size=1, max_size=2))
    assume(all(cores or gib for _, (cores, gib) in asked))
    groups = tuple(
        TaskGroup(tasks=tasks, cpu_milli=cores, memory_mib=gib) for tasks, (cores, gib) in asked
    )
    minimum = draw(st.integers(0, sum(group.tasks for group in groups)))
    spec = replace(
        a_spec(minimum=0, tenant=MINE, precedence=PRECEDENCE), groups=groups, minimum=minimum
    )
    capacity = draw(st.tuples(st.integers(0, 60), st.integers(1, 60)))
    tasks = sum(len(it.tasks) for it in running)
    return Case(
        TenantTree(tenants),
        running,
        use,
        capacity,
        a_job(spec=spec, job=10**6),
        draw(size),
        draw(st.lists(st.integers(0, 3), min_size=tasks, max_size=tasks)),
    )


def sizes(case: Case) -> list[tuple[int, int]]:
    """Return the cores and the gigabytes of each task of the job."""
    groups = case.job.spec.groups
    return [(group.cpu_milli, group.memory_mib) for group in groups for _ in range(group.tasks)]


def after(case: Case, tasks: Iterable[int], gone: np.ndarray) -> dict[str, tuple[int, int]]:
    """Return what tenants use if these tasks of the job run and those of others do not."""
    changes = [(MINE, *sizes(case)[task]) for task in tasks]
    flat = [(it.tenant, *task) for it in case.running for task in it.tasks]
    for (tenant, cores, gib), is_gone in zip(flat, gone.tolist(), strict=True):
        if is_gone:
            changes.append((tenant, -cores, -gib))
    return {
        name: (
            cores + sum(more for tenant, more, _ in changes if tenant == name),
            gib + sum(more for tenant, _, more in changes if tenant == name),
        )
        for name, (cores, gib) in case.use.items()
    }


def is_fair(case: Case, tasks: Iterable[int], gone: np.ndarray) -> bool:
    """Return whether nobody who loses a task is left with less than the job's tenant then has.

    Nor below the level of its siblings, as it was.
    """
    use = after(case, tasks, gone)
    flat = [it.tenant for it in case.running for _ in it.tasks]
    losers = {tenant for tenant, is_gone in zip(flat, gone.tolist(), strict=True) if is_gone}
    return all(
        max(case.share(mine, use), level_of(case, mine)) <= case.share(other, use)
        for mine, other in map(case.parting, losers - {MINE})
    )


def level_of(case: Case, mine: Path) -> Fraction:
    """Return the share that siblings would have if their use were divided by weight."""
    beside = {
        path[: len(mine)] for path in map(case.leaf, case.use) if path[: len(mine) - 1] == mine[:-1]
    }
    uses = {path: case.used_below(path) for path in beside}
    active = [path for path, used in uses.items() if any(used) or path == mine]
    weights = sum(case.weight_of(path) for path in active)
    return max(
        Fraction(sum(uses[path][at] for path in active), of * weights) if of else Fraction(0)
        for at, of in enumerate(case.capacity)
    )


def reclaimable_of(case: Case) -> Reclaimable:
    return Reclaimable(case.shares, case.job, case.occupants, integers(four(*case.free)))


def claims_of(case: Case, tasks: Sequence[int], named: np.ndarray) -> Claims:
    """Return claims for tasks of the job, the first of which evicts the named tasks."""
    occupants = case.occupants
    at = np.flatnonzero(named)
    evictions = Evictions(np.zeros(len(at), np.intp), occupants.job[at], occupants.task[at])
    return replace(some_claims(tasks, [1] * len(tasks)), evictions=evictions)


def may_ever_go(case: Case) -> list[bool]:
    """Return of each task whether it could be evicted for the job at all."""
    return [
        it.yields and it.tenant != MINE and not (it.is_gang and it.elsewhere)
        for it in case.running
        for _ in it.tasks
    ]


def wholes(case: Case) -> list[list[int]]:
    """Return what goes together: each task that may go, and each gang that may."""
    may, first = may_ever_go(case), 0
    found: list[list[int]] = []
    for it in case.running:
        here = list(range(first, first := first + len(it.tasks)))
        if may[here[0]]:
            found += [here] if it.is_gang else [[at] for at in here]
    return found


@given(case=cases())
@examples(300)
def test_only_who_may_go_is_named_and_gangs_as_a_whole(case: Case) -> None:
    ever = may_ever_go(case)
    for tasks, may_go in reclaimable_of(case).options():
        assert max(1, case.job.lacking) <= tasks <= len(case.job.unplaced)
        assert may_go.any()
        assert all(may for may, goes in zip(ever, may_go.tolist(), strict=True) if goes)
        first = 0
        for it in case.running:
            here = may_go[first : first + len(it.tasks)]
            first += len(it.tasks)
            assert not it.is_gang or here.all() or not here.any()


def test_a_gang_whose_tasks_began_at_different_times_is_named_as_a_whole() -> None:
    """Its tasks began before and after those of another gang of its tenant, of the same size."""
    gang = Running("a", yields=True, is_gang=True, tasks=[(1, 1)] * 4, elsewhere=0)
    case = Case(
        tree=TenantTree([]),
        running=[gang, gang],
        use={MINE: (0, 0), "a": (8, 8)},
        capacity=(60, 60),
        job=a_job(
            job=10**6,
            spec=a_spec(1, cpu_milli=1, memory_mib=1, tenant=MINE, precedence=PRECEDENCE),
        ),
        free=(0, 0),
        starts=[10, 10, 10, 30, 20, 20, 20, 20],
    )
    tasks, may_go = reclaimable_of(case).by_sums()

    assert 1 == tasks
    assert [True] * 4 + [False] * 4 == may_go.tolist()


@given(case=cases(), data=st.data())
@examples(600)
def test_what_is_allowed_leaves_nobody_with_less_than_the_tenant_that_evicts(
    case: Case, data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.sampled_from(wholes(case) or [[]]), max_size=8))
    count = data.draw(st.integers(1, len(case.job.unplaced)))
    tasks = data.draw(st.permutations(case.job.unplaced.tolist()))[:count]
    gone = np.zeros(sum(len(it.tasks) for it in case.running), dtype=np.bool_)
    gone[[at for part in parts for at in part]] = True
    named = gone.copy()
    for part in parts:  # the commit evicts the rest of a gang itself
        named[part[1:]] &= data.draw(st.booleans()) or len(part) == 1

    assert is_fair(case, tasks, gone) == reclaimable_of(case).allows(claims_of(case, tasks, named))


@given(case=cases())
@examples(300)
def test_what_sums_say_suffices_and_is_allowed(case: Case) -> None:
    tasks, may_go = reclaimable_of(case).by_sums()
    flat: Amounts = integers([task for it in case.running for task in it.tasks]).reshape(-1, 2)
    supply = np.array(case.free) + flat[may_go].sum(axis=0)

    assert tasks == 0 or max(1, case.job.lacking) <= tasks <= len(case.job.unplaced)
    assert (supply >= integers([*sizes(case)[:tasks], (0, 0)]).sum(axis=0)).all()
    assert is_fair(case, range(tasks), may_go)


@given(case=cases())
@examples(300)
def test_who_may_make_way_alone_is_named_by_some_option(case: Case) -> None:
    fewest = max(1, case.job.lacking)
    needed = integers(sizes(case)[:fewest]).sum(axis=0) - np.array(case.free)
    flat: Amounts = integers([task for it in case.running for task in it.tasks]).reshape(-1, 2)
    masks = [may_go for _, may_go in reclaimable_of(case).options()]
    for whole in wholes(case):
        gone = np.zeros(len(flat), dtype=np.bool_)
        gone[whole] = True
        if (flat[whole].sum(axis=0) >= needed).all() and is_fair(case, range(fewest), gone):
            assert any(may_go[whole].all() for may_go in masks)


@given(case=cases())
@examples(300)
def test_a_tenant_is_below_if_one_beside_it_would_still_have_more(case: Case) -> None:
    path = case.leaf(MINE)
    least = max(1, case.job.lacking)
    nobody = np.zeros(sum(len(it.tasks) for it in case.running), dtype=np.bool_)
    use = after(case, range(least), nobody)
    below = any(
        case.share(mine, use) < case.share(other, case.use)
        for name in case.use
        if name != MINE
        for mine, other in [case.parting(name)]
    )

    assert len(path) >= 1
    assert below == is_below(case.shares, case.job)
