"""What every store must keep of its processes, and its sums over the cell.

Goal     Reports and sums as tests that read as stories.
Promise  Each process has one report, the last one. Sums agree with the rows.
Source   omega/store/protocols.py.
"""

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import COLUMNS
from omega.store.leases import Parking
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec
from omega.testing.contract import Contract
from omega.testing.steps import a_running_job, add_a_cell, end, grant, submit_and_lease


class RegistryContract(Contract):
    """Reports of processes, and sums over the cell."""

    def test_a_report_comes_out_as_it_went_in(self, store: Store) -> None:
        facts = {"jobs": 12, "busy": 0.25, "rule": "fit", "parts": [1, 2], "note": None}

        store.report("batch", "0", pid=4_321, facts=facts)

        (report,) = store.reports()
        assert ("batch", "0", 4_321, facts) == (
            report.kind,
            report.replica,
            report.pid,
            dict(report.facts),
        )
        assert report.seen_ms_ago >= 0

    def test_a_process_replaces_what_it_said(self, store: Store) -> None:
        store.report("batch", "0", pid=1, facts={"jobs": 1})
        (before,) = store.reports()
        store.report("batch", "0", pid=1, facts={"jobs": 2})

        (report,) = store.reports()

        assert {"jobs": 2} == dict(report.facts)
        assert before.started_ms == report.started_ms

    def test_a_process_reads_its_own_report(self, store: Store) -> None:
        store.report("batch", "0", pid=1, facts={"jobs": 1})
        store.report("batch", "1", pid=2, facts={"jobs": 2})

        own = store.own_report("batch", "1")

        assert own is not None
        assert ("batch", "1", 2, {"jobs": 2}) == (own.kind, own.replica, own.pid, dict(own.facts))
        assert own.seen_ms_ago >= 0
        assert {report.started_ms for report in store.reports()} >= {own.started_ms}
        assert store.own_report("batch", "2") is None
        assert store.own_report("service", "1") is None

    def test_each_replica_speaks_for_itself_oldest_first(self, store: Store) -> None:
        for kind, replica in [("service", "0"), ("batch", "1"), ("batch", "0")]:
            store.report(kind, replica, pid=1, facts={})

        reports = store.reports()

        named = {(report.kind, report.replica) for report in reports}
        started = [report.started_ms for report in reports]
        assert {("service", "0"), ("batch", "1"), ("batch", "0")} == named
        assert sorted(started) == started

    def test_a_process_that_ended_cleanly_is_forgotten(self, store: Store) -> None:
        store.report("batch", "0", pid=1, facts={})
        store.report("batch", "1", pid=2, facts={})

        store.forget("batch", "0")
        store.forget("batch", "0")
        store.forget("nobody", "0")

        assert ["1"] == [report.replica for report in store.reports()]

    def test_an_empty_cell_sums_up_to_nothing(self, store: Store) -> None:
        use = store.use()

        assert 0 == use.machines == use.open == use.live_allocations
        assert dict.fromkeys(COLUMNS, 0) == dict(use.capacity) == dict(use.used)
        assert not any(use.machines_by_state.values())
        assert 0 == use.stranded
        assert not any(use.jobs_by_state.values())
        assert not any(use.parked_by_reason.values())

    def test_the_sums_agree_with_the_rows(self, store: Store) -> None:
        machines = store.add_machines(a_cell(3, cpu_milli=2_000, gpus=1)).tolist()
        running, parked, never = submit_and_lease(store, a_spec(2), a_spec(2), a_spec())
        store.submit([a_spec(), a_spec()])
        grant(store, running, [0, 1], machines[:2], cpu_milli=500, gpu_0=250)
        grant(store, parked, [1], machines[:1], memory_mib=64)
        end(store, running, 0)
        store.park(
            [
                Parking(parked.id, parked.token, ParkReason.NO_ROOM, ""),
                Parking(never.id, never.token, ParkReason.NEVER_FITS, ""),
            ]
        )

        use = store.use()

        rows = store.snapshot().rows
        assert (use.machines, use.open, use.live_allocations) == (3, 3, 2)
        capacity = dict(zip(COLUMNS, rows.capacity.sum(axis=0).tolist(), strict=True))
        assert capacity == dict(use.capacity)
        assert (500, 64, 250) == tuple(use.used[k] for k in ("cpu_milli", "memory_mib", "gpu_0"))
        assert {
            State.RUNNING: 1,
            State.PARKED: 2,
            State.PENDING: 2,
        } == {state: jobs for state, jobs in use.jobs_by_state.items() if jobs}
        assert {
            ParkReason.NO_ROOM: 1,
            ParkReason.NEVER_FITS: 1,
        } == {reason: jobs for reason, jobs in use.parked_by_reason.items() if jobs}

    def test_machines_are_counted_by_state_and_those_that_are_still_in_use(
        self, store: Store
    ) -> None:
        a, b, c, d, e = add_a_cell(store, 5)
        a_running_job(store, a_spec(4), [a, b, c, d])
        store.set_state(integers([b]), MachineState.DRAINING)
        store.set_state(integers([c]), MachineState.DOWN)
        store.set_state(integers([d, e]), MachineState.GONE)

        before = store.use()
        store.lose_tasks(integers([c, d]))
        after = store.use()

        states = {
            MachineState.OPEN: 1,
            MachineState.DRAINING: 1,
            MachineState.DOWN: 1,
            MachineState.GONE: 2,
        }
        assert states == before.machines_by_state == after.machines_by_state
        assert (3, 1) == (after.machines, after.open)
        assert [2, 0] == [before.stranded, after.stranded]
        assert 12_000 == after.capacity["cpu_milli"]
        assert [3_000, 2_000] == [use.used["cpu_milli"] for use in (before, after)]
