"""Who may be evicted for a tenant below its share, judged anew by fractions."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from omega.model.arrays import Amounts, integers
from omega.model.jobs import LeasedJob
from omega.model.occupants import Occupants
from omega.model.resources import KINDS, amounts
from omega.ordering.reclaim import Shares, is_below, reclaimable
from omega.ordering.tenants import Path, Tenant, TenantTree
from omega.store.holdings import RESOURCES
from omega.testing.builders import a_job, a_spec
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
        of_jobs = [len(it.tasks) for it in self.running]
        return Occupants(
            job=integers([job for job, *_ in flat]),
            task=np.array([task for _, task, _ in flat], dtype=np.intp),
            machine=integers([1] * len(flat)),
            amounts=integers(
                [amounts(cpu_milli=cores, memory_mib=gib) for *_, (cores, gib) in flat]
            ).reshape(-1, KINDS),
            started_ms=integers(range(len(flat))),
            about=integers(range(len(self.running))),
            precedence=integers([0] * len(self.running)),
            yields_to=integers([PRECEDENCE + (not it.yields) for it in self.running]),
            minimum=integers([len(it.tasks) * it.is_gang for it in self.running]),
            placed=integers(of_jobs),
            running=integers(of_jobs),
            scheduler=("batch",) * len(self.running),
            tenant=tuple(it.tenant for it in self.running),
        )

    def share(self, path: Path, use: dict[str, tuple[int, int]]) -> Fraction:
        """Return the weighted dominant share of a node of the tree, named by its path."""
        whose = path[:-1] if path[-1] == "" else path
        below = [
            amounts
            for name, amounts in use.items()
            if (self.leaf(name) == path if path[-1] == "" else self.leaf(name)[: len(path)] == path)
        ]
        weight = 1 if path[-1] == "" else self.tree.weight(whose[-1])
        return max(
            Fraction(sum(it[at] for it in below), of * weight) if of else Fraction(0)
            for at, of in enumerate(self.capacity)
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
    tasks, minimum = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    cores, gib = draw(size)
    assume(cores or gib)
    spec = a_spec(
        tasks,
        minimum=min(minimum, tasks),
        tenant=MINE,
        precedence=PRECEDENCE,
        cpu_milli=cores,
        memory_mib=gib,
    )
    capacity = draw(st.tuples(st.integers(0, 60), st.integers(1, 60)))
    return Case(
        TenantTree(tenants), running, use, capacity, a_job(spec=spec, job=10**6), draw(size)
    )


def after(case: Case, tasks: int, gone: np.ndarray) -> dict[str, tuple[int, int]]:
    """Return what tenants use if these tasks of the job run and those of others do not."""
    group = case.job.spec.groups[0]
    use = {name: list(of) for name, of in case.use.items()}
    use[MINE] = [use[MINE][0] + group.cpu_milli * tasks, use[MINE][1] + group.memory_mib * tasks]
    flat = [(it.tenant, task) for it in case.running for task in it.tasks]
    for (tenant, task), is_gone in zip(flat, gone.tolist(), strict=True):
        if is_gone:
            use[tenant] = [use[tenant][0] - task[0], use[tenant][1] - task[1]]
    return {name: (of[0], of[1]) for name, of in use.items()}


@given(case=cases())
@examples(300)
def test_nobody_is_left_with_less_than_the_tenant_that_evicts(case: Case) -> None:
    tasks, may_go = reclaimable(case.shares, case.job, case.occupants, integers(four(*case.free)))
    flat = [(job, it) for job, it in enumerate(case.running) for _ in it.tasks]
    use = after(case, tasks, may_go)

    assert 0 <= tasks <= len(case.job.unplaced)
    assert tasks >= case.job.lacking or not tasks
    for (job, it), goes in zip(flat, may_go.tolist(), strict=True):
        if not goes:
            continue
        assert it.yields
        assert it.tenant != MINE
        mine, other = case.parting(it.tenant)
        assert case.share(mine, use) <= case.share(other, use)
        if it.is_gang:
            assert all(may_go[at] for at, (number, _) in enumerate(flat) if number == job)


@given(case=cases())
@examples(300)
def test_what_may_go_suffices_for_the_tasks(case: Case) -> None:
    group = case.job.spec.groups[0]
    task = np.array([group.cpu_milli, group.memory_mib])
    tasks, may_go = reclaimable(case.shares, case.job, case.occupants, integers(four(*case.free)))
    flat: Amounts = integers([task for it in case.running for task in it.tasks]).reshape(-1, 2)
    supply = np.array(case.free) + flat[may_go].sum(axis=0)

    assert (supply >= tasks * task).all()


@given(case=cases())
@examples(300)
def test_a_tenant_is_below_if_one_beside_it_would_still_have_more(case: Case) -> None:
    path = case.leaf(MINE)
    least = max(1, case.job.lacking)
    use = after(case, least, np.zeros(sum(len(it.tasks) for it in case.running), dtype=np.bool_))
    below = any(
        case.share(mine, use) < case.share(other, case.use)
        for name in case.use
        if name != MINE
        for mine, other in [case.parting(name)]
    )

    assert len(path) >= 1
    assert below == is_below(case.shares, case.job)
