"""Several connections at once draw on one quota: it is used to the last bit, and no further."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import psycopg

from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Verdict
from omega.model.quotas import Budget, QuotaScope
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    some_claims,
)
from omega.testing.steps import (
    end,
    submit_and_lease,
    verdicts_of,
)
from tests.fixtures.doses import Dose, Tallier
from tests.postgres.drawing import (
    ANN,
    BATCH,
    CLAIMS_MAX,
    COMMITTERS,
    CORE,
    CORES_MAX,
    ROOMY,
    a_store,
    limit,
    together,
    used,
)


@dataclass
class Committer:
    """Claims for one job on one machine, with nobody else's in the way but by their quota."""

    job: LeasedJob
    machine: int
    rng: np.random.Generator
    next_task: int = 0
    granted: int = 0
    """Cores, over all."""
    transactions: int = 0
    begun_anew: int = 0
    """How often the store had to, for others held what this one needed."""

    def commit(self, store: Store, cores: int) -> bool:
        """Claim so many cores for each of a few tasks; say whether a quota refused any."""
        tasks = self.next_task + np.arange(self.rng.integers(1, CLAIMS_MAX + 1))
        claims = some_claims(tasks.tolist(), [self.machine] * len(tasks), cpu_milli=cores * CORE)
        outcome = store.commit(a_transaction(claims_of_job(self.job, claims)))
        grants = int(outcome.accepted.sum())

        # All alike, and while they are judged nobody else draws on what is held: no gaps.
        refused = [Verdict.QUOTA] * (len(tasks) - grants)
        assert [Verdict.ACCEPTED] * grants + refused == verdicts_of(outcome)
        self.next_task += grants
        self.granted += grants * cores
        self.transactions += 1
        return bool(refused)

    def commit_often(self, transactions: int, enough: Callable[[], bool], store: Store) -> int:
        """Claim so often, and on until it is enough; return how often a quota refused something."""
        before, refused = self.transactions, 0
        while self.transactions < before + transactions or not refused or not enough():
            refused += self.commit(store, int(self.rng.integers(1, CORES_MAX + 1)))
        return refused

    def take_all(self, store: PostgresStore) -> int:
        """Claim until not even one core is left; return how many cores were granted."""
        before = self.granted
        while True:
            cores = int(self.rng.integers(1, CORES_MAX + 1))
            if self.commit(store, cores) and self.commit(store, 1):
                self.begun_anew += store.counts.get("LockNotAvailable", 0)
                return self.granted - before


def committers(store: PostgresStore, seed: int, *, tasks: int) -> list[Committer]:
    """Return some, each with a job of ann's and a machine of its own."""
    here = len(store.snapshot().rows)
    machines = store.add_machines(
        a_cell(COMMITTERS, cpu_milli=ROOMY * CORE, first=here + 1)
    ).tolist()
    jobs = submit_and_lease(store, *[a_spec(tasks, tenant="ann")] * COMMITTERS)
    return [
        Committer(job, machine, np.random.default_rng([seed, machine]))
        for job, machine in zip(jobs, machines, strict=True)
    ]


def race(url: str, store: PostgresStore, lap: int) -> list[Committer]:
    """Let some race to the end of two quotas; whichever is less is used up, and no more."""
    rng = np.random.default_rng(lap)
    most = int(rng.integers(20, 200))
    limit(store, ANN, Budget.CPU_MILLI, most * CORE)
    limit(store, BATCH, Budget.CPU_MILLI, (most + int(rng.integers(-10, 10))) * CORE)
    least = min(quota.left[Budget.CPU_MILLI] for quota in store.quotas())
    rivals = committers(store, lap, tasks=400)

    granted = together(url, [rival.take_all for rival in rivals])

    assert least == sum(granted) * CORE
    assert 0 == min(quota.left[Budget.CPU_MILLI] for quota in store.quotas())
    assert [] == list(store.verify())
    for rival in rivals:
        store.cancel(rival.job.id)
    assert {Budget.CPU_MILLI: 0} == used(store)
    return rivals


