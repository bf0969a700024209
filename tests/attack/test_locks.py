"""A login that leaves a transaction open blocks only calls that need the rows it has changed."""

from collections.abc import Callable
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.attack.audit import violations
from tests.attack.calls import (
    LEASE_MS,
    Claim,
    Lease,
    call,
    lease_jobs,
    make_transaction,
    step,
    submit_jobs,
)
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Database, Session
from tests.attack.wires import UNLIMITED, a_group, a_job

UNKNOWN_TOKEN = UUID(int=99)
UNKNOWN_JOB = 99
LONG_MS = 86_400_000


class LockScenario:
    """A scheduler, a node and a submitter with two jobs; and a hostile scheduler and node."""

    def __init__(self, database: Database, owner: Session) -> None:
        self.database = database
        self.machines = add_machines(owner, 2)
        self.submitter = database.session("submitter", "omega_submitter")
        self.scheduler = database.session("scheduler", "omega_scheduler")
        self.node = database.session("node", "omega_node")
        self.hostile = database.session_of("hostile", "attack_hostile", "omega_scheduler")
        self.hostile_node = database.session_of("hostile node", "attack_hostile_node", "omega_node")
        assign = "SELECT omega.assign_machines(%s, %s)"
        owner.execute(assign, [self.node.connection.info.user, None])
        second = [f"machine-{self.machines[1]}"]
        owner.execute(assign, [self.hostile_node.connection.info.user, second])
        submit_jobs(self.submitter, a_job(a_group(tasks=4)), a_job(a_group(tasks=4)))
        self.running, self.pending = lease_jobs(self.scheduler)
        call(self.scheduler, "commit_claims", *self.claim(1, self.running, 0))
        call(self.scheduler, "begin_round", "rounds", "scheduler", LONG_MS)

    def claim(self, number: int, lease: Lease, task: int) -> list[object]:
        """Return the arguments of a commit that claims a core of the first machine."""
        return make_transaction(number, Claim(lease, task, self.machines[0])).arguments

    @property
    def jobs(self) -> list[int]:
        return [self.running.job, self.pending.job]

    def blocked_calls(self) -> list[str]:
        """Return the first call of scheduler, node or submitter that waits for a lock."""
        tokens = [self.running.token, self.pending.token]
        calls: list[tuple[Session, str, list[object]]] = [
            (self.scheduler, "renew_leases", [self.jobs, tokens, LEASE_MS]),
            (self.scheduler, "commit_claims", self.claim(7, self.running, 1)),
            (self.scheduler, "note_round", ["rounds", 1, Jsonb({})]),
            (self.scheduler, "report_process", ["batch", "scheduler", 1, Jsonb({})]),
            (self.node, "end_tasks", [[self.running.job], [0], None]),
            (self.submitter, "cancel_job", [self.pending.job]),
        ]
        for session, function, arguments in calls:
            session.execute("BEGIN")
            if not step(self.database, session, function, *arguments):
                blocked = [f"{function}: {self.database.waiting()}"]
                session.connection.cancel_safe()
                assert session.answer.sqlstate
                session.execute("ROLLBACK")
                return blocked
            assert not session.answer.sqlstate, f"{function}: {session.answer.message}"
            session.execute("ROLLBACK")
        return []


@pytest.fixture
def lock_scenario(database: Database, owner: Session) -> LockScenario:
    return LockScenario(database, owner)


HostileCall = Callable[[LockScenario], object]


def with_unknown_tokens(function: str, *more: object) -> HostileCall:
    return lambda it: call(it.hostile, function, it.jobs, [UNKNOWN_TOKEN] * 2, *more)


