"""What every store must tell those who watch a cell.

Goal     What was judged lately and the queue in sums, as tests that read as stories.
Promise  Nothing is missed between two calls; a call may repeat what the one before returned.
Source   omega/store/watching.py.
"""

from collections import Counter

from omega.lifecycle.states import ParkReason, State
from omega.model.outcomes import Verdict
from omega.store.leases import Parking
from omega.store.protocols import Store
from omega.store.watching import Judged
from omega.testing.builders import a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import a_leased_job, add_a_cell, claim, end, grant, submit_and_lease

Claim = tuple[str, str, int, Verdict]
"""Kind, replica, machine, verdict."""


def claims_of(judged: Judged) -> list[Claim]:
    """Return the claims of transactions one by one."""
    starts = [0, *judged.ends.tolist()]
    return [
        (judged.scheduler[n], judged.replica[n], machine, Verdict(verdict))
        for n, start in enumerate(starts[:-1])
        for machine, verdict in zip(
            judged.machine[start : starts[n + 1]].tolist(),
            judged.verdict[start : starts[n + 1]].tolist(),
            strict=True,
        )
    ]


class WatchingContract(Contract):
    """Transactions as they were judged, and the queue in sums."""

    def test_before_the_first_commit_nothing_was_judged(self, store: Store) -> None:
        judged = store.judged_since(0)

        assert 0 == len(judged) == len(judged.machine)
        assert judged.are_all

    def test_what_was_granted_and_refused_is_told_in_order(self, store: Store) -> None:
        a, b, _ = add_a_cell(store, cpu_milli=2_000)
        one, two = submit_and_lease(store, a_spec(2), a_spec(3))
        first = a_transaction(
            claims_of_job(one, some_claims([0, 1], [a, b], cpu_milli=1_500)), replica="0"
        )
        second = a_transaction(
            claims_of_job(two, some_claims([0, 1, 2], [a, a, b], cpu_milli=500)), replica="1"
        )
        store.commit(first)
        store.commit(second)

        judged = store.judged_since(0)

        assert (first.id, second.id) == judged.id
        assert judged.are_all
        assert [
            ("batch", "0", a, Verdict.ACCEPTED),
            ("batch", "0", b, Verdict.ACCEPTED),
            ("batch", "1", a, Verdict.ACCEPTED),
            ("batch", "1", a, Verdict.OVERCOMMIT),
            ("batch", "1", b, Verdict.ACCEPTED),
        ] == claims_of(judged)

    def test_a_transaction_that_was_granted_nothing_is_told_too(self, store: Store) -> None:
        a, *_ = add_a_cell(store, cpu_milli=500)
        claim(store, a_leased_job(store), [0], [a])

        assert [("batch", "0", a, Verdict.OVERCOMMIT)] == claims_of(store.judged_since(0))

    def test_only_what_is_new_is_told_again(self, store: Store) -> None:
        a, b, _ = add_a_cell(store)
        one, two = submit_and_lease(store, a_spec(2), a_spec())
        grant(store, one, [0], [a])
        before = store.judged_since(0)
        grant(store, two, [0], [b])
        grant(store, one, [1], [b])

        new = store.judged_since(before.mark)
        nothing = store.judged_since(new.mark)

        # A transaction that ran meanwhile may make a store return the same twice.
        assert 2 == len(set(new.id) - set(before.id))
        assert set() == set(nothing.id) - set(new.id)
        assert Counter(claims_of(new))["batch", "0", b, Verdict.ACCEPTED] == 2

    def test_a_repeated_commit_is_told_once(self, store: Store) -> None:
        a, *_ = add_a_cell(store)
        job = a_leased_job(store)
        transaction = a_transaction(claims_of_job(job, some_claims([0], [a])))
        store.commit(transaction)
        store.commit(transaction)

        assert (transaction.id,) == store.judged_since(0).id

    def test_an_empty_queue_has_no_lines(self, store: Store) -> None:
        assert [] == store.queue()

    def test_the_queue_is_summed_by_kind_tenant_and_what_is_waited_for(self, store: Store) -> None:
        a, *_ = add_a_cell(store)
        ran, parked, again = submit_and_lease(store, a_spec(), a_spec(3, tenant="ann"), a_spec(2))
        grant(store, ran, [0], [a])
        grant(store, parked, [0], [a])
        grant(store, again, [0, 1], [a, a])
        end(store, again, 0, 1)
        store.park([Parking(parked.id, parked.token, ParkReason.NO_ROOM, "")])
        store.submit([a_spec(2, tenant="bob"), a_spec(5, tenant="bob"), a_spec(scheduler="web")])

        lines = store.queue()

        assert [
            ("batch", "bob", State.PENDING, None, 2, 7),
            ("batch", "ann", State.PARKED, ParkReason.NO_ROOM, 1, 2),
            ("web", "default", State.PENDING, None, 1, 1),
        ] == [
            (it.scheduler, it.tenant, it.state, it.park_reason, it.jobs, it.unplaced)
            for it in lines
        ]
        told = {job.id: job.submitted_ms for job in store.jobs()}
        assert min(told.values()) <= lines[0].oldest_ms <= max(told.values())
