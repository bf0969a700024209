"""Leases: how much one call takes, and whose jobs a round takes back."""

import pytest
from psycopg.types.json import Jsonb

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, Claim, Lease, ask, commit, do, lease, one, start, submit
from tests.attack.machine_rows import add_machines, state_of
from tests.attack.sessions import Rows, Session, Stage
from tests.attack.wires import Wire, a_constraint, a_group, a_job

BYTES_MAX = 8 * 2**20
LARGE = 120_000
MANY = 100
LONG_MS = 86_400_000


def submit_large(session: Session, owner: Session, *wires: Wire) -> list[int]:
    """Submit jobs that are long as text, and short once they are compressed; return their ids."""
    constraint = a_constraint(values=["x" * 196] * (LARGE // 200))
    (model,) = submit(session, a_job(a_group(constraints=[constraint]), scheduler="model"))
    do(session, "cancel_job", model)
    ids = submit(session, *wires)
    owner.do(
        "UPDATE omega.job_spec SET wire = (SELECT wire FROM omega.job_spec WHERE job_id = %s)"
        " WHERE job_id = ANY (%s::bigint[])",
        [model, ids],
    )
    return ids


def bytes_of(stage: Stage, jobs: list[int]) -> int:
    """Return how long the wires of jobs are as text."""
    query = "SELECT coalesce(sum(octet_length(wire::text)), 0) FROM omega.job_spec"
    ((length,),) = stage.see(f"{query} WHERE job_id = ANY (%s)", [jobs])
    return int(length)


def test_one_job_is_leased_however_long_it_is(
    owner: Session, submitter: Session, scheduler: Session
) -> None:
    ids = submit_large(submitter, owner, a_job(), a_job())
    owner.do(
        "UPDATE omega.job_spec SET wire = jsonb_set(wire, '{name}', to_jsonb(repeat('x', %s)))",
        [BYTES_MAX + 1],
    )

    assert [ids[:1], ids[1:]] == [[it.job for it in lease(scheduler)] for _ in range(2)]


def test_a_lease_takes_eight_mebibytes(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    ids = submit_large(submitter, owner, *[a_job()] * MANY)
    taken: list[int] = []
    while len(taken) < len(ids):
        now = [it.job for it in lease(scheduler, jobs_max=2**31 - 1)]
        assert now
        assert bytes_of(stage, now) <= BYTES_MAX
        waiting = stage.see("SELECT id FROM omega.job WHERE state = 'pending' ORDER BY id")
        taken += now
        assert [job for (job,) in waiting] == [job for job in ids if job not in taken]

    assert ids == taken
    assert 2 * BYTES_MAX > bytes_of(stage, ids) > BYTES_MAX


def test_what_is_parked_is_read_eight_mebibytes_at_a_time(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    submit_large(submitter, owner, *[a_job()] * MANY)
    while leases := lease(scheduler):
        jobs, tokens = [it.job for it in leases], [it.token for it in leases]
        count = len(leases)
        do(scheduler, "park_jobs", jobs, tokens, ["no_room"] * count, ["full"] * count)

    read = [row[0] for row in do(scheduler, "parked_jobs", "batch", 2**31 - 1)]
    assert 0 < bytes_of(stage, read) <= BYTES_MAX
    assert MANY > len(read)


def test_the_order_of_the_queue_is_kept(
    owner: Session, submitter: Session, scheduler: Session
) -> None:
    """What is too large for one lease is first in the next, not passed over for what is small."""
    first = submit_large(submitter, owner, *[a_job()] * (MANY // 2)) + submit(submitter, a_job())
    second = submit_large(submitter, owner, *[a_job(precedence=1)] * (MANY // 2))
    taken: list[int] = []
    while now := lease(scheduler):
        taken += [it.job for it in now]

    assert second + first == taken


def planned(submitter: Session, scheduler: Session, machine: int, *kinds: str) -> list[Lease]:
    """Place a job of each kind; return what the leases were."""
    leases = []
    for kind in kinds:
        submit(submitter, a_job(a_group(tasks=2), scheduler=kind))
        leases += lease(scheduler, kind, holder="one")
    for n, it in enumerate(leases):
        commit(scheduler, one(n, *(Claim(it, task, machine) for task in (0, 1))))
    return leases


def recalled(session: Session, number: int, jobs: list[int] | None = None, kind: str = "k") -> Rows:
    return do(session, "recall_jobs", kind, number, jobs, LEASE_MS)


def end_rounds(owner: Session) -> None:
    """Let all rounds be long over."""
    owner.do(
        "UPDATE omega.round SET began_at = began_at - interval '1 day',"
        " ends_at = ends_at - interval '1 day'"
    )


@pytest.fixture
def ruler(stage: Stage) -> Session:
    """A scheduler of another login."""
    return stage.session_of("ruler", "attack_ruler", "omega_scheduler")


@pytest.fixture
def running(owner: Session, submitter: Session, scheduler: Session) -> list[int]:
    """Jobs that run: two of a kind that plans by rounds, one of another."""
    (machine,) = add_machines(owner, 1)
    return [it.job for it in planned(submitter, scheduler, machine, "k", "k", "other")]


def test_a_round_recalls_what_runs_of_its_kind(
    stage: Stage, running: list[int], scheduler: Session
) -> None:
    do(scheduler, "begin_round", "k", "me", LONG_MS)

    rows = recalled(scheduler, 1)
    assert running[:2] == [row[0] for row in rows]
    assert [[0, 1]] * 2 == [row[8] for row in rows]
    assert [] == wrongs(stage)


def test_another_round_recalls_nothing(
    stage: Stage, running: list[int], scheduler: Session
) -> None:
    answers = [ask(scheduler, "recall_jobs", "k", 1, None, LEASE_MS).rows]
    do(scheduler, "begin_round", "k", "me", LONG_MS)
    for number in (0, 2, -1, 2**63 - 1, None):
        answers += [ask(scheduler, "recall_jobs", "k", number, None, LEASE_MS).rows]
    answers += [ask(scheduler, "recall_jobs", "other", 1, None, LEASE_MS).rows]
    answers += [ask(scheduler, "recall_jobs", None, 1, running, LEASE_MS).rows]

    assert [[]] * 8 == answers
    assert ["running"] * 3 == [state_of(stage, job) for job in running]


def test_another_logins_round_recalls_nothing(
    stage: Stage, running: list[int], scheduler: Session, ruler: Session, owner: Session
) -> None:
    do(ruler, "begin_round", "k", "me", LONG_MS)

    assert [] == recalled(scheduler, 1)
    assert [] == recalled(scheduler, 1, running)
    assert ["running"] * 3 == [state_of(stage, job) for job in running]
    assert [(False,)] == do(scheduler, "note_round", "k", 1, Jsonb({}))
    assert running[:2] == [row[0] for row in recalled(owner, 1)]


def test_a_round_that_is_over_recalls_nothing(
    stage: Stage, running: list[int], scheduler: Session, ruler: Session, owner: Session
) -> None:
    do(ruler, "begin_round", "k", "me", 0)
    end_rounds(owner)
    do(scheduler, "begin_round", "k", "me", 0)

    assert [] == recalled(ruler, 1)
    assert [] == recalled(ruler, 2)
    assert ["running"] * 3 == [state_of(stage, job) for job in running]


def test_a_round_takes_over_from_the_one_before_and_from_nobody_else(
    stage: Stage,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    ruler: Session,
) -> None:
    """The same name is not enough: the lease must be of the login that began the round before."""
    (machine,) = add_machines(owner, 1)
    kept, also_kept, taken, of_others = (
        submit(submitter, a_job(a_group(tasks=2), scheduler="k"))[0] for _ in range(4)
    )
    do(ruler, "begin_round", "k", "before", 0)
    do(scheduler, "lease_jobs", "k", "before", 1, LEASE_MS)
    do(ruler, "lease_jobs", "k", "another", 1, LEASE_MS)
    do(ruler, "lease_jobs", "k", "before", 1, LEASE_MS)
    do(owner, "lease_jobs", "k", "before", 1, LEASE_MS)
    end_rounds(owner)
    do(scheduler, "begin_round", "k", "me", LONG_MS)

    assert [taken] == [row[0] for row in recalled(scheduler, 2)]
    assert [] == recalled(scheduler, 2, [kept, also_kept, of_others])
    assert machine
    assert [] == wrongs(stage)


def test_a_round_that_goes_by_while_a_recall_waits_takes_nothing(
    stage: Stage, running: list[int], scheduler: Session, ruler: Session, owner: Session
) -> None:
    """It was the last round as the recall began; whoever comes next has its jobs."""
    do(ruler, "begin_round", "k", "ruler", 0)
    end_rounds(owner)
    do(scheduler, "begin_round", "k", "me", 0)
    end_rounds(owner)
    owner.do("BEGIN")
    owner.do("SELECT FROM omega.job WHERE id = %s FOR NO KEY UPDATE", [running[0]])
    start(scheduler, "recall_jobs", "k", 2, None, LEASE_MS)
    stage.settle(scheduler)
    assert {"scheduler"} == stage.waiting().keys()
    start(ruler, "begin_round", "k", "ruler", 0)
    stage.settle(ruler)
    is_over = ruler.is_done
    if is_over:
        assert [running[1]] == [row[0] for row in recalled(ruler, 3, [running[1]])]
    owner.do("COMMIT")

    late = [row[0] for row in scheduler.answer.rows]
    assert not ruler.answer.sqlstate
    assert ([] if is_over else running[:2]) == late
    assert [] == wrongs(stage)


def test_what_a_recall_tells_is_of_one_moment(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    """Where the tasks are and which of them have no place: both after what was waited for."""
    (machine,) = add_machines(owner, 1)
    (mine,) = planned(submitter, scheduler, machine, "k")
    do(scheduler, "begin_round", "k", "me", LONG_MS)
    node = stage.session("node", "omega_node")
    owner.do("SELECT omega.assign_machines(%s, NULL)", [node.connection.info.user])
    node.do("BEGIN")
    do(node, "end_tasks", [mine.job], [0], None)
    start(scheduler, "recall_jobs", "k", 1, None, LEASE_MS)
    stage.settle(scheduler)
    node.do("COMMIT")

    ((*_, siblings, machines),) = scheduler.answer.rows
    assert ([1], [machine]) == (siblings, machines)