HOSTILE_CALLS: dict[str, HostileCall] = {
    "renew_leases with unknown tokens": with_unknown_tokens("renew_leases", LEASE_MS),
    "hand_back_jobs with unknown tokens": with_unknown_tokens(
        "hand_back_jobs", [0, 0], [True, True]
    ),
    "park_jobs with unknown tokens": with_unknown_tokens("park_jobs", ["no_room"] * 2, [""] * 2),
    "wake_jobs of jobs that are not parked": lambda it: call(it.hostile, "wake_jobs", it.jobs),
    "rescue_jobs without expired leases": lambda it: call(it.hostile, "rescue_jobs"),
    "lease_jobs without pending jobs": lambda it: call(
        it.hostile, "lease_jobs", "batch", "me", 9, LEASE_MS
    ),
    "recall_jobs without a round": lambda it: call(
        it.hostile, "recall_jobs", "batch", 1, None, LEASE_MS
    ),
    "end_tasks of unplaced tasks": lambda it: call(
        it.hostile_node, "end_tasks", it.jobs * 2, [1, 2, 3, 2], None
    ),
    "end_tasks with wrong start times": lambda it: call(
        it.hostile_node, "end_tasks", it.jobs, [0, 0], [1, 1]
    ),
    "end_tasks with start times of null": lambda it: call(
        it.hostile_node, "end_tasks", it.jobs, [0, 0], [None, None]
    ),
    "lose_tasks of machines that are up": lambda it: call(it.hostile, "lose_tasks", it.machines),
    "enforce_notice of a machine without notice": lambda it: call(
        it.hostile, "enforce_notice", it.machines[0]
    ),
    "report_progress of jobs on other machines": lambda it: call(
        it.hostile_node, "report_progress", it.jobs, [1, 1], [1, 1]
    ),
    "begin_round before the last round is over": lambda it: call(
        it.hostile, "begin_round", "rounds", "hostile", LONG_MS
    ),
    "commit_claims with an unknown token": lambda it: call(
        it.hostile, "commit_claims", *it.claim(9, Lease(it.running.job, UNKNOWN_TOKEN), 2)
    ),
    "commit_claims for an unknown job": lambda it: call(
        it.hostile, "commit_claims", *it.claim(9, Lease(UNKNOWN_JOB, UNKNOWN_TOKEN), 0)
    ),
    "commit_claims that moves a task under an unknown token": lambda it: call(
        it.hostile,
        "commit_claims",
        *make_transaction(
            9,
            Claim(
                Lease(it.running.job, UNKNOWN_TOKEN),
                0,
                it.machines[1],
                evicts=((it.running.job, 0),),
            ),
        ).arguments,
    ),
    "commit_claims with an eviction for an unknown job": lambda it: call(
        it.hostile,
        "commit_claims",
        *make_transaction(
            9,
            Claim(
                Lease(UNKNOWN_JOB, UNKNOWN_TOKEN),
                0,
                it.machines[0],
                evicts=((it.running.job, 0),),
            ),
        ).arguments,
    ),
    "reads": lambda it: [call(it.hostile, name) for name in ("read_mark", "read_quotas")],
}


@pytest.mark.parametrize("quotas", [(), (("tenant", "ann"), ("scheduler", "batch"))])
def test_calls_without_effect_lock_nothing(
    database: Database,
    owner: Session,
    lock_scenario: LockScenario,
    quotas: tuple[tuple[str, str], ...],
) -> None:
    for quota in quotas:
        call(owner, "set_quota", *quota, [10_000] + [UNLIMITED] * 4)
        call(owner, "count_quota", *quota)
    hostile_sessions = (lock_scenario.hostile, lock_scenario.hostile_node)
    blocked = {}
    for what, hostile_call in HOSTILE_CALLS.items():
        for session in hostile_sessions:
            session.execute("BEGIN")
        hostile_call(lock_scenario)
        blocked[what] = lock_scenario.blocked_calls()
        for session in hostile_sessions:
            session.execute("ROLLBACK")

    assert {what: [] for what in HOSTILE_CALLS} == blocked
    assert [] == violations(database)


def test_a_commit_returns_all_rows_as_of_one_moment(
    database: Database, lock_scenario: LockScenario
) -> None:
    """A commit locks the rows of alternates too, because it returns them.

    Without the lock a second commit could change the alternate's row while the first holds the
    other row. A third transaction could then read the second row changed and the first unchanged,
    which no serial order explains.
    """
    first, second = lock_scenario.machines
    rival = database.session("rival", "omega_scheduler")
    lock_scenario.scheduler.execute("BEGIN")
    claim = Claim(lock_scenario.running, 1, first, alternates=(second,))
    with_alternate = make_transaction(7, claim)
    call(lock_scenario.scheduler, "commit_claims", *with_alternate.arguments)

    on_alternate = make_transaction(8, Claim(lock_scenario.pending, 0, second))
    assert not step(database, rival, "commit_claims", *on_alternate.arguments)

    lock_scenario.scheduler.execute("COMMIT")
    assert not rival.answer.sqlstate
    assert [] == violations(database)
