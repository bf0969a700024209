"""What every store must tell about who runs where, and who would make way.

Goal     What schedulers read to look for victims, as tests that read as stories.
Promise  The answers follow the cell's gap as it is. A change of the gap is news to every scheduler.
Source   docs/decisions/0036-preemption.md, 0037-who-makes-way.md.
"""

from dataclasses import replace

import pytest

from omega.errors import BadInput
from omega.model.arrays import integers
from omega.model.jobs import NEVER_YIELDS, PRECEDENCE_GAP, PRECEDENCE_GAP_MAX
from omega.model.resources import Kind
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.contract import Contract
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, end


class OccupantContract(Contract):
    """Who runs on machines, how much of it yields, and the gap."""

    def test_who_runs_on_machines_comes_with_what_decides_whether_they_make_way(
        self, store: Store
    ) -> None:
        one, two, three = add_a_cell(store, 3)
        spec = a_spec(3, minimum=2, precedence=-3, tenant="a")
        gang = a_running_job(store, spec, [one, two, three])
        stays = a_running_job(store, replace(a_spec(2), preemptible=False), [two, two])
        end(store, gang, 2)
        a_leased_job(store, a_spec())

        there = store.occupants(integers([two, one]))

        assert [gang.id, gang.id, stays.id, stays.id] == there.job.tolist()
        assert [0, 1, 0, 1] == there.task.tolist()
        assert [one, two, two, two] == there.machine.tolist()
        assert [1_000] * 4 == there.amounts[:, Kind.CPU_MILLI].tolist()
        assert (there.started_ms <= store.now_ms()).all()
        assert [gang.id, stays.id] == there.distinct_job.tolist()
        assert [-3, 0] == there.precedence.tolist()
        assert [PRECEDENCE_GAP - 3, NEVER_YIELDS] == there.yields_to.tolist()
        assert [2, 0] == there.minimum.tolist()
        assert ("batch", "batch") == there.scheduler
        assert ("a", stays.spec.tenant) == there.tenant
        assert [(3, 2), (2, 2)] == list(
            zip(there.placed.tolist(), there.running.tolist(), strict=True)
        )
        assert 0 == len(store.occupants(integers([three])).job)
        assert 0 == len(store.occupants(integers([])).distinct_job)

    def test_what_yields_to_a_precedence_is_summed_up_by_machine(self, store: Store) -> None:
        one, two, three, _ = add_a_cell(store, 4, gpus=1)
        gang = a_running_job(store, a_spec(3, minimum=2, precedence=-3), [one, two, three])
        a_running_job(store, a_spec(2), [two, two], memory_mib=7, gpu_0=500)
        a_running_job(store, replace(a_spec(), preemptible=False), [one])
        a_running_job(store, a_spec(precedence=1), [three])
        a_leased_job(store, a_spec())
        end(store, gang, 2)

        all_of_it = store.yielding(PRECEDENCE_GAP)

        assert [one, two] == all_of_it.machine.tolist()
        assert [1_000, 1_000] == all_of_it.amounts[:, Kind.CPU_MILLI].tolist()
        assert [0, 14] == all_of_it.amounts[:, Kind.MEMORY_MIB].tolist()
        assert [0, 1_000] == all_of_it.amounts[:, Kind.GPU_0].tolist()
        less = store.yielding(PRECEDENCE_GAP - 1)
        assert [one, two] == less.machine.tolist()
        assert [1_000, 1_000] == less.amounts.sum(axis=1).tolist()
        assert 0 == len(store.yielding(PRECEDENCE_GAP - 4))
        assert [one, two, three] == store.yielding(PRECEDENCE_GAP + 1).machine.tolist()

    def test_what_yields_follows_the_gap_to_the_ends_of_the_scale(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        a_running_job(store, a_spec(precedence=-(2**31)), [one])
        a_running_job(store, a_spec(precedence=1), [two])

        assert 0 == len(store.yielding(-(2**31)))
        assert [one, two] == store.yielding(2**31 - 1).machine.tolist()
        store.set_precedence_gap(PRECEDENCE_GAP_MAX)
        assert [one] == store.yielding(2**31 - 1).machine.tolist()
        assert 0 == len(store.yielding(-2))

    def test_a_gap_below_one_is_refused(self, store: Store) -> None:
        for gap in (0, -1, PRECEDENCE_GAP_MAX + 1):
            with pytest.raises(BadInput, match="a gap of precedence is 1 to"):
                store.set_precedence_gap(gap)
        assert PRECEDENCE_GAP == store.precedence_gap()

    def test_a_change_of_the_gap_raises_the_generation(self, store: Store) -> None:
        add_a_cell(store, 1)
        before = store.snapshot()

        store.set_precedence_gap(PRECEDENCE_GAP)
        unchanged = store.changes_since(before.mark)
        store.set_precedence_gap(PRECEDENCE_GAP - 1)

        assert before.generation == unchanged.generation
        assert before.generation < store.changes_since(before.mark).generation
        assert before.generation < store.snapshot().generation
