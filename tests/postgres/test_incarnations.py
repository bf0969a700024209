"""Databases that lose what was acknowledged: whoever remembers it reads everything anew."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.framework.effects import Call, Effect, drive
from omega.framework.retry import Retry
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import State
from omega.model.allocations import Allocations
from omega.model.machines import Machines
from omega.model.programs import Program
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.placements import Placements
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.live import LiveNodes
from omega.store.postgres.store import PostgresStore
from omega.sync.delta import DeltaRefresher
from omega.testing.builders import a_cell, a_spec
from omega.testing.twin import row_differences
from schedulers.batch import BatchScheduler
from tests.fixtures.at_work import settings, wait_until
from tests.fixtures.pairs import OneServer, url_of

pytestmark = pytest.mark.postgres

HOUR_MS = 3_600_000


class Loss(ABC):
    """One way to lose commits, or to seem to."""

    numbers_return = False
    """Whether the numbers of lost jobs and machines are given out again."""

    def __init__(self, server: OneServer) -> None:
        self.server = server

    def url(self) -> str:
        return url_of(self.server)

    @abstractmethod
    def save(self) -> None:
        """Keep what there is; what comes after it is lost."""

    @abstractmethod
    def lose(self) -> None:
        """Return to what was kept."""


class NothingSaved(Loss):
    """All survives."""

    def save(self) -> None:
        """Do nothing."""


class Killed(NothingSaved):
    def lose(self) -> None:
        self.server.kill()
        self.server.start()


class Stopped(NothingSaved):
    def lose(self) -> None:
        self.server.stop()
        self.server.start()


class BackendKilled(NothingSaved):
    def lose(self) -> None:
        self.server.kill_a_backend()


class Promoted(Loss):
    """A standby that had not heard everything is promoted."""

    def __init__(self, server: OneServer) -> None:
        super().__init__(server)
        self.standby = server.standby("standby")

    def url(self) -> str:
        return url_of(self.server, self.standby)

    def save(self) -> None:
        wait_until(lambda: self.standby.has_repeated(self.server), "the standby to catch up")
        self.standby.repeat_no_more()

    def lose(self) -> None:
        self.server.kill()
        self.standby.promote()


class CopyPutBack(Loss):
    """A copy of the folder of a server that was stopped: nothing in it tells that it was copied."""

    numbers_return = True

    def save(self) -> None:
        self.server.stop()
        self.backup = self.server.copied("copy")
        self.server.start()

    def lose(self) -> None:
        self.server.stop()
        self.server.put_back(self.backup)
        self.server.start()


class BackupPutBack(Loss):
    def save(self) -> None:
        self.backup = self.server.backup("backup")

    def lose(self) -> None:
        self.server.kill()
        self.server.put_back(self.backup)
        self.server.start()


class DumpLoaded(Loss):
    """A dump is loaded into the same database of the same server, which goes on."""

    def save(self) -> None:
        self.server.dump()

    def lose(self) -> None:
        self.server.load_the_dump()


class DatabaseCopied(Loss):
    """A copy that the server has made of the database takes its place."""

    def save(self) -> None:
        self.server.copy_database("saved")

    def lose(self) -> None:
        self.server.replace_database("saved")


class Rememberers:
    """Everybody who keeps what was read of a database: a scheduler, nodes, an agent, a view."""

    def __init__(self, url: str) -> None:
        self.store = PostgresStore(url)
        self.stop = threading.Event()
        clock = RealClock(self.stop)
        said: list[object] = []
        soon = settings(600_000)
        self.scheduler = SchedulerProcess(
            scheduler=BatchScheduler(),
            store=self.store,
            open_store=lambda: PostgresStore(url),
            clock=clock,
            settings=soon,
            sink=said.append,
            replica="a",
            run_seed=0,
            stop=self.stop,
        )
        retry = Retry(clock, said.append, soon, np.random.default_rng(0), self.stop)
        self.nodes = LiveNodes(self.store, clock, said.append, retry, speedup=1.0)
        self.refresher = DeltaRefresher(self.store, clock, said.append)
        self.view = self.refresher.refresh(None)
        self.tasks: dict[TaskKey, AgentTask] = {}
        self.placements = Placements(1, self.tasks, lambda task, why: None)

    def work(self) -> None:
        """Place what is pending, end what is over in half an hour, hear of everything."""
        self.place()
        self.nodes.step(self.store.now_ms() + HOUR_MS // 2)
        self.remember()

    def place(self) -> None:
        """Place what is pending."""
        while self.scheduler.step():
            pass

    def remember(self) -> None:
        self.view = self.refresher.refresh(self.view)
        drive(self.placements.read(self.lose, in_any_case=False), self.answer)

    def lose(self, task: AgentTask) -> None:
        del self.tasks[task.key]

    def answer(self, effect: Effect) -> object:
        assert isinstance(effect, Call)
        return effect.make(self.store)

    def jobs(self) -> list[int]:
        """Submit one job that is soon over, one that lasts, and one for the agent; return them."""
        program = Program(command=("true",))
        return self.store.submit(
            [a_spec(duration_ms=1), a_spec(duration_ms=HOUR_MS), a_spec(program=program)]
        )

    def reconnect(self) -> None:
        """Make calls until one is answered; the first may tell that the connection is broken."""

        def answers() -> bool:
            try:
                return self.store.now_ms() > 0
            except StoreUnavailable:
                return False

        wait_until(answers, "the server to answer")


@pytest.fixture(
    params=[
        Killed,
        Stopped,
        BackendKilled,
        Promoted,
        CopyPutBack,
        BackupPutBack,
        DumpLoaded,
        DatabaseCopied,
    ]
)
def loss(request: pytest.FixtureRequest, server: OneServer) -> Loss:
    kind: type[Loss] = request.param
    return kind(server)


@pytest.fixture
def they(loss: Loss) -> Iterator[Rememberers]:
    they = Rememberers(loss.url())
    with closing(they.store):
        yield they


def two_machines(zone: str, first: int) -> Machines:
    return a_cell(2, first=first, attributes={"zone": [zone] * 2})


def keys_of(live: Allocations) -> set[TaskKey]:
    columns = (live.job.tolist(), live.task.tolist(), live.started_ms.tolist())
    return {TaskKey(*row) for row in zip(*columns, strict=True)}


def test_what_was_lost_is_forgotten_by_all(loss: Loss, they: Rememberers) -> None:
    store = they.store
    store.add_machines(two_machines("old", 1))
    they.jobs()
    they.work()
    ended_in_the_lost_part, *_ = they.jobs()
    they.place()
    loss.save()
    they.reconnect()
    lost_machines = store.add_machines(two_machines("lost", 3)).tolist()
    lost_jobs = they.jobs()
    they.work()

    loss.lose()
    they.reconnect()
    machines = store.add_machines(two_machines("new", 5)).tolist()
    jobs = they.jobs()
    they.work()

    whole = store.snapshot()
    assert (whole.names, []) == (they.view.names, row_differences(whole.rows, they.view.rows()))
    assert whole.catalogue == they.view.catalogue
    on_first = store.allocations_on(whole.rows.id[:1])
    assert keys_of(on_first.only(on_first.duration_ms < 0)) == they.tasks.keys()
    for job in (ended_in_the_lost_part, jobs[0]):
        status = store.job(job)
        assert status is not None
        assert State.SUCCEEDED is status.state
    states = store.use().jobs_by_state
    assert {State.RUNNING, State.SUCCEEDED} == {state for state, count in states.items() if count}
    they.nodes.step(store.now_ms() + 2 * HOUR_MS)
    assert [] == list(store.verify())
    if not loss.numbers_return:
        assert set(lost_jobs).isdisjoint(jobs)
        assert set(lost_machines).isdisjoint(machines)


def test_who_only_reads_changes_forgets_what_was_lost(loss: Loss, they: Rememberers) -> None:
    they.store.add_machines(two_machines("old", 1))
    they.remember()
    loss.save()
    they.reconnect()
    they.jobs()
    they.place()
    they.remember()

    loss.lose()
    they.reconnect()
    they.remember()

    assert [] == row_differences(they.store.snapshot().rows, they.view.rows())
