"""Recordings of schedulers that race on one Postgres, judged again by numpy."""

import signal
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import pytest

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.events import ignore
from omega.framework.recording import Recording
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import FINAL, State
from omega.model.arrays import integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.outcomes import Outcome, Verdict
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.reports.replay import replay
from omega.store.leases import HandBack
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.store.saved.recorded import RecordedCommit
from omega.store.saved.recordings import RecordingFile, recorded_commits
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting, or_on
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell, claim, evicted_tasks, lease_all, verdicts_of
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.at_work import settings, wait_until
from tests.fixtures.command_line import Omega, Started, document

ACCEPTED, STALE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.STALE, Verdict.OVERCOMMIT
GANG_BROKEN, QUOTA = Verdict.GANG_BROKEN, Verdict.QUOTA
AT_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


class Kept:
    """What a store recorded, and a file of it."""

    def __init__(self, store: Store) -> None:
        self.commits: list[RecordedCommit] = []
        self.store = Recording(store, lambda: AT_MS, self.commits.append).store

    def facts(self) -> list[bool]:
        """Return of which transactions it is known what they were judged against."""
        return [it.against is not None for it in self.commits]

    def written(self, path: Path) -> Path:
        """Write all that was kept; return where."""
        file = RecordingFile(path, kind="batch", replica="0", began_ms=AT_MS)
        for commit in self.commits:
            file.write(commit)
        file.close()
        return path


