"""However much is on record of a job or a machine, no more is read than the bounds say."""

from types import ModuleType
from typing import cast

import pytest

from omega.clock import RealClock
from omega.model.outcomes import Verdict
from omega.reports.stories import commits as commit_stories
from omega.reports.stories import job as job_stories
from omega.reports.stories import machine as machine_stories
from omega.store.memory import inquiries as memory_inquiries
from omega.store.memory import stories as memory_stories
from omega.store.memory.store import MemoryStore
from omega.store.postgres import inquiries, stories
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, claim, grant, status_of

MODULES = (
    inquiries,
    stories,
    memory_inquiries,
    memory_stories,
    commit_stories,
    machine_stories,
)


@pytest.fixture(params=["postgres", "memory"])
def either(request: pytest.FixtureRequest, store: PostgresStore) -> Store:
    """Return an empty store of each sort."""
    return cast(Store, store if request.param == "postgres" else MemoryStore(RealClock()))


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> "Bound":
    """Return what sets a bound, in both stores."""
    return Bound(monkeypatch)


class Bound:
    """Sets a bound wherever it is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, name: str, value: int) -> None:
        """Set it."""
        known: list[ModuleType] = [module for module in MODULES if hasattr(module, name)]
        assert known, name
        for module in known:
            self._monkeypatch.setattr(module, name, value)


def granted_one_by_one(store: Store, tasks: int) -> tuple[int, int]:
    """Grant a job its tasks on one machine, each by a commit; return the job and the machine."""
    (machine,) = add_a_cell(store, 1, cpu_milli=1_000 * tasks)
    job = a_leased_job(store, a_spec(tasks))
    for task in range(tasks):
        grant(store, job, [task], [machine])
    return job.id, machine


@pytest.mark.parametrize(("claims", "searched"), [(1, 1), (3, 3), (5, 5), (6, 5)])
def test_commits_are_searched_up_to_a_number_of_claims(
    either: Store, bound: Bound, claims: int, searched: int
) -> None:
    job, machine = granted_one_by_one(either, 5)
    bound("CLAIMS_SEARCHED_MAX", claims)

    records = either.machine_records(machine)

    assert searched == records.searched.transactions
    assert (searched == 5) is records.searched.are_all
    newest = [4, 3, 2, 1, 0][:searched]
    assert newest == [visit.tasks[0] for visit in records.visits]
    transactions = either.transactions_of(job, transactions_max=9)
    assert newest == [transaction.claims[0].task for transaction in transactions]


def test_a_commit_of_more_claims_than_the_bound_is_still_searched(
    either: Store, bound: Bound
) -> None:
    (machine,) = add_a_cell(either, 1, cpu_milli=9_000)
    job = a_leased_job(either, a_spec(9))
    grant(either, job, [0], [machine])
    grant(either, job, list(range(1, 9)), [machine] * 8)
    bound("CLAIMS_SEARCHED_MAX", 2)

    (transaction,) = either.transactions_of(job.id, transactions_max=9)

    assert 8 == transaction.granted


def test_around_each_earlier_time_no_more_claims_are_searched(
    store: PostgresStore, bound: Bound
) -> None:
    job, _ = granted_one_by_one(cast(Store, store), 5)
    bound("CLAIMS_SEARCHED_MAX", 2)
    bound("NEAR_TIMES_MAX", 1)

    records = store.job_records(job)

    assert ((2, False), 1) == (
        (records.searched.transactions, records.searched.are_all),
        records.searched.near,
    )
    # The two newest, and two from the first lease on.
    assert [4, 3, 1, 0] == [transaction.claims[0].task for transaction in records.transactions]


def test_a_machine_s_visits_are_told_up_to_a_number_of_claims(either: Store, bound: Bound) -> None:
    _, machine = granted_one_by_one(either, 5)
    bound("VISIT_CLAIMS_MAX", 2)

    records = either.machine_records(machine)

    assert [(4,), (3,)] == [visit.tasks for visit in records.visits]
    story = machine_stories.told_story(records, machine, "m1")
    assert "Of commits that named it, only the newest 2 are told." in story.not_told


@pytest.mark.parametrize(("evictions_max", "told"), [(2, 2), (4, 3)])
def test_a_story_says_that_older_evictions_are_not_told(
    either: Store, bound: Bound, evictions_max: int, told: int
) -> None:
    (machine,) = add_a_cell(either, 1, cpu_milli=3_000)
    victim = a_running_job(either, a_spec(3), [machine] * 3)
    rival = a_leased_job(either, a_spec(3, precedence=100))
    for task in range(3):
        claims = evicting(a_claim(task, machine=machine), (0, victim.id, task))
        assert either.commit(a_transaction(claims_of_job(rival, claims))).accepted.all()
    bound("EVICTIONS_MAX", evictions_max)

    records, on_machine = either.job_records(victim.id), either.machine_records(machine)

    assert (told, told) == (len(records.evictions), len(on_machine.evictions))
    for story in (
        job_stories.told_story(records, status_of(either, victim), []),
        machine_stories.told_story(on_machine, machine, "m1"),
    ):
        said = [sentence for sentence in story.not_told if "evictions" in sentence]
        cut = ["Of evictions and moves by commits, only the newest 2 are told."]
        assert (cut if told < 3 else []) == said


def test_of_a_transaction_the_first_refused_claims_are_told_and_all_are_counted(
    either: Store, bound: Bound
) -> None:
    one, two = add_a_cell(either, 2, cpu_milli=2_000)
    job = a_leased_job(either, a_spec(6))
    claim(either, job, [0, 1, 2, 3, 4, 5], [one, two, one, one, one, one])
    bound("CLAIMS_TOLD_MAX", 4)

    (transaction,) = either.transactions_of(job.id, transactions_max=9)

    assert (3, 3) == (transaction.granted, transaction.refused)
    assert [
        (3, Verdict.OVERCOMMIT),
        (4, Verdict.OVERCOMMIT),
        (5, Verdict.OVERCOMMIT),
        (0, Verdict.ACCEPTED),
    ] == [(it.task, it.verdict) for it in transaction.claims]
