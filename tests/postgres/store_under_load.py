"""A cell with something of everything in it, to be attacked in transactions that are rolled back.

The store's own parts and raw calls go through one connection, so that each example of a test finds
the cell as it was, and the store sees what the raw calls of this example have written.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.placement.diagnosis import diagnose
from omega.store.leases import HandBack, Parking
from omega.store.postgres.cell import PostgresCell
from omega.store.postgres.connection import Link
from omega.store.postgres.jobs import PostgresJobs
from omega.store.postgres.registry import PostgresRegistry
from omega.store.postgres.rounds import PostgresRounds
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS, claim, grant
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.sessions import KeptLink, Sessions

SCHEDULERS: dict[str, Scheduler] = {
    scheduler.kind: scheduler
    for scheduler in (BatchScheduler(), ServiceScheduler(), MlGpuScheduler())
}


class StoreUnderLoad(PostgresCell, PostgresJobs, PostgresRounds, PostgresRegistry):
    """The store, on a connection that its owner may use too."""

    def __init__(self, link: Link) -> None:
        PostgresCell.__init__(self, link)
        PostgresJobs.__init__(self, link)
        PostgresRounds.__init__(self, link)
        PostgresRegistry.__init__(self, link)
        self.link = link

    def close(self) -> None:
        """Close the connection, and with it the transaction."""
        self.link.close()

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Take back whatever is done inside the block."""
        self.link.call("BEGIN")
        try:
            yield
        finally:
            self.link.call("ROLLBACK")
            # A later example may give other machines the generation that was taken back.
            self._profiles = None

    def attempt(self, statement: str, literals: Sequence[str | None]) -> str | None:
        """Run a statement inside a transaction; return the sentence with which it was refused.

        Any other error than that of bad input fails the test.
        """
        self.link.call("SAVEPOINT before")
        try:
            self.link.call(statement, literals)
        except BadInput as refusal:
            self.link.call("ROLLBACK TO SAVEPOINT before")
            return refusal.sentence
        self.link.call("RELEASE SAVEPOINT before")
        return None


@contextmanager
def loaded_store(url: str, sessions: Sessions) -> Iterator[StoreUnderLoad]:
    """Give the store of a cell like this.

    Machines 1 and 2 are open, 3 drains, 4 is down with a task on it, 5 is gone, 6 has shrunk
    below its use and the notice is over. By job:

    1 waits. 2 is being planned, with one task placed. 3 is parked. 4 runs. 5 has succeeded. 6 is
    cancelled. 7 is a gang that is being planned. 8 is a gang that runs, of lower precedence. 9 is
    being planned, and its lease is over. The token of each lease is the job's number. All count
    against a quota of their scheduler's, some against one of their tenant's too.
    """
    link = KeptLink(sessions, url, "omega siege")
    with closing(StoreUnderLoad(link)) as store:
        _fill(store)
        link.call(
            "UPDATE omega.job SET lease_token = lpad(id::text, 32, '0')::uuid"
            " WHERE lease_token IS NOT NULL"
        )
        link.call("UPDATE omega.allocation SET started_at = '2020-01-01 UTC'")
        assert [] == store.verify()
        yield store


def _fill(store: StoreUnderLoad) -> None:
    for scope, name in ((QuotaScope.TENANT, "team"), (QuotaScope.SCHEDULER, "batch")):
        store.set_quota(Quota(scope, name, {Budget.CPU_MILLI: 9_000, Budget.JOBS: 8}))
    store.add_machines(a_cell(6, gpus=1, attributes={"zone": ["z1", "z1", "z2", "z2", "z1", None]}))
    specs = {
        1: a_spec(3, tenant="team"),
        2: a_spec(3, tenant="team"),
        3: a_spec(2, spread_over="zone"),
        4: a_spec(2, duration_ms=1_000),
        5: a_spec(),
        6: a_spec(2),
        7: a_spec(minimum=2, groups=[a_group(1), a_group(2, gpus=1, gpu_slices=500)]),
        8: a_spec(2, minimum=2, precedence=-1, tenant="team"),
        9: a_spec(2),
    }
    assert list(specs) == store.submit(list(specs.values()))
    leased = {job.id: job for job in _lease(store, "batch", LONG_MS)}
    store.park([Parking(3, leased[3].token, ParkReason.NO_ROOM, "there is none")])
    grant(store, leased[2], [0], [1])
    grant(store, leased[4], [0, 1], [2, 4])
    grant(store, leased[5], [0], [3])
    grant(store, leased[8], [0, 1], [6, 6])
    store.end_tasks(integers([5]), np.array([0]))
    assert store.cancel(6)
    store.hand_back([HandBack(1, leased[1].token, delay_ms=0, progressed=False)])
    store.renew({9: leased[9].token}, lease_ms=OVER_AT_ONCE_MS)
    for machine, state in (
        (3, MachineState.DRAINING),
        (4, MachineState.DOWN),
        (5, MachineState.GONE),
    ):
        store.set_state(integers([machine]), state)
    store.resize(6, machine_capacity(500, 16_384, 0, 0), notice_ms=0)


def assert_sound(store: StoreUnderLoad) -> None:
    """Nothing is broken: every row can be read, every scheduler goes on, every job can be ended."""
    assert [] == store.verify()
    view = View(store.snapshot())
    store.changes_since(0)
    store.allocations()
    store.use()
    store.reports()
    store.quotas()
    store.notices()
    numbers = [status.id for status in store.jobs(jobs_max=1_000)]
    for kind, scheduler in SCHEDULERS.items():
        store.parked(kind, jobs_max=1_000)
        leased = _lease(store, kind, LONG_MS)
        for job in scheduler.order(leased, view):
            scheduler.place(view, job, np.random.default_rng(job.id))
            diagnose(view, job)
    store.enforce_notices()
    for number in numbers:
        store.cancel(number)

    assert [] == store.verify()
    assert 0 == len(store.allocations())
    assert not store.snapshot().rows.used.any()
    _assert_that_it_works(store)


def _assert_that_it_works(store: StoreUnderLoad) -> None:
    """An honest job comes, is placed on an honest machine and ends, whatever went before."""
    (machine,) = store.add_machines(a_cell(1, first=1_000, attributes={"zone": ["z9"]})).tolist()
    (job,) = store.submit([a_spec(scheduler="honest")])
    (leased,) = _lease(store, "honest", LONG_MS)

    assert job == leased.id
    assert claim(store, leased, [0], [machine]).accepted.all()
    assert 1 == store.end_tasks(integers([job]), np.array([0]))


def _lease(store: StoreUnderLoad, kind: str, lease_ms: int) -> list[LeasedJob]:
    return store.lease(kind, holder="siege", jobs_max=1_000, lease_ms=lease_ms)