def replayed(omega: Omega, *arguments: object) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the document of `omega replay`."""
    ran = omega("replay", *arguments, "--json", "-")
    return ran.code, document(ran._replace(code=0))


@pytest.mark.parametrize("is_limited", [False, True], ids=["without_quotas", "with_a_quota"])
def test_racing_schedulers_are_judged_alike_again(
    store: PostgresStore,
    database_url: str,
    omega: Omega,
    tmp_path: Path,
    is_limited: bool,  # noqa: FBT001 - with or without
) -> None:
    add_a_cell(store, 4, cpu_milli=4_000)
    if is_limited:
        store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 6_000}))
    strict = BatchScheduler()
    strict.rule = ConflictRule.SEQUENCE
    schedulers = [BatchScheduler(), BatchScheduler(), strict, ServiceScheduler()]
    jobs = store.submit(
        [
            a_spec(
                1 + number % 4,
                tenant="ann" if number % 3 else "bob",
                minimum=number % 2 * (1 + number % 4),
                scheduler="service" if number % 5 == 0 else "batch",
                precedence=100 if number % 5 == 0 else number % 3,
            )
            for number in range(24)
        ]
    )
    stop, kept = threading.Event(), []
    with ExitStack() as stack:
        threads = []
        for number, scheduler in enumerate(schedulers):
            mine = stack.enter_context(closing(PostgresStore(database_url)))
            kept.append(Kept(mine))
            process = a_process(scheduler, kept[-1].store, str(number), database_url, stop)
            threads.append(threading.Thread(target=work, args=(process, stop)))
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: are_over(store, jobs), "all jobs to be over")
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    files = [it.written(tmp_path / f"{number}") for number, it in enumerate(kept)]
    code, told = replayed(omega, *files)

    summary = told["summary"]
    assert (0, 0, []) == (code, summary["differ"], told["rows"])
    assert sum(len(it.commits) for it in kept) == summary["commits"] + summary["without_facts"]
    assert 0 < summary["commits"]
    # Without quotas only what claims evict can have changed since it was read.
    sure = [it for each in kept for it in each.commits if not len(it.transaction.claims.evictions)]
    assert is_limited or all(it.against is not None for it in sure)


def a_process(
    scheduler: Scheduler, store: Store, replica: str, url: str, stop: threading.Event
) -> SchedulerProcess:
    return SchedulerProcess(
        scheduler=scheduler,
        store=store,
        open_store=lambda: PostgresStore(url),
        clock=RealClock(stop),
        settings=settings(600_000).model_copy(update={"rescue_interval_ms": 100}),
        sink=ignore,
        replica=replica,
        run_seed=int(replica),
        stop=stop,
    )


def work(process: SchedulerProcess, stop: threading.Event) -> None:
    while not stop.is_set():
        process.step()
    process.finish()


def are_over(store: PostgresStore, jobs: list[int]) -> bool:
    """End what runs; return whether all jobs are over."""
    live = store.allocations()
    store.end_tasks(live.job[::2], live.task[::2])
    return all(status is not None and status.state in FINAL for status in map(store.job, jobs))


def contested(store: PostgresStore) -> Kept:
    """Have five transactions judged that meet on two machines; return what was kept of them."""
    kept = Kept(store)
    one, two = add_a_cell(store, 2, cpu_milli=2_000)
    store.submit([a_spec(2), a_spec(2, minimum=2), a_spec(1), a_spec(1, precedence=100)])
    high, first, gang, late = lease_all(kept.store)
    kept.store.occupants(integers([one, two]))
    claim(kept.store, first, [0, 1], [one, two])
    assert [GANG_BROKEN, OVERCOMMIT] == verdicts_of(claim(kept.store, gang, [0, 1], [one, one]))
    assert [STALE] == verdicts_of(claim(kept.store, late, [0], [one], rule=ConflictRule.SEQUENCE))
    claim(kept.store, late, [0], [one])
    kept.store.occupants(integers([one, two]))
    taken = evicting(a_claim(0, machine=one), (0, first.id, 0))
    outcome = kept.store.commit(a_transaction(claims_of_job(high, taken)))
    assert [(first.id, 0)] == evicted_tasks(outcome)
    assert [True] * 5 == kept.facts()
    return kept


def test_the_same_rule_lists_nothing(store: PostgresStore, omega: Omega, tmp_path: Path) -> None:
    file = contested(store).written(tmp_path / "a")

    code, told = replayed(omega, file)

    assert (0, []) == (code, told["rows"])
    assert {"commits": 5, "claims": 7, "differ": 0, "without_facts": 0} == {
        name: told["summary"][name] for name in ("commits", "claims", "differ", "without_facts")
    }
    assert omega("replay", file).out == "5 transactions with 7 claims judged again; 0 differ.\n"


def test_by_the_sequence_rule_stale_claims_differ(
    store: PostgresStore, omega: Omega, tmp_path: Path
) -> None:
    kept = contested(store)
    file = kept.written(tmp_path / "a")

    code, told = replayed(omega, file, "--rule", "sequence")

    assert 1 == code
    assert [
        [("gang_broken", "stale"), ("overcommit", "stale")],
        [("accepted", "stale")],
        [("accepted", "stale")],
    ] == [[(claim["was"], claim["now"]) for claim in row["claims"]] for row in told["rows"]]
    assert [str(kept.commits[at].transaction.id) for at in (1, 3, 4)] == [
        row["transaction"] for row in told["rows"]
    ]
    evicted = [[], [], [list(kept.commits[4].evicted[0])]]
    assert evicted == [row["evicted_was"] for row in told["rows"]]
    assert [[], [], []] == [row["evicted_now"] for row in told["rows"]]
    assert [{"was": "accepted", "now": "stale", "claims": 2}] == told["summary"]["verdicts"][:1]
    shown = omega("replay", file, "--rule", "sequence")
    assert 1 == shown.code
    assert "5 transactions with 7 claims judged again; 3 differ." in shown.out


def test_by_the_fit_rule_a_stale_claim_would_have_been_granted(
    store: PostgresStore, omega: Omega, tmp_path: Path
) -> None:
    code, told = replayed(omega, contested(store).written(tmp_path / "a"), "--rule", "fit")

    assert 1 == code
    assert [("stale", "accepted")] == [
        (claim["was"], claim["now"]) for row in told["rows"] for claim in row["claims"]
    ]


def test_quotas_and_alternates_are_recorded(store: PostgresStore, tmp_path: Path) -> None:
    kept = Kept(store)
    one, two = add_a_cell(store, 2, cpu_milli=2_000)
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 2_500, Budget.JOBS: 1}))
    store.submit([a_spec(3, tenant="ann"), a_spec(1, tenant="ann"), a_spec(1, tenant="bob")])
    ann, second, bob = lease_all(kept.store)
    outcomes = [
        claim(kept.store, ann, [0, 1, 2], [one, one, two]),
        claim(kept.store, second, [0], [two], cpu_milli=1),
        kept.store.commit(
            a_transaction(claims_of_job(bob, or_on(a_claim(0, machine=one), (0, two))))
        ),
    ]

    assert [[ACCEPTED, ACCEPTED, QUOTA], [QUOTA], [ACCEPTED]] == [
        verdicts_of(outcome) for outcome in outcomes
    ]
    assert [two] == outcomes[2].machine.tolist()
    assert [True] * 3 == kept.facts()
    assert 0 == replay(recorded_commits(kept.written(tmp_path / "a"))).differ


def test_what_is_not_known_exactly_is_recorded_without_facts(store: PostgresStore) -> None:
    kept = Kept(store)
    (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
    store.submit([a_spec(2), a_spec(1, precedence=100)])
    high, low = lease_all(store)  # the recording store has not seen these leases
    claim(kept.store, low, [0], [machine])
    store.hand_back([HandBack(low.id, low.token, 0, progressed=True)])
    (low,) = lease_all(kept.store)
    transaction = a_transaction(claims_of_job(low, a_claim(1, machine=machine)))
    kept.store.commit(transaction)
    taken = evicting(a_claim(0, machine=machine), (0, low.id, 0))
    kept.store.commit(a_transaction(claims_of_job(high, taken)))

    assert [False, True, False] == kept.facts()


def test_an_answer_that_was_lost_is_recorded_without_facts(store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1)
    kept = Kept(cast(Store, LosesOneAnswer(store)))
    store.submit([a_spec(1)])
    (job,) = lease_all(kept.store)
    transaction = a_transaction(claims_of_job(job, a_claim(0, machine=machine)))

    with pytest.raises(StoreUnavailable):
        kept.store.commit(transaction)
    kept.store.commit(transaction)

    assert [False] == kept.facts()


class LosesOneAnswer(PassThrough):
    """A store that commits once without an answer."""

    has_lost = False

    def commit(self, transaction: Transaction) -> Outcome:
        """Commit; lose the first answer."""
        outcome = super().commit(transaction)
        if not self.has_lost:
            self.has_lost = True
            raise StoreUnavailable("no answer")
        return outcome


def test_a_scheduler_records_until_it_is_stopped(
    store: PostgresStore, started: Started, omega: Omega, tmp_path: Path
) -> None:
    add_a_cell(store, 2, cpu_milli=4_000)
    jobs = store.submit([a_spec(2), a_spec(3)])
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        started("scheduler", "run", "batch", "--replica", file.name, "--record", str(file))

    def are_placed() -> bool:
        return all(it is not None and it.state is State.RUNNING for it in map(store.job, jobs))

    started.wait_for(lambda: are_placed() and all(file.exists() for file in files))
    unfinished = omega("replay", *files)
    assert 2 == unfinished.code
    assert "the last line is missing" in unfinished.err
    for process in started.processes:
        process.send_signal(signal.SIGTERM)
        process.wait()

    code, told = replayed(omega, *files)

    assert (0, 0, 0) == (code, told["summary"]["differ"], told["summary"]["without_facts"])
    assert 5 <= told["summary"]["claims"]
    assert 0 == omega("replay", *files, "--unfinished").code
    again = omega("scheduler", "run", "batch", "--record", files[0])
    assert 2 == again.code
    assert "it is there, and is not overwritten" in again.err


@pytest.mark.parametrize("name", ["missing", "folder"])
def test_what_cannot_be_read_is_one_sentence(omega: Omega, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()

    ran = omega("replay", tmp_path / name)

    assert (2, 1) == (ran.code, len(ran.err.splitlines()))
    assert "it cannot be read" in ran.err
