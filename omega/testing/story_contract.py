"""What every store must tell of the past: what is on record of one job, and of one machine.

Goal     The reads of a job's and a machine's story, as tests that read as stories.
Promise  A record names who did it. What goes on has no end.
Source   omega/store/stories.py.
"""

from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.store.protocols import Store
from omega.store.stories import PastRun, RunEnd
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
    submit_and_lease,
)


def places_of(runs: tuple[PastRun, ...]) -> list[tuple[int, int, int, RunEnd | None]]:
    """Return job, task, machine and end of each run."""
    return [(it.job, it.task, it.machine, it.end) for it in runs]


class JobStoryContract(Contract):
    """What is on record of a job."""

    def test_a_run_is_told_while_it_goes_on_and_when_it_is_over(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_running_job(store, a_spec(2), [one, two])

        assert [(job.id, 0, one, None), (job.id, 1, two, None)] == sorted(
            places_of(store.job_records(job.id).runs), key=lambda it: it[1]
        )
        end(store, job, 1)
        told = store.job_records(job.id)

        assert [(job.id, 0, one, None), (job.id, 1, two, RunEnd.ENDED)] == places_of(told.runs)
        assert told.are_all_runs
        assert told.runs[1].ended_ms is not None
        assert told.runs[1].started_ms <= told.runs[1].ended_ms
        assert {one: "machine-1", two: "machine-2"} == dict(told.names)

    def test_an_eviction_names_who_and_for_which_job(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(precedence=10), [machine])
        high = a_leased_job(store, a_spec(precedence=20))
        taken = evicting(a_claim(0, machine=machine), (0, low.id, 0))
        transaction = a_transaction(claims_of_job(high, taken))
        store.commit(transaction)

        told = store.job_records(low.id)

        (eviction,) = told.evictions
        assert (transaction.id, "batch", "0") == (
            eviction.transaction,
            eviction.scheduler,
            eviction.replica,
        )
        assert (low.id, 0, machine) == (eviction.job, eviction.task, eviction.machine)
        assert (None, (high.id,)) == (eviction.moved_to, eviction.for_jobs)
        assert [(low.id, 0, machine, RunEnd.EVICTED)] == places_of(told.runs)
        assert () == store.job_records(high.id).evictions

    def test_a_move_tells_both_places(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [one])
        moved = evicting(a_claim(0, machine=two), (0, job.id, 0))
        store.commit(a_transaction(claims_of_job(job, moved)))

        told = store.job_records(job.id)

        (eviction,) = told.evictions
        assert (one, two) == (eviction.machine, eviction.moved_to)
        assert [(job.id, 0, two, None), (job.id, 0, one, RunEnd.EVICTED)] == places_of(told.runs)

    def test_a_run_that_its_machine_ended_is_lost(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        store.set_state(integers([machine]), MachineState.DOWN)
        store.lose_tasks(integers([machine]))

        told = store.job_records(job.id)

        assert [(job.id, 0, machine, RunEnd.LOST)] == places_of(told.runs)
        assert () == told.evictions

    def test_what_was_searched_is_told(self, store: Store) -> None:
        assert (0, None, True) == self.searched(store, 1)
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])

        transactions, oldest_ms, are_all = self.searched(store, job.id)

        assert (1, True) == (transactions, are_all)
        assert oldest_ms == store.job_records(job.id).transactions[0].committed_ms

    def searched(self, store: Store, job: int) -> tuple[int, int | None, bool]:
        """Return which records were searched."""
        searched = store.job_records(job).searched
        return searched.transactions, searched.oldest_ms, searched.are_all


class MachineStoryContract(Contract):
    """What is on record of a machine."""

    def test_who_was_granted_and_who_was_refused(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        winner, other, loser = submit_and_lease(store, a_spec(3), a_spec(), a_spec(2))
        grant(store, winner, [0, 2], [one, one])
        grant(store, other, [0], [two])
        claim(store, loser, [1, 0], [one, two])

        told = store.machine_records(one)

        assert [
            ((loser.id,), (1,), (Verdict.OVERCOMMIT,)),
            ((winner.id,) * 2, (0, 2), (Verdict.ACCEPTED,) * 2),
        ] == [(it.jobs, it.tasks, it.verdicts) for it in told.visits]
        assert {("batch", "0")} == {(it.scheduler, it.replica) for it in told.visits}
        # Tasks of one commit may start in two milliseconds, and the newest run comes first.
        runs = sorted(places_of(told.runs), key=lambda place: place[:2])
        assert [(winner.id, 0, one, None), (winner.id, 2, one, None)] == runs
        assert (3, True, True) == (
            told.searched.transactions,
            told.searched.are_all,
            told.are_all_runs,
        )

    def test_what_was_evicted_there(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        low = a_running_job(store, a_spec(2, precedence=10), [one, two])
        high = a_leased_job(store, a_spec(precedence=20))
        taken = evicting(a_claim(0, machine=two), (0, low.id, 1))
        store.commit(a_transaction(claims_of_job(high, taken)))

        told = store.machine_records(two)

        assert [(low.id, 1, two)] == [(it.job, it.task, it.machine) for it in told.evictions]
        assert () == store.machine_records(one).evictions
        assert [(high.id, 0, two, None), (low.id, 1, two, RunEnd.EVICTED)] == places_of(told.runs)

    def test_a_machine_that_never_was_has_no_story(self, store: Store) -> None:
        add_a_cell(store, 1)

        told = store.machine_records(1_000)

        assert ((), (), ()) == (told.visits, told.evictions, told.runs)
