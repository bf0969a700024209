"""A rehearsal of several tries: each knows what those before it have evicted."""

from dataclasses import replace
from functools import partial

import pytest

from omega.clock import ManualClock
from omega.framework import rehearsal
from omega.framework.attempt import PlanningContext
from omega.framework.rehearsal import rehearse
from omega.limits import LIMITS
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell
from schedulers.service import ServiceScheduler


def test_no_task_is_evicted_by_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = replace(LIMITS, claims_per_transaction_max=1, jobs_per_transaction_max=1)
    monkeypatch.setattr(rehearsal, "PlanningContext", partial(PlanningContext, limits=one_by_one))
    store = MemoryStore(ManualClock())
    add_a_cell(store, 1, cpu_milli=4_000)
    victims = a_running_job(store, a_spec(4), [1] * 4, cpu_milli=1_000)

    found = rehearse(store, ServiceScheduler(), a_spec(4, precedence=100), run_seed=1)

    assert [(victims.id, task) for task in range(4)] == sorted(found.evicted)
    assert (4, 4) == (found.running, len(found.claims))
