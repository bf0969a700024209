"""What Prometheus is told of a cell."""

import re
from dataclasses import replace

from prometheus_client import generate_latest

from omega.clock import ManualClock
from omega.lifecycle.states import State
from omega.model.machines import MachineState
from omega.reports.cell import CellReport
from omega.reports.exposition import COUNTERS, KINDS_MAX, METRICS, Exported
from omega.store.memory.store import MemoryStore
from omega.store.watching import QueueLine
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell
from tests.fixtures.exported import MARKUP, ROOM, SUBMITTED_S, a_busy_store, exported, registered


def test_every_metric_that_is_listed_is_exported_and_no_other_of_the_cell() -> None:
    text = generate_latest(exported(a_busy_store())).decode()

    declared = set(re.findall(r"^# TYPE (omega_\w+) ", text, re.MULTILINE))
    ours = {f"{name}_total" if name in COUNTERS else name for name in METRICS}
    assert ours <= declared
    for name in METRICS:
        assert re.search(rf"^{name}(_total)?(\{{| )", text, re.MULTILINE), name


def test_the_values_are_those_of_the_cell() -> None:
    registry = exported(a_busy_store())
    value = registry.get_sample_value

    assert 1 == value("omega_up")
    assert 2 == value("omega_page_streams")
    states = [value("omega_machines", {"state": it}) for it in ("open", "draining", "down")]
    assert [2, 1, 0] == states
    assert ROOM["cpu_milli"] == value("omega_room", {"kind": "cpu_milli"})
    assert 1_000 == value("omega_used", {"kind": "cpu_milli"})
    assert 12_000 == value("omega_capacity", {"kind": "cpu_milli"})
    assert 500 == value("omega_used", {"kind": "gpu_0"})
    assert 2 == value("omega_tasks_running")
    assert 1 == value("omega_jobs", {"state": "running"})
    assert 1 == value("omega_queue_jobs", {"scheduler": MARKUP, "state": "pending"})
    parked = {"scheduler": "batch", "reason": "no_room"}
    assert 1 == value("omega_queue_parked_jobs", parked)
    assert SUBMITTED_S == value("omega_queue_parked_oldest_timestamp_seconds", parked)
    waiting = {"scheduler": "batch", "state": "pending"}
    assert SUBMITTED_S == value("omega_queue_oldest_timestamp_seconds", waiting)
    assert 2 == value("omega_queue_unplaced_tasks", {"scheduler": "batch"})
    assert 5 == value("omega_view_unread_seconds", {"scheduler": "batch", "replica": MARKUP})
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


def test_a_process_that_was_killed_is_counted_as_silent_for_an_hour() -> None:
    clock = ManualClock(now=1_000.0)
    store = a_busy_store(clock)
    counts = []
    for seconds in (0, 60, 3_600):
        clock.advance(seconds)
        value = exported(store).get_sample_value
        counts.append(
            (
                value("omega_processes", {"kind": "scheduler"}),
                value("omega_processes_silent", {"kind": "scheduler"}),
                value("omega_schedulers", {"scheduler": "batch", "state": "silent"}),
            )
        )

    assert [(2, 0, 0), (0, 2, 1), (0, 0, None)] == counts


def test_tasks_that_nobody_ends_are_told() -> None:
    store = a_busy_store()
    store.set_state(store.snapshot().rows.id[:1], MachineState.DOWN)

    overdue = exported(store).get_sample_value("omega_machines_overdue", {"cause": "down"})

    assert 1 == overdue


def test_kinds_that_users_invent_have_a_bounded_number_of_series() -> None:
    line = QueueLine("", "t", State.PENDING, None, jobs=1, unplaced=2, oldest_ms=5_000)
    many = KINDS_MAX + 50
    queue = [replace(line, scheduler=f"kind-{at:04}") for at in range(many)]

    registry = registered(Exported(is_up=True, queue=queue))

    text = generate_latest(registry).decode()
    assert KINDS_MAX + 1 == len(re.findall(r"^omega_queue_jobs\{", text, re.MULTILINE))
    others = {"scheduler": "others", "state": "pending"}
    assert 50 == registry.get_sample_value("omega_queue_jobs", others)
    assert 100 == registry.get_sample_value("omega_queue_unplaced_tasks", {"scheduler": "others"})
    assert 5 == registry.get_sample_value("omega_queue_oldest_timestamp_seconds", others)


def test_names_cannot_break_the_text() -> None:
    text = generate_latest(exported(a_busy_store())).decode()

    line = re.compile(r"(#.*|\w+(\{(\w+=\"(\\[\\\"n]|[^\\\"\n])*\",?)*\})? [0-9.e+-]+)")
    assert [] == [it for it in text.splitlines() if not line.fullmatch(it)]


def test_a_cell_without_jobs_has_machines() -> None:
    store = MemoryStore(ManualClock())
    add_a_cell(store, 2)
    store.submit([a_spec()])

    told = Exported(is_up=True, report=CellReport.read(store), queue=[])

    assert 2 == registered(told).get_sample_value("omega_machines", {"state": "open"})


def test_before_the_first_answer_of_the_store_there_is_one_fact() -> None:
    registry = registered(Exported(is_up=False))

    assert 0 == registry.get_sample_value("omega_up")
    assert registry.get_sample_value("omega_tasks_running") is None
