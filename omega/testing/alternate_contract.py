"""What every store must do about alternates: other machines for claims that are refused on theirs.

Goal     Rule 7 of the commit rule as stories.
Promise  An alternate is tried for a reason of the machine alone, in the order named, and judged as
         a claim of its own.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from omega.model.arrays import integers
from omega.model.claims import Alternates, ConflictRule
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.resources import Kind, amounts
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, or_on, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    grant,
    places,
    verdicts_of,
)
from omega.testing.twin import differences

ACCEPTED, OVERCOMMIT = Verdict.ACCEPTED, Verdict.OVERCOMMIT


def fill(store: Store, machine: int) -> None:
    """Leave no room on a machine."""
    a_running_job(store, a_spec(), [machine], cpu_milli=4_000)


def drain(store: Store, machine: int) -> None:
    """Let a machine take nothing new."""
    store.set_state(integers([machine]), MachineState.DRAINING)


def remove(store: Store, machine: int) -> None:
    """Take a machine out of the cell."""
    store.set_state(integers([machine]), MachineState.GONE)


class AlternateContract(Contract):
    """Second choices, in the same round trip."""

    @pytest.mark.parametrize("spoil", [fill, drain, remove])
    def test_a_claim_refused_on_its_machine_takes_its_alternate(
        self, store: Store, spoil: Callable[[Store, int], None]
    ) -> None:
        one, two = add_a_cell(store, 2)
        spoil(store, one)
        job = a_leased_job(store, a_spec())

        outcome = store.commit(
            a_transaction(claims_of_job(job, or_on(a_claim(0, machine=one), (0, two))))
        )

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [two] == outcome.machine.tolist()
        assert two == places(store)[job.id, 0]
        assert [one, two] == outcome.fresh.id.tolist()

    def test_a_claim_that_stands_leaves_its_alternates_alone(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec())

        outcome = store.commit(
            a_transaction(claims_of_job(job, or_on(a_claim(0, machine=one), (0, two))))
        )

        assert [one] == outcome.machine.tolist()
        assert [1, 0] == outcome.fresh.sequence.tolist()

    def test_alternates_are_tried_in_the_order_named(self, store: Store) -> None:
        one, two, three = add_a_cell(store, 3)
        fill(store, one)
        job = a_leased_job(store, a_spec(2))
        claims = or_on(
            some_claims([0, 1], [one, one], cpu_milli=3_000),
            (0, three),
            (0, two),
            (1, three),
            (1, two),
        )

        outcome = store.commit(a_transaction(claims_of_job(job, claims)))

        assert [ACCEPTED, ACCEPTED] == verdicts_of(outcome)
        assert [three, two] == outcome.machine.tolist()

    def test_refused_everywhere_the_first_reason_is_told(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        fill(store, one)
        drain(store, two)
        job = a_leased_job(store, a_spec())

        outcome = store.commit(
            a_transaction(
                claims_of_job(job, or_on(a_claim(0, machine=one), (0, two), (0, two + 900)))
            )
        )

        assert [OVERCOMMIT] == verdicts_of(outcome)
        assert [one] == outcome.machine.tolist()
        assert [one, two] == outcome.fresh.id.tolist()

    def test_no_alternate_helps_against_the_job_or_the_task(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [one])
        lost = a_running_job(store, a_spec(), [one])

        outcome = store.commit(
            a_transaction(
                claims_of_job(job, or_on(a_claim(0, machine=one), (0, two))),
                claims_of_job(lost, or_on(a_claim(0, machine=one), (0, two))),
            )
        )

        assert [Verdict.ALREADY_PLACED, Verdict.LEASE_LOST] == verdicts_of(outcome)

    def test_by_sequence_an_alternate_has_a_sequence_of_its_own(self, store: Store) -> None:
        one, two, three = add_a_cell(store, 3)
        a_running_job(store, a_spec(2), [one, two])
        job = a_leased_job(store, a_spec())
        claim = or_on(a_claim(0, machine=one, seen=0), (0, two), (0, three), seen=0)

        outcome = store.commit(a_transaction(claims_of_job(job, claim), rule=ConflictRule.SEQUENCE))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [three] == outcome.machine.tolist()

    def test_an_alternate_takes_what_it_asks_for_there(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, gpus=2)
        drain(store, one)
        job = a_leased_job(store, a_spec())
        claim = replace(
            a_claim(0, machine=one, gpu_0=1_000),
            shapes=np.stack([amounts(gpu_0=1_000), amounts(gpu_1=1_000)]),
            alternates=Alternates(
                claim=np.zeros(1, dtype=np.intp),
                machine=integers([two]),
                seen=integers([0]),
                shape=np.ones(1, dtype=np.intp),
            ),
        )

        outcome = store.commit(a_transaction(claims_of_job(job, claim)))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert amounts(gpu_1=1_000).tolist() == outcome.fresh.used[1].tolist()
        assert 1_000 == store.allocations().amounts[0, Kind.GPU_1]

    def test_a_gang_may_stand_on_alternates(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_leased_job(store, a_spec(4, minimum=4))
        claims = or_on(some_claims(range(4), [one] * 4), (2, two), (3, two))

        outcome = store.commit(a_transaction(claims_of_job(gang, claims)))

        assert [ACCEPTED] * 4 == verdicts_of(outcome)
        assert [one, one, two, two] == outcome.machine.tolist()

    def test_a_broken_gang_gives_back_its_alternates(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        gang = a_leased_job(store, a_spec(3, minimum=3))
        other = a_leased_job(store, a_spec())
        claims = or_on(some_claims(range(3), [one] * 3), (1, two), (2, two))

        outcome = store.commit(
            a_transaction(
                claims_of_job(gang, claims), claims_of_job(other, a_claim(0, machine=two))
            )
        )

        assert [Verdict.GANG_BROKEN] * 2 + [OVERCOMMIT, ACCEPTED] == verdicts_of(outcome)
        assert [one, one, one, two] == outcome.machine.tolist()
        assert {(other.id, 0): two} == places(store)

    def test_the_same_id_tells_where_claims_landed(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        drain(store, one)
        job = a_leased_job(store, a_spec())
        transaction = a_transaction(claims_of_job(job, or_on(a_claim(0, machine=one), (0, two))))

        first = store.commit(transaction)

        assert [] == differences(first, store.commit(transaction))
