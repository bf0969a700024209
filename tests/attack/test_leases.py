"""Leases: how many bytes one call returns, and which jobs a round recalls."""

import pytest
from psycopg.types.json import Jsonb

from tests.attack.audit import violations
from tests.attack.calls import (
    LEASE_MS,
    Claim,
    Lease,
    call,
    commit,
    lease_jobs,
    make_transaction,
    start,
    submit_jobs,
    try_call,
)
from tests.attack.machine_rows import add_machines, job_state
from tests.attack.sessions import Database, Rows, Session
from tests.attack.wires import KINDS, Wire, a_constraint, a_group, a_job

BYTES_MAX = 8 * 2**20
WIRE_BYTES = 120_000
JOBS = 100
LONG_MS = 86_400_000
NOTHING = (0,) * len(KINDS)


def submit_large(session: Session, owner: Session, *wires: Wire) -> list[int]:
    """Submit jobs and give them specs that are long but compress well; return their ids."""
    constraint = a_constraint(values=["x" * 196] * (WIRE_BYTES // 200))
    (model,) = submit_jobs(session, a_job(a_group(constraints=[constraint]), scheduler="model"))
    call(session, "cancel_job", model)
    ids = submit_jobs(session, *wires)
    owner.execute(
        "UPDATE omega.job_spec SET wire = (SELECT wire FROM omega.job_spec WHERE job_id = %s)"
        " WHERE job_id = ANY (%s::bigint[])",
        [model, ids],
    )
    return ids


def spec_bytes(database: Database, jobs: list[int]) -> int:
    """Return the length of the specs of jobs as text."""
    query = "SELECT coalesce(sum(octet_length(wire::text)), 0) FROM omega.job_spec"
    ((length,),) = database.query(f"{query} WHERE job_id = ANY (%s)", [jobs])
    return int(length)


def test_a_job_above_the_byte_limit_is_leased_alone(
    owner: Session, submitter: Session, scheduler: Session
) -> None:
    ids = submit_large(submitter, owner, a_job(), a_job())
    owner.execute(
        "UPDATE omega.job_spec SET wire = jsonb_set(wire, '{name}', to_jsonb(repeat('x', %s)))",
        [BYTES_MAX + 1],
    )

    assert [ids[:1], ids[1:]] == [[it.job for it in lease_jobs(scheduler)] for _ in range(2)]


def test_a_call_leases_eight_mebibytes_at_most(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    ids = submit_large(submitter, owner, *[a_job()] * JOBS)
    taken: list[int] = []
    while len(taken) < len(ids):
        now = [it.job for it in lease_jobs(scheduler, jobs_max=2**31 - 1)]
        assert now
        assert spec_bytes(database, now) <= BYTES_MAX
        waiting = database.query("SELECT id FROM omega.job WHERE state = 'pending' ORDER BY id")
        taken += now
        assert [job for (job,) in waiting] == [job for job in ids if job not in taken]

    assert ids == taken
    assert 2 * BYTES_MAX > spec_bytes(database, ids) > BYTES_MAX


def test_a_read_of_parked_jobs_returns_eight_mebibytes_at_most(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    """Of large jobs; a small one is returned whatever comes before it."""
    submit_large(submitter, owner, *[a_job()] * JOBS)
    (small,) = submit_jobs(submitter, a_job())
    while leases := lease_jobs(scheduler):
        jobs, tokens = [it.job for it in leases], [it.token for it in leases]
        count = len(leases)
        call(scheduler, "park_jobs", jobs, tokens, ["no_room"] * count, ["full"] * count)

    read = [row[0] for row in call(scheduler, "parked_jobs", "batch", 2**31 - 1)]
    assert small == read.pop()
    assert 0 < spec_bytes(database, read) <= BYTES_MAX
    assert JOBS > len(read)


def test_a_recall_returns_eight_mebibytes_at_most(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    """The other jobs run on, and are recalled by a later round if the first ones are not."""
    (machine,) = add_machines(owner, 1)
    large = submit_large(submitter, owner, *[a_job()] * JOBS)
    (small,) = submit_jobs(submitter, a_job())
    number = 0
    while leases := lease_jobs(scheduler, jobs_max=50):
        number += 1
        claims = (Claim(it, 0, machine, amounts=NOTHING) for it in leases)
        commit(scheduler, make_transaction(number, *claims))
    call(scheduler, "begin_round", "batch", "me", 0)
    first = [row[0] for row in recall(scheduler, 1, kind="batch")]

    assert small == first[-1]
    assert large[: len(first) - 1] == first[:-1]
    assert JOBS > len(first)
    assert 0 < spec_bytes(database, first[:-1]) <= BYTES_MAX
    rest = [row[0] for row in recall(scheduler, 1, jobs=large[len(first) - 1 :], kind="batch")]
    assert large == first[:-1] + rest


def test_the_byte_limit_keeps_the_order_of_large_jobs_and_does_not_delay_small_ones(
    owner: Session, submitter: Session, scheduler: Session
) -> None:
    """A large job that does not fit into a call is the first of the next call."""
    low = submit_large(submitter, owner, *[a_job()] * (JOBS // 2))
    (small,) = submit_jobs(submitter, a_job())
    high = submit_large(submitter, owner, *[a_job(precedence=10)] * (JOBS // 2))
    first = [it.job for it in lease_jobs(scheduler)]
    then = [it.job for it in lease_jobs(scheduler)]

    assert small == first.pop()
    assert high + low == first + then
    assert then


def place_jobs(submitter: Session, scheduler: Session, machine: int, *kinds: str) -> list[Lease]:
    """Submit and place a job of each kind; return the leases."""
    leases = []
    for kind in kinds:
        submit_jobs(submitter, a_job(a_group(tasks=2), scheduler=kind))
        leases += lease_jobs(scheduler, kind, holder="holder")
    for n, lease in enumerate(leases):
        claims = (Claim(lease, task, machine) for task in (0, 1))
        commit(scheduler, make_transaction(n, *claims))
    return leases


def recall(session: Session, number: int, jobs: list[int] | None = None, kind: str = "k") -> Rows:
    return call(session, "recall_jobs", kind, number, jobs, LEASE_MS)


def end_rounds(owner: Session) -> None:
    """Move all rounds a day into the past, so that they are over."""
    owner.execute(
        "UPDATE omega.round SET began_at = began_at - interval '1 day',"
        " ends_at = ends_at - interval '1 day'"
    )


@pytest.fixture
def other_scheduler(database: Database) -> Session:
    """A scheduler of another login."""
    return database.session_of("other_scheduler", "attack_other", "omega_scheduler")


@pytest.fixture
def running(owner: Session, submitter: Session, scheduler: Session) -> list[int]:
    """Running jobs: two of the kind `k`, and one of another kind."""
    (machine,) = add_machines(owner, 1)
    return [it.job for it in place_jobs(submitter, scheduler, machine, "k", "k", "other")]


def test_a_round_recalls_the_running_jobs_of_its_kind(
    database: Database, running: list[int], scheduler: Session
) -> None:
    call(scheduler, "begin_round", "k", "me", LONG_MS)

    rows = recall(scheduler, 1)
    assert running[:2] == [row[0] for row in rows]
    assert [[0, 1]] * 2 == [row[9] for row in rows]
    assert [] == violations(database)


def test_a_recall_needs_the_number_of_the_current_round(
    database: Database, running: list[int], scheduler: Session
) -> None:
    answers = [try_call(scheduler, "recall_jobs", "k", 1, None, LEASE_MS).rows]
    call(scheduler, "begin_round", "k", "me", LONG_MS)
    for number in (0, 2, -1, 2**63 - 1, None):
        answers += [try_call(scheduler, "recall_jobs", "k", number, None, LEASE_MS).rows]
    answers += [try_call(scheduler, "recall_jobs", "other", 1, None, LEASE_MS).rows]
    answers += [try_call(scheduler, "recall_jobs", None, 1, running, LEASE_MS).rows]

    assert [[]] * 8 == answers
    assert ["running"] * 3 == [job_state(database, job) for job in running]


def test_a_login_cannot_recall_in_the_round_of_another_login(
    database: Database,
    running: list[int],
    scheduler: Session,
    other_scheduler: Session,
    owner: Session,
) -> None:
    call(other_scheduler, "begin_round", "k", "me", LONG_MS)

    assert [] == recall(scheduler, 1)
    assert [] == recall(scheduler, 1, running)
    assert ["running"] * 3 == [job_state(database, job) for job in running]
    assert [(False,)] == call(scheduler, "note_round", "k", 1, Jsonb({}))
    assert running[:2] == [row[0] for row in recall(owner, 1)]


def test_a_login_whose_round_was_succeeded_recalls_nothing(
    database: Database,
    running: list[int],
    scheduler: Session,
    other_scheduler: Session,
    owner: Session,
) -> None:
    call(other_scheduler, "begin_round", "k", "me", 0)
    end_rounds(owner)
    call(scheduler, "begin_round", "k", "me", 0)

    assert [] == recall(other_scheduler, 1)
    assert [] == recall(other_scheduler, 2)
    assert ["running"] * 3 == [job_state(database, job) for job in running]


def test_a_round_recalls_the_leases_of_the_previous_round_only(
    database: Database,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    other_scheduler: Session,
) -> None:
    """The holder's name is not enough: the login must be that of the previous round."""
    (machine,) = add_machines(owner, 1)
    of_other_login, of_other_holder, of_previous_round, of_owner = (
        submit_jobs(submitter, a_job(a_group(tasks=2), scheduler="k"))[0] for _ in range(4)
    )
    call(other_scheduler, "begin_round", "k", "before", 0)
    call(scheduler, "lease_jobs", "k", "before", 1, LEASE_MS)
    call(other_scheduler, "lease_jobs", "k", "another", 1, LEASE_MS)
    call(other_scheduler, "lease_jobs", "k", "before", 1, LEASE_MS)
    call(owner, "lease_jobs", "k", "before", 1, LEASE_MS)
    end_rounds(owner)
    call(scheduler, "begin_round", "k", "me", LONG_MS)

    assert [of_previous_round] == [row[0] for row in recall(scheduler, 2)]
    assert [] == recall(scheduler, 2, [of_other_login, of_other_holder, of_owner])
    assert machine
    assert [] == violations(database)


def test_a_recall_that_waits_until_its_round_is_over_returns_nothing(
    database: Database,
    running: list[int],
    scheduler: Session,
    other_scheduler: Session,
    owner: Session,
) -> None:
    """The round was current when the recall began; the next round owns the jobs."""
    call(other_scheduler, "begin_round", "k", "other_scheduler", 0)
    end_rounds(owner)
    call(scheduler, "begin_round", "k", "me", 0)
    end_rounds(owner)
    owner.execute("BEGIN")
    owner.execute("SELECT FROM omega.job WHERE id = %s FOR NO KEY UPDATE", [running[0]])
    start(scheduler, "recall_jobs", "k", 2, None, LEASE_MS)
    database.settle(scheduler)
    assert {"scheduler"} == database.waiting().keys()
    start(other_scheduler, "begin_round", "k", "other_scheduler", 0)
    database.settle(other_scheduler)
    is_over = other_scheduler.is_done
    if is_over:
        assert [running[1]] == [row[0] for row in recall(other_scheduler, 3, [running[1]])]
    owner.execute("COMMIT")

    recalled = [row[0] for row in scheduler.answer.rows]
    assert not other_scheduler.answer.sqlstate
    assert ([] if is_over else running[:2]) == recalled
    assert [] == violations(database)


def test_a_recall_returns_unplaced_tasks_and_machines_as_of_one_moment(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    """Both are read after the recall has waited for the job's lock."""
    (machine,) = add_machines(owner, 1)
    (lease,) = place_jobs(submitter, scheduler, machine, "k")
    call(scheduler, "begin_round", "k", "me", LONG_MS)
    node = database.session("node", "omega_node")
    owner.execute("SELECT omega.assign_machines(%s, NULL)", [node.connection.info.user])
    node.execute("BEGIN")
    call(node, "end_tasks", [lease.job], [0], None)
    start(scheduler, "recall_jobs", "k", 1, None, LEASE_MS)
    database.settle(scheduler)
    node.execute("COMMIT")

    ((*_, siblings, machines),) = scheduler.answer.rows
    assert ([1], [machine]) == (siblings, machines)
