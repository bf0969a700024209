"""What an agent's login asks and reports is of its own machines, and of nothing else."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from omega.errors import BadInput, NotAllowed
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.exits import TaskOutput
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.agent_contract import attributes_of, one_machine
from omega.testing.builders import a_cell, a_spec
from omega.testing.exit_contract import BADLY, WELL, an_exit, counts, started
from omega.testing.steps import a_running_job, add_a_cell, places
from tests.fixtures.at_work import wait_until
from tests.fixtures.logins import Login, user_of

pytestmark = pytest.mark.usefixtures("kept_sessions")


@pytest.fixture
def machines(store: PostgresStore) -> list[int]:
    """Three machines, named machine-1 to machine-3."""
    return add_a_cell(store)


@pytest.fixture
def alice(login: Login) -> str:
    """The URL of an agent's login, which stands for nothing yet."""
    return login("alice", "omega_node")


@pytest.fixture
def agent(alice: str) -> Iterator[Store]:
    """The store as the login sees it."""
    with closing(PostgresStore(alice)) as store:
        yield store


@pytest.fixture
def mine(database_url: str, alice: str, machines: list[int]) -> int:
    """The first machine, which is the login's."""
    assign_machines(database_url, user_of(alice), ["machine-1"])
    return machines[0]


def test_an_exit_elsewhere_is_refused_and_nothing_is_changed(
    store: PostgresStore, agent: Store, machines: list[int], mine: int, alice: str
) -> None:
    job = a_running_job(store, a_spec(2), machines[:2])
    told = [an_exit(store, job, 0, BADLY), an_exit(store, job, 1, BADLY)]
    before = places(store), store.snapshot().rows.revision.tolist(), store.job(job.id)

    for exits in (told, told[1:]):
        with pytest.raises(NotAllowed) as raised:
            agent.report_exits(exits)
        assert str(raised.value) == (
            f"{user_of(alice)} may not do this: task 1 of job {job.id} runs on machine machine-2,"
            f" for which {user_of(alice)} does not stand"
        )

    assert before == (places(store), store.snapshot().rows.revision.tolist(), store.job(job.id))
    assert [] == store.exits(job.id)
    assert 1 == agent.report_exits(told[:1])


def test_a_gang_that_fails_here_ends_elsewhere_too(
    store: PostgresStore, agent: Store, machines: list[int], mine: int
) -> None:
    job = a_running_job(store, a_spec(3, minimum=3), machines)

    assert 1 == agent.report_exits([an_exit(store, job, 0, BADLY)])

    assert (State.FAILED, 3, 3, 1) == counts(store, job)
    assert {} == places(store)


def test_an_agent_hears_only_of_jobs_on_its_machines(
    store: PostgresStore, agent: Store, machines: list[int], mine: int
) -> None:
    here = a_running_job(store, a_spec(2, name="here"), machines[:2])
    there = a_running_job(store, a_spec(name="there"), machines[1:2])
    jobs = [here.id, here.id, there.id]
    began = [started(store, here, 0), started(store, here, 1), started(store, there, 0)]

    assert {here.id: here.spec} == agent.programs(integers(jobs))
    assert [True, False, False] == agent.running(
        integers(jobs), np.array([0, 1, 0], dtype=np.intp), integers(began)
    ).tolist()


def test_an_agent_hears_where_gangs_run_that_have_a_task_on_its_machines(
    store: PostgresStore, agent: Store, machines: list[int], mine: int
) -> None:
    here = a_running_job(store, a_spec(2, minimum=2), [mine, machines[1]])
    there = a_running_job(store, a_spec(2, minimum=2), machines[1:2] * 2)
    part = a_running_job(store, a_spec(2, minimum=1), machines[:2])

    told = agent.addresses(integers([here.id, there.id, part.id]))

    assert {here.id: {0: "machine-1", 1: "machine-2"}} == told


def test_a_job_that_a_later_version_wrote_is_left_out(
    store: PostgresStore, agent: Store, mine: int, database_url: str
) -> None:
    later, plain = (a_running_job(store, a_spec(), [mine]) for _ in range(2))
    with psycopg.connect(database_url) as owner:
        owner.execute("UPDATE omega.job_spec SET wire = '{}' WHERE job_id = %s", (later.id,))

    assert {plain.id: plain.spec} == agent.programs(integers([later.id, plain.id]))


