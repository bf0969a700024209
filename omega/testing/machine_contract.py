"""What every store must do about machines that drain, fail, leave or change in size.

Goal     The states and sizes of a machine as tests that read as stories.
Promise  A task counts until it has ended. A task that is evicted by force is pending again and is
         placed again exactly once. A broken gang loses all its tasks.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

import pytest

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.model.arrays import Amounts, integers
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.resources import Kind, machine_capacity
from omega.store.protocols import Store
from omega.testing.builders import a_group, a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
    lease_all,
    places,
    row_of,
    status_of,
    verdicts_of,
)
from omega.testing.twin import row_differences

ACCEPTED, CLOSED, GONE, OVERCOMMIT = (
    Verdict.ACCEPTED,
    Verdict.CLOSED,
    Verdict.GONE,
    Verdict.OVERCOMMIT,
)
OPEN, DRAINING = MachineState.OPEN, MachineState.DRAINING
DOWN, LEFT = MachineState.DOWN, MachineState.GONE


def put(store: Store, state: MachineState, *machines: int) -> int:
    """Set the state of machines; return how many changed."""
    return store.set_state(integers(list(machines)), state)


def cores(number: int, *, gpus: int = 0) -> Amounts:
    """Return the capacity of a machine of the test cell with so many cores."""
    return machine_capacity(number * 1_000, 16_384, 100_000, gpus)


class MachineStateContract(Contract):
    """The states open, draining, down and gone."""

    @pytest.mark.parametrize(
        ("state", "verdict"), [(DRAINING, CLOSED), (DOWN, CLOSED), (LEFT, GONE)]
    )
    def test_a_machine_that_is_not_open_takes_nothing_new(
        self, store: Store, state: MachineState, verdict: Verdict
    ) -> None:
        one, two = add_a_cell(store, 2)
        runs = a_running_job(store, a_spec(), [one])
        job = a_leased_job(store, a_spec(2))

        assert 1 == put(store, state, one)
        assert [verdict, ACCEPTED] == verdicts_of(claim(store, job, [0, 1], [one, two]))
        assert one == places(store)[runs.id, 0]
        assert 1_000 == row_of(store, one).used[0, Kind.CPU_MILLI]

    @pytest.mark.parametrize("state", [DRAINING, DOWN])
    def test_a_machine_that_opens_again_takes_claims(
        self, store: Store, state: MachineState
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        put(store, state, machine)
        put(store, OPEN, machine)

        grant(store, a_leased_job(store, a_spec()), [0], [machine])

    def test_a_change_of_state_raises_sequence_and_revision(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        other = row_of(store, two)
        mark = store.snapshot().mark

        assert 1 == put(store, DRAINING, one, one)
        assert [1] == row_of(store, one).sequence.tolist()
        assert [1] == row_of(store, one).revision.tolist()
        assert [DRAINING] == row_of(store, one).state.tolist()
        assert [] == row_differences(other, row_of(store, two))
        assert one in store.changes_since(mark).rows.id

    def test_the_same_state_again_changes_nothing(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        put(store, DRAINING, one)
        before = row_of(store, one)

        assert 1 == put(store, DRAINING, one, two)
        assert [] == row_differences(before, row_of(store, one))

    def test_gone_is_for_good(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        put(store, LEFT, machine)
        before = row_of(store, machine)

        assert [0, 0, 0] == [put(store, state, machine) for state in (OPEN, DRAINING, DOWN)]
        assert [] == row_differences(before, row_of(store, machine))
        assert 0 == store.use().machines

    def test_a_machine_that_never_was_is_told_and_nothing_changes(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        before = row_of(store, machine)

        with pytest.raises(BadInput):
            put(store, DRAINING, machine, machine + 900)
        assert [] == row_differences(before, row_of(store, machine))


class LostTaskContract(Contract):
    """Tasks on machines that are down or gone."""

    @pytest.mark.parametrize("state", [DOWN, LEFT])
    def test_lost_tasks_go_back_to_the_queue_and_are_placed_again_once(
        self, store: Store, state: MachineState
    ) -> None:
        one, two = add_a_cell(store, 2)
        job = a_running_job(store, a_spec(3), [one, one, two])
        mark = store.allocations_since(0)[1]
        put(store, state, one)
        before = row_of(store, one)

        assert 2 == store.lose_tasks(integers([one]))
        assert (State.PENDING, 1) == (status_of(store, job).state, status_of(store, job).placed)
        assert {(job.id, 2): two} == places(store)
        assert before.sequence.tolist() == row_of(store, one).sequence.tolist()
        assert (row_of(store, one).revision > before.revision).all()
        assert 0 == row_of(store, one).used.sum()

        (again,) = lease_all(store)
        assert [0, 1] == again.unplaced.tolist()
        outcome = claim(store, again, [0, 1, 2], [two, two, two])
        assert [ACCEPTED, ACCEPTED, Verdict.ALREADY_PLACED] == verdicts_of(outcome)
        assert {(job.id, task): two for task in range(3)} == places(store)
        heard, _ = store.allocations_since(mark)
        assert {0, 1} <= set(heard.task.tolist())
        assert State.RUNNING is status_of(store, job).state

    @pytest.mark.parametrize("state", [OPEN, DRAINING])
    def test_what_runs_elsewhere_is_not_lost(self, store: Store, state: MachineState) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        put(store, state, machine)

        assert 0 == store.lose_tasks(integers([machine, machine + 900]))
        assert {(job.id, 0): machine} == places(store)

    def test_losing_again_is_harmless(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(2), [machine] * 2)
        put(store, DOWN, machine)

        assert [2, 0] == [store.lose_tasks(integers([machine] * 2)) for _ in range(2)]

    def test_a_gang_that_lost_too_much_falls_whole(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        gang = a_running_job(store, a_spec(3, minimum=3), [one, two, two])
        put(store, DOWN, one)

        assert 3 == store.lose_tasks(integers([one]))
        assert {} == places(store)
        assert 0 == status_of(store, gang).placed
        assert [0, 1, 2] == lease_all(store)[0].unplaced.tolist()

    def test_a_gang_above_its_minimum_goes_on(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        gang = a_running_job(store, a_spec(3, minimum=2), [one, two, two])
        put(store, DOWN, one)

        assert 1 == store.lose_tasks(integers([one]))
        assert 2 == status_of(store, gang).placed

    def test_ends_of_lost_tasks_are_no_ends(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        put(store, DOWN, machine)
        store.lose_tasks(integers([machine]))

        assert 0 == end(store, job, 0)
        assert State.PENDING is status_of(store, job).state

    def test_a_job_that_lost_tasks_can_be_cancelled(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_running_job(store, a_spec(2), [one, two])
        put(store, DOWN, one)
        store.lose_tasks(integers([one]))

        assert store.cancel(job.id)
        assert {} == places(store)
        assert [] == lease_all(store)


class ResizeContract(Contract):
    """Larger capacities, and smaller ones with a notice."""

    def test_growth_counts_at_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        job = a_leased_job(store, a_spec())
        mark = store.snapshot().mark

        store.resize(machine, cores(2), notice_ms=OVER_AT_ONCE_MS)

        assert [1] == row_of(store, machine).sequence.tolist()
        assert [1] == row_of(store, machine).revision.tolist()
        assert machine in store.changes_since(mark).rows.id
        grant(store, job, [0], [machine], cpu_milli=2_000)

    def test_a_shrink_counts_for_claims_at_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        job = a_running_job(store, a_spec(3), [machine] * 3)
        other = a_leased_job(store, a_spec(2))

        store.resize(machine, cores(2), notice_ms=LONG_MS)

        assert -1_000 == row_of(store, machine).free[0, Kind.CPU_MILLI]
        assert 3 == status_of(store, job).placed
        assert [OVERCOMMIT] == verdicts_of(claim(store, other, [0], [machine]))
        end(store, job, 0, 1)
        assert [ACCEPTED] == verdicts_of(claim(store, other, [0], [machine]))

    def test_a_machine_too_full_in_one_kind_takes_nothing_of_any(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000, gpus=1)
        a_running_job(store, a_spec(groups=[a_group(gpus=1)]), [machine], gpu_0=1_000)
        other = a_leased_job(store, a_spec())

        store.resize(machine, cores(4), notice_ms=LONG_MS)

        assert [OVERCOMMIT] == verdicts_of(claim(store, other, [0], [machine], cpu_milli=1_000))

    def test_use_above_it_is_tolerated_until_the_notice_ends(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        a_running_job(store, a_spec(3), [machine] * 3)
        store.resize(machine, cores(1), notice_ms=LONG_MS)

        assert 0 == store.enforce_notices()
        assert 3 == len(places(store))

    def test_then_the_lowest_precedence_ends_first_until_the_rest_fits(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        middle = a_running_job(store, a_spec(precedence=1), [machine])
        low = a_running_job(store, a_spec(precedence=0), [machine])
        high = a_running_job(store, a_spec(precedence=2), [machine])
        store.resize(machine, cores(1), notice_ms=OVER_AT_ONCE_MS)
        before = row_of(store, machine)

        assert 2 == store.enforce_notices()
        assert {(high.id, 0): machine} == places(store)
        assert [middle.id, low.id] == [job.id for job in lease_all(store)]
        assert before.sequence.tolist() == row_of(store, machine).sequence.tolist()
        assert (row_of(store, machine).revision > before.revision).all()
        assert 0 == store.enforce_notices()

    def test_of_equals_those_started_last_end_first(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        jobs = [a_running_job(store, a_spec(), [machine]) for _ in range(3)]
        store.resize(machine, cores(2), notice_ms=OVER_AT_ONCE_MS)

        assert 1 == store.enforce_notices()
        assert {(job.id, 0) for job in jobs[:2]} == places(store).keys()

    def test_what_holds_nothing_of_what_is_short_is_spared(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000, gpus=1)
        low = a_running_job(store, a_spec(precedence=0), [machine])
        a_running_job(store, a_spec(precedence=5), [machine], gpu_0=1_000)
        store.resize(machine, cores(4), notice_ms=OVER_AT_ONCE_MS)

        assert 1 == store.enforce_notices()
        assert {(low.id, 0): machine} == places(store)

    def test_a_gang_that_is_cut_below_its_minimum_falls_whole(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_running_job(store, a_spec(3, minimum=3), [one, two, two])
        store.resize(one, cores(0), notice_ms=OVER_AT_ONCE_MS)

        assert 3 == store.enforce_notices()
        assert {} == places(store)
        assert 0 == status_of(store, gang).placed

    def test_room_that_a_fallen_gang_gives_elsewhere_spares_others_there(
        self, store: Store
    ) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_running_job(store, a_spec(2, minimum=2, precedence=1), [one, two])
        other = a_running_job(store, a_spec(), [two])
        for machine in (one, two):
            store.resize(machine, cores(machine - one), notice_ms=OVER_AT_ONCE_MS)

        assert 2 == store.enforce_notices()
        assert {(other.id, 0): two} == places(store)
        assert 0 == status_of(store, gang).placed

    def test_a_notice_ends_when_use_has_fallen_or_room_has_grown(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        job = a_running_job(store, a_spec(4), [one, one, two, two])
        for machine in (one, two):
            store.resize(machine, cores(1), notice_ms=OVER_AT_ONCE_MS)
        end(store, job, 0)
        store.resize(two, cores(2), notice_ms=OVER_AT_ONCE_MS)

        assert 0 == store.enforce_notices()
        assert 3 == len(places(store))

    def test_a_later_notice_takes_the_place_of_an_earlier(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        a_running_job(store, a_spec(4), [machine] * 4)
        store.resize(machine, cores(3), notice_ms=OVER_AT_ONCE_MS)
        store.resize(machine, cores(2), notice_ms=LONG_MS)

        assert 0 == store.enforce_notices()
        store.resize(machine, cores(3), notice_ms=OVER_AT_ONCE_MS)
        assert 1 == store.enforce_notices()

    def test_a_notice_tells_how_much_is_used_above_and_how_long_that_may_last(
        self, store: Store
    ) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=4_000)
        job = a_running_job(store, a_spec(6), [one] * 3 + [two] * 3)
        store.resize(two, cores(1), notice_ms=OVER_AT_ONCE_MS)
        store.resize(one, cores(2), notice_ms=LONG_MS)

        long, over = store.notices()

        assert [one, two] == [long.machine, over.machine]
        assert cores(1)[Kind.CPU_MILLI] == long.excess[Kind.CPU_MILLI] == long.excess.sum()
        assert cores(2)[Kind.CPU_MILLI] == over.excess[Kind.CPU_MILLI]
        assert over.ends_in_ms <= 0 < long.ends_in_ms <= LONG_MS
        end(store, job, 0)
        assert [two] == [notice.machine for notice in store.notices()]
        store.enforce_notices()
        assert [] == store.notices()

    def test_a_machine_that_never_was_or_is_gone_is_told(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        put(store, LEFT, machine)
        before = row_of(store, machine)

        for wrong in (machine, machine + 900):
            with pytest.raises(BadInput):
                store.resize(wrong, cores(9), notice_ms=OVER_AT_ONCE_MS)
        assert [] == row_differences(before, row_of(store, machine))
