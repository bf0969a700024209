"""What Prometheus is told of a cell."""

import re

from prometheus_client import CollectorRegistry, generate_latest

from omega.clock import ManualClock
from omega.lifecycle.states import ParkReason
from omega.metrics.fold import SchedulerFold
from omega.model.machines import MachineState
from omega.reports.cell import CellReport
from omega.reports.conflicts import ConflictTally
from omega.reports.exposition import COUNTERS, METRICS, CellCollector, scheduler_collector
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell, submit_and_lease

MARKUP = '<script>alert("1")</script>\\'


def a_busy_store() -> MemoryStore:
    store = MemoryStore(ManualClock(now=1_000.0))
    a, b, _ = add_a_cell(store, gpus=1)
    a_running_job(store, a_spec(2), [a, b], cpu_milli=500, gpu_0=250)
    (parked,) = submit_and_lease(store, a_spec(tenant=MARKUP))
    store.park([Parking(parked.id, parked.token, ParkReason.NO_ROOM, "")])
    store.submit([a_spec(scheduler=MARKUP), a_spec()])
    store.set_state(store.snapshot().rows.id[2:], MachineState.DRAINING)
    store.report("batch", MARKUP, pid=1, facts=SchedulerFold(ManualClock()).facts())
    store.report("hostile", "0", pid=2, facts={"totals": 7, "measures": {"busy_now": "x"}})
    store.report("agent", "m", pid=3, facts={})
    return store


def exported(store: MemoryStore, *, is_up: bool = True) -> CollectorRegistry:
    tally = ConflictTally()
    tally.note(store.judged_since(0), 0.0)
    report = CellReport.read(store)
    registry = CollectorRegistry()
    registry.register(CellCollector(report, store.queue(), tally, is_up=is_up, streams=2))
    registry.register(scheduler_collector(report.reports))
    return registry


def test_every_metric_that_is_listed_is_exported_and_no_other_of_the_cell() -> None:
    text = generate_latest(exported(a_busy_store())).decode()

    declared = set(re.findall(r"^# TYPE (omega_\w+) ", text, re.MULTILINE))
    ours = {f"{name}_total" if name in COUNTERS else name for name in METRICS}
    assert ours <= declared
    for name in METRICS:
        assert re.search(rf"^{name}(_total)?(\{{| )", text, re.MULTILINE) or name in {
            "omega_view_age_seconds",
            "omega_busyness",
        }


def test_the_values_are_those_of_the_cell() -> None:
    registry = exported(a_busy_store())
    value = registry.get_sample_value

    assert 1 == value("omega_up")
    assert 2 == value("omega_page_streams")
    assert [2, 1] == [value("omega_machines", {"state": it}) for it in ("open", "draining")]
    assert 1_000 == value("omega_used", {"kind": "cpu_milli"})
    assert 12_000 == value("omega_capacity", {"kind": "cpu_milli"})
    assert 500 == value("omega_used", {"kind": "gpu_0"})
    assert 2 == value("omega_tasks_running")
    assert 1 == value("omega_jobs", {"state": "running"})
    assert 1 == value("omega_queue_jobs", {"scheduler": MARKUP, "state": "pending"})
    parked = {"scheduler": "batch", "reason": "no_room"}
    assert 1 == value("omega_queue_parked_jobs", parked)
    assert 2 == value("omega_cell_claims_total", {"scheduler": "batch", "verdict": "accepted"})
    assert 0 == value("omega_cell_claims_total", {"scheduler": "batch", "verdict": "stale"})
    assert 1 == value("omega_cell_transactions_total", {"scheduler": "batch"})
    assert 0 == value("omega_cell_transactions_conflicted_total", {"scheduler": "batch"})
    assert [2, 1] == [value("omega_processes", {"kind": it}) for it in ("scheduler", "agent")]


def test_a_process_that_is_silent_is_left_out() -> None:
    clock = ManualClock(now=1_000.0)
    store = MemoryStore(clock)
    store.report("batch", "0", pid=1, facts={})
    clock.advance(3_600)
    store.report("batch", "1", pid=2, facts={})

    text = generate_latest(exported(store)).decode()

    assert 'replica="1"' in text
    assert 'replica="0"' not in text


def test_before_the_first_answer_of_the_store_there_is_one_fact() -> None:
    registry = CollectorRegistry()
    registry.register(CellCollector(None, [], ConflictTally(), is_up=False, streams=0))

    assert 0 == registry.get_sample_value("omega_up")
    assert registry.get_sample_value("omega_tasks_running") is None