def test_a_race_ends_at_the_limit_exactly(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    with tally("commits for the end of one", of="races for a quota") as row:
        for lap in range(dose(short=4, long=150)):
            row.tried += 1
            race(database_url, store, lap)
            row.survived += 1


def test_who_comes_too_late_to_a_shard_does_not_hold_it_and_wait(empty_database_url: str) -> None:
    """The search for one takes long here, so that others draw on what it has found."""
    migrate(empty_database_url)
    right, slow = "AND NOT s.closed AND", "AND NOT s.closed AND pg_sleep(0.001) IS NOT NULL AND"
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        definition = "SELECT pg_get_functiondef('omega.hold_quotas'::regproc)"
        (text,) = connection.execute(definition).fetchone() or ("",)
        assert 1 == text.count(right)
        connection.execute(text.replace(right, slow).encode())
    with a_store(empty_database_url) as store:
        races = (race(empty_database_url, store, lap) for lap in count())
        assert any(rival.begun_anew for rivals in races for rival in rivals)


def begin(machine: int, jobs: Sequence[LeasedJob], store: PostgresStore) -> int:
    """Claim next to nothing for the first task of each job; return how many were granted it."""
    claims = a_claim(0, machine=machine, cpu_milli=1)
    outcomes = [store.commit(a_transaction(claims_of_job(job, claims))) for job in jobs]
    return sum(int(outcome.accepted.sum()) for outcome in outcomes)


def test_as_many_jobs_begin_as_a_quota_allows(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    each = 12
    with tally("jobs for the end of one", of="races for a quota") as row:
        for lap in range(dose(short=2, long=40)):
            rng = np.random.default_rng(lap)
            most = int(rng.integers(1, COMMITTERS * each))
            limit(store, ANN, Budget.JOBS, most)
            machines = store.add_machines(a_cell(COMMITTERS, first=1 + lap * COMMITTERS)).tolist()
            jobs = submit_and_lease(store, *[a_spec(tenant="ann")] * COMMITTERS * each)

            begun = together(
                database_url,
                [
                    partial(begin, machine, jobs[rival::COMMITTERS])
                    for rival, machine in enumerate(machines)
                ],
            )

            row.tried += len(jobs)
            assert most == sum(begun)
            assert {Budget.JOBS: most} == used(store)
            assert [] == list(store.verify())
            for job in jobs:
                store.cancel(job.id)
            row.survived += len(jobs)


class Bystanders:
    """Nodes that end tasks, an operator who changes the quota, and one who checks the books."""

    def __init__(self, url: str, rng: np.random.Generator) -> None:
        self._url = url
        self._node_rng, self._operator_rng = rng.spawn(2)
        self._over, self._failed = threading.Event(), threading.Event()
        self.ended = self.changes = self.checks = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with ThreadPoolExecutor(3) as pool:
            futures: list[Future[None]] = [
                pool.submit(self._again_and_again, what)
                for what in (self._end_tasks, self._change_quota, self._check)
            ]
            try:
                yield
            finally:
                self._over.set()
            for future in futures:
                future.result()

    def have_been_there(self) -> bool:
        """Say whether each has done something while others commit."""
        return min(self.ended, self.changes, self.checks) > 1 or self._failed.is_set()

    def _again_and_again(self, what: Callable[[PostgresStore], None]) -> None:
        with a_store(self._url) as store:
            try:
                while not self._over.is_set():
                    what(store)
            except BaseException:
                self._failed.set()
                raise

    def _end_tasks(self, store: PostgresStore) -> None:
        live = store.allocations()
        some = self._node_rng.random(len(live)) < self._node_rng.choice([0.05, 0.5])
        self.ended += store.end_tasks(live.job[some], live.task[some], live.started_ms[some])

    def _change_quota(self, store: PostgresStore) -> None:
        """Set a limit, and see that what is used comes down to it and goes no higher."""
        most = int(self._operator_rng.integers(60)) * CORE
        limit(store, ANN, Budget.CPU_MILLI, most)
        held = used(store)[Budget.CPU_MILLI]
        for _ in range(4):
            now = used(store)[Budget.CPU_MILLI]
            assert now <= max(most, held)
            held = now
        if self._operator_rng.random() < 0.3:
            assert store.remove_quota(*ANN)
        self.changes += 1

    def _check(self, store: PostgresStore) -> None:
        assert [] == list(store.verify()), "in the midst of it"
        self.checks += 1


def test_limits_that_change_while_tasks_end_are_kept(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    share = dose(short=40, long=3_000)
    rivals = committers(store, seed=1, tasks=LIMITS.tasks_per_job_max)
    bystanders = Bystanders(database_url, np.random.default_rng(7))
    limit(store, BATCH, Budget.CPU_MILLI, 10**9)

    with tally("commits while it changes", of="races for a quota") as row:
        with bystanders.at_work():
            often = [partial(r.commit_often, share, bystanders.have_been_there) for r in rivals]
            together(database_url, often)
        row.tried += sum(rival.transactions for rival in rivals)
        most = used_by(store) + 100 * CORE
        limit(store, ANN, Budget.CPU_MILLI, most)
        granted = together(database_url, [rival.take_all for rival in rivals])

        assert 100 == sum(granted)
        assert {Budget.CPU_MILLI: most} == used(store)
        assert [] == list(store.verify())
        row.survived += row.tried


def used_by(store: Store) -> int:
    """Return what all jobs hold, added up from what runs."""
    return int(store.allocations().amounts[:, Budget.CPU_MILLI].sum())


def take_and_give(machine: int, job: LeasedJob, store: Store) -> int:
    """Claim a core for each task, and end it at once; return how many were granted."""
    granted = 0
    for task in range(job.spec.tasks):
        claims = a_claim(task, machine=machine)
        granted += int(store.commit(a_transaction(claims_of_job(job, claims))).accepted.sum())
        end(store, job, task)
    return granted


def test_two_quotas_that_are_used_up_at_once_are_held_in_one_order(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    """Batch jobs of two tenants, and their ends: all shards of two quotas, again and again."""
    tenants = ["ann", "bob"] * (COMMITTERS // 2)
    limit(store, BATCH, Budget.CPU_MILLI, 3 * CORE)
    for tenant in sorted(set(tenants), reverse=True):
        limit(store, (QuotaScope.TENANT, tenant), Budget.CPU_MILLI, 2 * CORE)
    tasks = dose(short=40, long=2_000)
    machines = store.add_machines(a_cell(COMMITTERS)).tolist()
    jobs = submit_and_lease(store, *[a_spec(tasks, tenant=tenant) for tenant in tenants])

    with tally("commits on two that are used up", of="races for a quota") as row:
        row.tried += COMMITTERS * tasks
        works = [partial(take_and_give, *both) for both in zip(machines, jobs, strict=True)]
        granted = together(database_url, works)
        row.survived += row.tried

    assert min(granted) > 0
    assert {Budget.CPU_MILLI: 0} == used(store, BATCH) == used(store)
    assert [] == list(store.verify())
