"""Two tenants in one small system, one of them with a quota."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from omega.events import JobParked, JobsWoken
from omega.lifecycle.states import ParkReason
from omega.metrics.facts import merge
from omega.model.arrays import Amounts
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome, Verdict
from omega.model.quotas import BUDGETS, Budget, Quota, QuotaScope, QuotaUse, cost
from omega.store.protocols import Store
from omega.testing.pass_through import PassThrough
from tests.simulation.worlds import SEEDS, World, one_of_each, random_specs

ANN = {Budget.CPU_MILLI: 16_000, Budget.JOBS: 4}
"""As much as the largest of the jobs needs at once, of forty cores."""
DEEDS = 30


class Bystander(PassThrough):
    """Watches what ann holds: a commit may raise it to her limit, and no further."""

    def __init__(self, store: Store, world: World, hers: set[int]) -> None:
        super().__init__(store)
        self.world = world
        self.hers = hers
        self.limits = ANN
        self.most: Amounts = np.zeros(BUDGETS, np.int64)

    def commit(self, transaction: Transaction) -> Outcome:
        before = self.held()
        try:
            return super().commit(transaction)
        finally:  # also where the reply gets lost
            held = self.held()
            limits = Quota(QuotaScope.TENANT, "ann", self.limits).row
            assert (held <= np.maximum(before, limits)).all()
            self.most = np.maximum(self.most, held)

    def held(self) -> Amounts:
        """Count what her jobs hold, from what runs."""
        live = self.world.audited.allocations()
        mine = np.isin(live.job, list(self.hers))
        held: Amounts = cost(live.amounts[mine]).sum(axis=0)
        held[Budget.JOBS] = len(np.unique(live.job[mine]))
        return held


class Operator:
    """Lowers ann's limits, also below what she holds, raises them, and lifts the quota."""

    def __init__(self, bystander: Bystander) -> None:
        self.bystander = bystander
        self.world = bystander.world
        self.deeds = 0
        self.overdrawn = 0

    def turn(self) -> None:
        if self.deeds == DEEDS or self.world.rng.random() > 0.1:
            return
        self.deeds += 1
        share = 0.0 if self.deeds == DEEDS else float(self.world.rng.choice([0, 0.3, 1, 2]))
        if self.deeds == DEEDS or share > 1:
            self.world.audited.remove_quota(QuotaScope.TENANT, "ann")
            self.bystander.limits = {}
            return
        self.bystander.limits = {budget: int(share * most) for budget, most in ANN.items()}
        self.world.audited.set_quota(Quota(QuotaScope.TENANT, "ann", self.bystander.limits))
        (use,) = self.world.audited.quotas()
        self.overdrawn += min(use.left.values()) < 0


def a_shared_world(seed: int, *, unreliable: bool = False) -> tuple[World, Bystander]:
    """Return a world in which half of the jobs are ann's."""
    world = World(seed, unreliable=unreliable)
    specs = [
        replace(spec, tenant=("ann", "bob")[number % 2])
        for number, spec in enumerate(random_specs(world.rng, jobs=40))
    ]
    jobs = world.audited.submit(specs)
    world.audited.set_quota(Quota(QuotaScope.TENANT, "ann", ANN))
    bystander = Bystander(world.store, world, set(jobs[::2]))
    world.store = bystander
    return world, bystander


def drain(world: World) -> dict[str, float]:
    """Run until every job is over; return the claims refused, by verdict."""
    processes = one_of_each(world)
    world.begin(*processes)
    world.run()
    world.audited.audit()
    facts = merge(*(process.fold.facts() for process in processes))
    refused: dict[str, float] = facts["totals"]["refused"]
    return refused


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unreliable", [False, True])
def test_a_tenant_never_holds_more_than_its_quota_and_gets_on_nevertheless(
    seed: int, *, unreliable: bool
) -> None:
    world, bystander = a_shared_world(seed, unreliable=unreliable)

    refused = drain(world)

    parked = Counter(event.reason for event in world.events if isinstance(event, JobParked))
    assert refused[Verdict.QUOTA.name.lower()] > 0
    assert parked[ParkReason.OVER_QUOTA.value] > 0
    assert any(isinstance(event, JobsWoken) for event in world.events)
    assert all(bystander.most[budget] == limit for budget, limit in ANN.items())
    assert [QuotaUse(Quota(QuotaScope.TENANT, "ann", ANN), ANN)] == world.audited.quotas()


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_may_change_all_the_time(seed: int) -> None:
    world, bystander = a_shared_world(seed)
    operator = Operator(bystander)
    world.every(0.02, operator.turn)

    refused = drain(world)

    assert DEEDS == operator.deeds
    assert operator.overdrawn > 0
    assert refused[Verdict.QUOTA.name.lower()] > 0
