"""What every store must return to a view that reads changes.

Goal     Delta synchronisation as tests that read as stories.
Promise  A view kept by deltas equals a snapshot. Rows that come twice or late do no harm.
Source   docs/glossary.md: sequence, revision, generation and mark.
"""

from collections.abc import Callable

from omega.cell.partition import Parts, part_of
from omega.cell.view import View
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import Kind, machine_capacity
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.contract import Contract
from omega.testing.steps import (
    OVER_AT_ONCE_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
    submit_and_lease,
)
from omega.testing.twin import row_differences


class ChangeContract(Contract):
    """Reading changes since a mark."""

    def test_a_view_kept_by_deltas_equals_a_snapshot(self, store: Store) -> None:
        machines = add_a_cell(store, 5)
        view = View(store.snapshot())
        one, two, three = submit_and_lease(store, a_spec(4), a_spec(2), a_spec(3, minimum=3))

        steps: list[Callable[[], object]] = [
            lambda: grant(store, one, [0, 1], machines[:2]),
            lambda: grant(store, two, [0, 1], machines[1:3]),
            lambda: claim(store, three, range(3), [machines[4]] * 3, cpu_milli=2_000),
            lambda: end(store, one, 1),
            lambda: store.cancel(two.id),
            lambda: claim(store, one, [2, 3], [machines[0]] * 2, cpu_milli=3_000),
        ]
        for step in steps:
            step()
            view.catch_up(store.changes_since(view.mark))

            assert [] == row_differences(store.snapshot().rows, view.rows())

    def test_a_delta_brings_what_changed_and_may_leave_the_rest(self, store: Store) -> None:
        one, two, _ = add_a_cell(store, 3)
        mark = store.snapshot().mark
        grant(store, a_leased_job(store, a_spec(2)), [0, 1], [one, two])

        changes = store.changes_since(mark)

        assert {one, two} <= set(changes.rows.id.tolist())
        told = changes.rows.where(changes.rows.id[changes.rows.id <= two])
        assert [1_000, 1_000] == changes.rows.used[told, Kind.CPU_MILLI].tolist()

    def test_an_end_and_a_cancellation_are_changes(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        first, second = submit_and_lease(store, a_spec(), a_spec())
        grant(store, first, [0], [one])
        grant(store, second, [0], [two])
        view = View(store.snapshot())

        end(store, first, 0)
        store.cancel(second.id)
        newer = view.catch_up(store.changes_since(view.mark))

        assert 2 == newer
        assert [4_000, 4_000] == view.free[:, Kind.CPU_MILLI].tolist()

    def test_what_is_done_by_force_and_to_machines_is_a_change(self, store: Store) -> None:
        one, two, three = add_a_cell(store, 3)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, two])
        a_running_job(store, a_spec(2), [two, three])
        high = a_leased_job(store, a_spec(precedence=10))
        instead = evicting(a_claim(0, machine=one), (0, gang.id, 0))
        view = View(store.snapshot())

        steps: list[Callable[[], object]] = [
            lambda: store.commit(a_transaction(claims_of_job(high, instead))),
            lambda: store.set_state(integers([two]), MachineState.DOWN),
            lambda: store.lose_tasks(integers([two])),
            lambda: store.resize(three, machine_capacity(0, 0, 0, 0), notice_ms=OVER_AT_ONCE_MS),
            store.enforce_notices,
        ]
        for step in steps:
            step()

            assert view.catch_up(store.changes_since(view.mark))
            assert [] == row_differences(store.snapshot().rows, view.rows())

    def test_the_same_delta_again_is_harmless(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        view = View(store.snapshot())
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [machine])
        old = store.changes_since(view.mark)
        grant(store, job, [1], [machine])
        new = store.changes_since(view.mark)

        newer = [view.catch_up(changes) for changes in (new, new, old)]

        assert [1, 0, 0] == newer
        assert [2_000] == view.free[:, Kind.CPU_MILLI].tolist()

    def test_fresh_rows_and_deltas_agree_in_either_order(self, store: Store) -> None:
        machines = add_a_cell(store, 2)
        told_late, told_soon = View(store.snapshot()), View(store.snapshot())
        job = a_leased_job(store, a_spec(4))
        fresh = grant(store, job, [0, 1], machines).fresh
        end(store, job, 0)
        changes = store.changes_since(told_soon.mark)

        told_soon.patch(fresh)
        told_soon.catch_up(changes)
        told_late.catch_up(changes)
        told_late.patch(fresh)

        assert [] == row_differences(told_soon.rows(), told_late.rows())
        assert [] == row_differences(store.snapshot().rows, told_late.rows())

    def test_parts_of_a_delta_make_up_the_whole(self, store: Store) -> None:
        machines = integers(add_a_cell(store, 40))
        view = View(store.snapshot())
        mark = view.mark
        store.set_state(machines, MachineState.DRAINING)

        by_part = [store.changes_since(mark, Parts((part,), 3)) for part in range(3)]
        two = store.changes_since(mark, Parts((0, 2), 3))

        for part, changes in enumerate(by_part):
            told = changes.rows.id
            assert machines[part_of(machines, 3) == part].tolist() == told.tolist()
            view.patch(changes.rows)
        assert [] == row_differences(store.snapshot().rows, view.rows())
        assert sorted(two.rows.id) == sorted([*by_part[0].rows.id, *by_part[2].rows.id])

    def test_a_part_of_which_little_changed_among_much_is_told(self, store: Store) -> None:
        machines = integers(add_a_cell(store, 400))
        view = View(store.snapshot())
        mark = view.mark
        one = machines[part_of(machines, 4) == 1][:1]
        store.set_state(machines[part_of(machines, 4) != 1], MachineState.DRAINING)
        store.set_state(one, MachineState.DRAINING)

        assert one.tolist() == store.changes_since(mark, Parts((1,), 4)).rows.id.tolist()

    def test_when_nothing_changed_the_view_stays_and_the_mark_goes_not_back(
        self, store: Store
    ) -> None:
        add_a_cell(store, 2)
        view = View(store.snapshot())
        mark = view.mark

        assert 0 == view.catch_up(store.changes_since(mark))
        assert view.mark >= mark

    def test_a_mark_of_long_ago_still_brings_everything(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        view = View(store.snapshot())
        for _ in range(10):
            job = a_running_job(store, a_spec(3), [machine] * 3)
            end(store, job, 0, 1)

            assert view.mark <= store.snapshot().mark
            if job.id % 2:
                end(store, job, 2)
            else:
                store.cancel(job.id)
        grant(store, a_leased_job(store), [0], [machine])
        view.catch_up(store.changes_since(view.mark))

        assert [] == row_differences(store.snapshot().rows, view.rows())

    def test_new_machines_raise_the_generation(self, store: Store) -> None:
        add_a_cell(store, 1)
        before = store.snapshot()

        store.add_machines(a_cell(1, first=2))

        assert store.changes_since(before.mark).generation > before.generation
        assert store.snapshot().generation == store.changes_since(before.mark).generation

    def test_commits_and_ends_leave_the_generation(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        before = store.snapshot()

        job = a_running_job(store, a_spec(), [machine])
        end(store, job, 0)

        assert before.generation == store.snapshot().generation
