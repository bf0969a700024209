"""Stories in a memory store whose clock goes on within a commit, as real ones do."""

from omega.clock import ManualClock
from omega.reports.stories.job import job_story
from omega.reports.stories.machine import machine_story
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_leased_job, add_a_cell, grant, status_of


class SlowClock(ManualClock):
    """Ten milliseconds go by between two looks at it."""

    def now(self) -> float:
        self.advance(0.01)
        return super().now()


def test_what_a_commit_did_is_told_once_and_as_its_own() -> None:
    store = MemoryStore(SlowClock())
    one, two = add_a_cell(store, 2)
    job = a_leased_job(store, a_spec(2, precedence=10))
    grant(store, job, [0], [one])
    moved = evicting(a_claim(0, machine=two), (0, job.id, 0))
    store.commit(a_transaction(claims_of_job(job, moved)))

    story = job_story(store, status_of(store, job), ())
    there = machine_story(store, one, "machine-1")

    assert [("placed", "batch 0"), ("moved", "batch 0")] == [
        (it.what.value, it.by) for it in story.events[2:]
    ]
    assert ["placed", "moved"] == [it.what.value for it in there.events]