def test_large_jobs_come_in_several_answers(
    store: PostgresStore, agent: Store, mine: int, database_url: str
) -> None:
    jobs = [a_running_job(store, a_spec(), [mine]).id for _ in range(4)]
    with psycopg.connect(database_url) as owner:
        owner.execute(
            "UPDATE omega.job_spec SET wire = wire || jsonb_build_object('name', repeat('x', %s))"
            " WHERE job_id = ANY (%s)",
            (LIMITS.lease_bytes_max // 2 + 1, jobs[:3]),
        )
    answers = []
    asked = jobs
    while asked:
        answers.append(list(agent.programs(integers(asked))))
        asked = [job for job in asked if job not in answers[-1]]

    assert [[jobs[0], jobs[3]], [jobs[1]], [jobs[2]]] == answers


def test_an_agent_polls_its_own_machines_alone(
    store: PostgresStore, agent: Store, machines: list[int], mine: int, alice: str
) -> None:
    assert store.machine_revision(mine)[0] == agent.machine_revision(mine)[0]
    for machine in (machines[1], 99):
        with pytest.raises(NotAllowed, match=f"machine {machine} is none for which"):
            agent.machine_revision(machine)


def test_a_login_may_poll_the_machines_of_each_of_its_roles(
    store: PostgresStore, login: Login, machines: list[int], database_url: str
) -> None:
    group = login("rack", "omega_node")
    member = login("member", user_of(group))
    assign_machines(database_url, user_of(group), ["machine-3"])

    with closing(PostgresStore(member)) as agent:
        assert store.machine_revision(machines[2])[0] == agent.machine_revision(machines[2])[0]


def test_outputs_are_taken_of_own_tasks_alone(
    store: PostgresStore, agent: Store, machines: list[int], mine: int
) -> None:
    job = a_running_job(store, a_spec(3), [machines[0], machines[1], machines[0]])
    outputs = [
        TaskOutput(job.id, task, started(store, job, task), "stdout", 1, b"x") for task in range(3)
    ]
    store.report_exits([an_exit(store, job, 1), an_exit(store, job, 2)])

    agent.report_outputs(outputs)

    assert [outputs[0], None, outputs[2]] == [store.output(job.id, n, "stdout") for n in range(3)]


def test_the_output_of_a_later_start_stays(
    store: PostgresStore, agent: Store, machines: list[int], mine: int, database_url: str
) -> None:
    job = a_running_job(store, a_spec(), machines[:1])
    began = started(store, job, 0)
    late = TaskOutput(job.id, 0, began, "stdout", 9, b"late")
    with psycopg.connect(database_url) as owner:
        owner.execute(
            "INSERT INTO omega.task_output SELECT job_id, task, 'stdout',"
            " started_at + interval '1s', 1, 'x' FROM omega.allocation"
        )

    agent.report_outputs([late])

    kept = store.output(job.id, 0, "stdout")
    assert kept == replace(late, started_ms=began + 1_000, bytes_total=1, tail=b"x")


def test_a_login_that_stands_for_nothing_is_told(
    store: PostgresStore, agent: Store, machines: list[int]
) -> None:
    job = a_running_job(store, a_spec(), machines[:1])
    told = an_exit(store, job, 0, WELL)
    calls: list[Callable[[], object]] = [
        lambda: agent.machine_revision(machines[0]),
        lambda: agent.running(integers(), np.zeros(0, dtype=np.intp), integers()),
        lambda: agent.programs(integers([job.id])),
        lambda: agent.report_exits([told]),
        lambda: agent.report_outputs([TaskOutput(job.id, 0, told.started_ms, "stdout", 0, b"")]),
    ]

    for call in calls:
        with pytest.raises(NotAllowed, match="stands for no machine"):
            call()
    assert 1 == len(places(store))


def test_a_login_registers_its_machine_and_stands_for_it(
    store: PostgresStore, agent: Store, machines: list[int]
) -> None:
    machine = agent.register_machine(one_machine("new", zone="east"))
    other = agent.register_machine(one_machine("newer", rack="r1"))
    job = a_running_job(store, a_spec(2), [machine, other])

    live, _ = agent.allocations_since(0)
    assert [machine, other] == sorted(live.machine.tolist())
    assert machine == agent.register_machine(one_machine("new", cpu_milli=8_000))
    assert agent.machine_revision(machine)[0] == store.machine_revision(machine)[0]
    assert 2 == agent.report_exits([an_exit(store, job, 0), an_exit(store, job, 1)])
    assert [] == list(store.verify())


def test_what_is_registered_is_not_read_again(agent: Store, store: PostgresStore) -> None:
    """Or each of many agents of one login would read all its allocations."""
    first = agent.register_machine(one_machine("new"))
    job: LeasedJob = a_running_job(store, a_spec(), [first])
    live, mark = agent.allocations_since(0)
    assert [job.id] == live.job.tolist()
    marks = [mark]

    def nothing_is_new() -> bool:
        live, mark = agent.allocations_since(marks[-1])
        marks.append(mark)
        return live.job.size == 0

    # What is new comes again as long as a transaction runs that began before it, in any database.
    wait_until(nothing_is_new, "all older transactions to be over")

    agent.register_machine(one_machine("newer"))

    assert [] == agent.allocations_since(marks[-1])[0].job.tolist()


@pytest.mark.parametrize("state", [MachineState.OPEN, MachineState.GONE])
def test_a_machine_of_others_is_not_taken_over(
    store: PostgresStore,
    agent: Store,
    machines: list[int],
    mine: int,
    state: MachineState,
    alice: str,
) -> None:
    store.set_state(integers(machines[1:2]), state)
    before = store.snapshot()

    with pytest.raises(NotAllowed) as raised:
        agent.register_machine(one_machine("machine-2", cpu_milli=1))

    assert str(raised.value) == (
        f"{user_of(alice)} may not do this: there is a machine named machine-2 already, for which"
        f" {user_of(alice)} does not stand"
    )
    after = store.snapshot()
    assert before.rows.capacity.tolist() == after.rows.capacity.tolist()
    assert before.generation == after.generation


def test_a_login_registers_no_more_machines_than_it_may_own(
    store: PostgresStore, agent: Store, alice: str, database_url: str
) -> None:
    store.add_machines(a_cell(LIMITS.machines_per_login_max))
    names = [f"machine-{n}" for n in range(1, LIMITS.machines_per_login_max)]
    assign_machines(database_url, user_of(alice), names)

    agent.register_machine(one_machine("last"))
    with pytest.raises(BadInput, match="stands for 1000 machines, and may add no more"):
        agent.register_machine(one_machine("too-many"))

    store.set_state(integers([1]), MachineState.GONE)
    agent.register_machine(one_machine("after-all"))
    assert LIMITS.machines_per_login_max + 2 == len(store.snapshot().names)


@pytest.mark.parametrize("value", ["", "\x1b[2J", "x" * 201])
def test_a_login_adds_no_attribute_that_cannot_be_shown(
    store: PostgresStore, agent: Store, value: str
) -> None:
    store.add_machines(a_cell(1, attributes={"zone": ["\x1b"]}))

    with pytest.raises(BadInput, match="an attribute or its value is empty, too long"):
        agent.register_machine(one_machine("new", zone=value))

    agent.register_machine(one_machine("new", zone="\x1b"))  # the owner has said so before


def test_the_catalogue_does_not_grow_for_ever(
    store: PostgresStore, agent: Store, database_url: str
) -> None:
    values = [f"{n:0200}" for n in range(LIMITS.catalogue_bytes_max // 200)]
    store.add_machines(a_cell(len(values), attributes={"zone": values}))

    with pytest.raises(BadInput, match="the attributes of all machines are more than"):
        agent.register_machine(one_machine("new", zone="x"))

    assert len(values) + 1 == agent.register_machine(one_machine("new", zone=values[0]))


def test_many_logins_register_at_the_same_time(store: PostgresStore, login: Login) -> None:
    urls = [login(f"agent{number}", "omega_node") for number in range(4)]
    with ExitStack() as stores, ThreadPoolExecutor() as threads:
        agents = [stores.enter_context(closing(PostgresStore(url))) for url in urls]
        asked = [one_machine(f"m{number}", zone=f"z{number}") for number in range(4)]
        ids = list(threads.map(lambda agent, it: agent.register_machine(it), agents, asked))

    snapshot = store.snapshot()
    assert [1, 2, 3, 4] == sorted(ids)
    assert [f"m{number}" for number in range(4)] == [snapshot.names[it - 1] for it in ids]
    assert [{"zone": f"z{number}"} for number in range(4)] == [
        attributes_of(snapshot, it - 1) for it in ids
    ]
    assert [] == list(store.verify())
