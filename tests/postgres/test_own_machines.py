"""A node's login hears of the tasks on its own machines, ends these, and no others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import numpy as np
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.clock import RealClock
from omega.errors import BadInput, NotAllowed
from omega.framework.retry import Retry
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.nodes.live import LiveNodes
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.progress_contract import a_job_in_steps, report, told
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, end, grant, places, row_of
from tests.fixtures.at_work import settings
from tests.fixtures.logins import Login, user_of

pytestmark = pytest.mark.usefixtures("kept_sessions")

Assign = Callable[..., int]


@pytest.fixture
def machines(store: PostgresStore) -> list[int]:
    """Three machines, named machine-1 to machine-3."""
    return add_a_cell(store)


@pytest.fixture
def alice(login: Login) -> str:
    """The URL of a node."""
    return login("alice", "omega_node")


@pytest.fixture
def node(alice: str) -> Iterator[Store]:
    """What the node sees of the cell."""
    with closing(PostgresStore(alice)) as store:
        yield store


@pytest.fixture
def assign(database_url: str) -> Assign:
    def say(url: str, *names: str, every: bool = False) -> int:
        return assign_machines(database_url, user_of(url), None if every else names)

    return say


@pytest.fixture
def job(store: PostgresStore, machines: list[int]) -> LeasedJob:
    """A job with a task on each machine."""
    return a_running_job(store, a_spec(3, duration_ms=0), machines)


def test_a_node_ends_the_tasks_on_its_machines(
    store: PostgresStore, node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assert 2 == assign(alice, "machine-1", "machine-3")

    assert 2 == end(node, job, 0, 2)
    assert {(job.id, 1): 2} == places(store)
    assert 0 == end(node, job, 0, 2), "they are over"


@pytest.mark.parametrize("tasks", [(1,), (0, 1), (0, 1, 2)])
def test_a_task_elsewhere_is_refused_and_nothing_is_changed(
    store: PostgresStore,
    node: Store,
    job: LeasedJob,
    alice: str,
    assign: Assign,
    tasks: tuple[int, ...],
) -> None:
    assign(alice, "machine-1", "machine-3")
    before = places(store), store.snapshot().rows.revision.tolist(), store.job(job.id)

    with pytest.raises(NotAllowed) as raised:
        end(node, job, *tasks)

    user = user_of(alice)
    assert str(raised.value) == (
        f"{user} may not do this: task 1 of job {job.id} runs on machine machine-2, for which"
        f" {user} does not stand"
    )
    assert before == (places(store), store.snapshot().rows.revision.tolist(), store.job(job.id))


def test_what_is_not_there_is_passed_over(
    store: PostgresStore, node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assign(alice, "machine-1")

    assert 0 == end(node, job, 99)
    assert 0 == node.end_tasks(integers([job.id + 1]), np.array([0], dtype=np.intp))
    assert 3 == len(places(store))


def test_a_task_that_has_moved_away_is_passed_over_by_its_old_node(
    store: PostgresStore, node: Store, machines: list[int], alice: str, assign: Assign
) -> None:
    here, there, _ = machines
    assign(alice, "machine-1")
    mover = a_running_job(store, a_spec(), [here])
    started = node.allocations_since(0)[0].started_ms
    pusher = a_leased_job(store, a_spec(precedence=10))
    store.commit(
        a_transaction(claims_of_job(pusher, evicting(a_claim(0, machine=here), (0, mover.id, 0))))
    )
    (again,) = store.lease("batch", holder="b", jobs_max=1, lease_ms=600_000)
    grant(store, again, [0], [there])
    moved = store.allocations()
    assert (mover.id, there) in set(zip(moved.job.tolist(), moved.machine.tolist(), strict=True))

    ended = node.end_tasks(integers([mover.id]), np.array([0], dtype=np.intp), started - 1)

    assert 0 == ended
    with pytest.raises(NotAllowed):
        end(node, mover, 0)


def test_where_a_task_runs_is_judged_once_nobody_can_move_it_any_more(
    store: PostgresStore,
    node: Store,
    machines: list[int],
    alice: str,
    assign: Assign,
    database_url: str,
) -> None:
    job = a_running_job(store, a_spec(), machines[:1])
    assign(alice, "machine-1")
    waiting = "SELECT FROM pg_stat_activity WHERE usename = %s AND wait_event_type = 'Lock'"
    with (
        psycopg.connect(database_url) as mover,
        psycopg.connect(database_url, autocommit=True) as observer,
        ThreadPoolExecutor() as threads,
    ):
        mover.execute("SELECT FROM omega.job FOR NO KEY UPDATE")
        mover.execute("UPDATE omega.allocation SET machine_id = 2")
        mover.execute("UPDATE omega.machine SET cpu_milli_used = 1000 * (id = 2)::int")
        ended = threads.submit(lambda: end(node, job, 0))
        while not observer.execute(waiting, (user_of(alice),)).fetchall():
            assert not ended.done()
        mover.commit()

        with pytest.raises(NotAllowed, match="runs on machine machine-2"):
            ended.result()
    assert {(job.id, 0): 2} == places(store)
    assert [] == list(store.verify())


def test_a_node_reports_on_what_runs_on_its_machines_and_on_nothing_else(
    store: PostgresStore, node: Store, machines: list[int], alice: str, assign: Assign
) -> None:
    here, there, _ = machines
    assign(alice, "machine-1")
    mine = a_running_job(store, a_job_in_steps(2), [here, there])
    others = a_running_job(store, a_job_in_steps(1), [there])
    (waits,) = store.submit([a_job_in_steps(1)])
    jobs = [mine.id, others.id, waits]

    node.report_progress(integers(jobs), integers([1, 2, 3]), integers([10, 20, 30]))

    assert [(mine.id, 1, 10), (others.id, 0, 0), (waits, 0, 0)] == told(node, *jobs)
    assign(alice)
    with pytest.raises(NotAllowed, match="stands for no machine"):
        report(node, mine.id, 2, 20)
    assert (mine.id, 1, 10) in told(store, *jobs)


def test_a_node_hears_of_its_own_machines_alone(
    node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assign(alice, "machine-2")

    live, mark = node.allocations_since(0)

    assert [(job.id, 1)] == list(zip(live.job.tolist(), live.task.tolist(), strict=True))
    assert {1} >= set(node.allocations_since(mark)[0].task.tolist())  # repeats are allowed


def test_a_node_hears_of_all_that_runs_on_a_machine_that_becomes_its_own(
    node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assign(alice, "machine-1")
    mark = node.allocations_since(0)[1]
    assign(alice, "machine-1", "machine-3")

    heard, _ = node.allocations_since(mark)

    assert [0, 2] == sorted(heard.task.tolist())


def test_an_assignment_takes_the_place_of_the_one_before(
    node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assign(alice, "machine-1")
    assert 1 == assign(alice, "machine-2")
    with pytest.raises(NotAllowed):
        end(node, job, 0)
    assert 1 == end(node, job, 1)

    assert 0 == assign(alice)
    with pytest.raises(NotAllowed, match="stands for no machine"):
        end(node, job, 1)


def test_every_machine_is_also_those_that_join_later(
    store: PostgresStore, node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    assert 3 == assign(alice, every=True)
    (late,) = store.add_machines(a_cell(1, first=4))
    another = a_running_job(store, a_spec(), [int(late)])

    assert 3 == end(node, job, 0, 1, 2)
    assert 1 == end(node, another, 0)


def test_a_login_stands_for_the_machines_of_each_of_its_roles(
    store: PostgresStore, job: LeasedJob, login: Login, assign: Assign
) -> None:
    group = login("rack", "omega_node")
    member = login("member", user_of(group))
    assign(group, "machine-1")
    assign(member, "machine-2")
    with closing(PostgresStore(member)) as node:
        assert 2 == end(node, job, 0, 1)
        with pytest.raises(NotAllowed):
            end(node, job, 2)
    with closing(PostgresStore(group)) as node, pytest.raises(NotAllowed):
        end(node, job, 2)


def test_a_node_without_machines_is_told_what_to_run(node: Store, job: LeasedJob) -> None:
    for call in (lambda: node.allocations_since(0), lambda: end(node, job, 0)):
        with pytest.raises(NotAllowed, match="stands for no machine; its owner may run: omega nod"):
            call()


def test_a_role_that_is_gone_stands_for_nothing(
    node: Store, job: LeasedJob, alice: str, assign: Assign, database_url: str
) -> None:
    gone = f"{make_url(database_url).database}_gone"
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(gone)))
        assign_machines(database_url, gone, None)
        owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(gone)))
    assign(alice, "machine-1")

    assert 1 == end(node, job, 0)
    with pytest.raises(NotAllowed):
        end(node, job, 1)


def test_a_role_or_a_machine_that_there_is_not_is_told(
    machines: list[int], alice: str, assign: Assign, database_url: str
) -> None:
    assign(alice, "machine-1")
    with pytest.raises(BadInput, match="there is no role nobody_at_all"):
        assign_machines(database_url, "nobody_at_all", [])
    with pytest.raises(BadInput, match="there is no machine named machine-9"):
        assign(alice, "machine-2", "machine-9")
    with psycopg.connect(database_url) as owner:
        assert [("{[1,2)}",)] == owner.execute("SELECT machines::text FROM omega.node").fetchall()


def test_a_node_cannot_assign_itself_a_machine(machines: list[int], alice: str) -> None:
    with pytest.raises(NotAllowed, match="permission denied"):
        assign_machines(alice, user_of(alice), None)


def test_virtual_nodes_under_a_login_end_the_tasks_of_their_machines(
    store: PostgresStore, node: Store, job: LeasedJob, alice: str, assign: Assign
) -> None:
    stop = threading.Event()
    clock = RealClock(stop)
    retry = Retry(clock, lambda _: None, settings(), np.random.default_rng(1), stop)
    nodes = LiveNodes(node, clock, lambda _: None, retry, speedup=1.0)
    assign(alice, "machine-2")

    assert 1 == nodes.step(store.now_ms())
    assert {(job.id, 0): 1, (job.id, 2): 3} == places(store)

    assign(alice, every=True)

    assert 2 == nodes.step(store.now_ms())
    assert {} == places(store)


def test_the_owner_ends_what_it_wants(store: PostgresStore, job: LeasedJob) -> None:
    assert 3 == end(store, job, 0, 1, 2)
    assert row_of(store, 1).used.sum() == 0


def test_two_nodes_end_their_own_at_the_same_time(
    store: PostgresStore, login: Login, assign: Assign, job: LeasedJob
) -> None:
    urls = [login(name, "omega_node") for name in ("alice", "bob", "carol")]
    for url, name in zip(urls, ("machine-1", "machine-2", "machine-3"), strict=True):
        assign(url, name)
    with ExitStack() as stores:
        for task, url in enumerate(urls):
            one = stores.enter_context(closing(PostgresStore(url)))
            assert 1 == end(one, job, task)
    assert {} == places(store)
