"""Details of single things: an answer serves everybody for a while."""

import json
from collections import Counter
from typing import cast

from omega.clock import ManualClock
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.store.stories import JobRecords, MachineRecords
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job, add_a_cell, end
from omega.web.asking import FRESH_S, STORY_EVENTS_MAX, STORY_FRESH_S, Asking
from omega.web.watcher import Watcher


class Counted(PassThrough):
    """A store that counts how often stories are read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.calls: Counter[str] = Counter()

    def job_records(self, job: int) -> JobRecords:
        """Count and pass on."""
        self.calls["job"] += 1
        return super().job_records(job)

    def machine_records(self, machine: int) -> MachineRecords:
        """Count and pass on."""
        self.calls["machine"] += 1
        return super().machine_records(machine)


def asking(store: Counted, clock: ManualClock) -> Asking:
    chunks: list[bytes] = []
    watcher = Watcher(cast(Store, store), clock, tell=print, publish=chunks.append)
    watcher.look()
    return Asking(cast(Store, store), watcher, clock)


def test_a_story_is_read_once_for_everybody_and_seldom() -> None:
    clock = ManualClock(now=1_000.0)
    store = Counted(cast(Store, MemoryStore(clock)))
    (machine,) = add_a_cell(store, 1)
    job = a_running_job(store, a_spec(), [machine])
    asked = asking(store, clock)

    first = asked.job_story(job.id), asked.machine_story(machine)
    clock.sleep(STORY_FRESH_S - FRESH_S)
    end(store, job, 0)
    again = asked.job_story(job.id), asked.machine_story(machine)

    assert first == again
    assert {"job": 1, "machine": 1} == store.calls
    clock.sleep(FRESH_S)
    assert ["submitted", "leased", "placed", "ended", "finished"] == [
        event["what"] for event in json.loads(asked.job_story(job.id) or "")["events"]
    ]
    assert {"job": 2, "machine": 1} == store.calls


def test_of_a_long_story_the_newest_events_are_told() -> None:
    clock = ManualClock(now=1_000.0)
    store = Counted(cast(Store, MemoryStore(clock)))
    (machine,) = add_a_cell(store, 1)
    jobs = STORY_EVENTS_MAX // 2 + 3
    for _ in range(jobs):
        end(store, a_running_job(store, a_spec(), [machine]), 0)
        clock.sleep(1)

    story = json.loads(asking(store, clock).machine_story(machine) or "")

    assert STORY_EVENTS_MAX == len(story["events"])
    assert (6, "ended", f"task 0 of job {jobs}") == (
        story["left_out"],
        story["events"][-1]["what"],
        story["events"][-1]["told"],
    )
