"""Reclaiming on Postgres, by schedulers that run as processes do: a full cell of another tenant."""

import threading
from collections import Counter
from contextlib import closing

from omega.clock import RealClock
from omega.events import Event, JobAttempted
from omega.framework.runner import SchedulerProcess
from omega.model.lanes import QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell
from schedulers.batch import BatchScheduler
from tests.fixtures.at_work import settings

REPLICAS = 3
IN_VAIN = 3
"""So many attempts of each replica must find nobody to evict after shares are what they should."""


class Watch:
    """Stops processes once shares are as expected and stay so."""

    def __init__(self, store: PostgresStore, expected: dict[str, int]) -> None:
        self.stop = threading.Event()
        self.cores: Counter[str] = Counter()
        self._store = store
        self._expected = expected
        self._in_vain: Counter[str] = Counter()
        self._lock = threading.Lock()

    def of(self, replica: str, event: Event) -> None:
        """Take an event of a replica."""
        if not isinstance(event, JobAttempted):
            return
        with self._lock:
            used = {name: amounts[0] for name, amounts in self._store.sum_use().items()}
            self.cores = Counter({name: cpu // 1_000 for name, cpu in used.items()})
            if self.cores == self._expected:
                self._in_vain[replica] += not event.placed
            else:
                self._in_vain.clear()
            if len(self._in_vain) == REPLICAS and min(self._in_vain.values()) >= IN_VAIN:
                self.stop.set()


def run(url: str, watch: Watch) -> None:
    """Run replicas of batch until the watch stops them."""

    def process(replica: str) -> None:
        scheduler = BatchScheduler()
        scheduler.queue_order, scheduler.reclaim_after_s = QueueOrder.DRF, 0.0
        with closing(PostgresStore(url)) as store:
            SchedulerProcess(
                scheduler=scheduler,
                store=store,
                open_store=lambda: PostgresStore(url),
                clock=RealClock(watch.stop),
                settings=settings(60_000),
                sink=lambda event: watch.of(replica, event),
                replica=replica,
                run_seed=int(replica),
                stop=watch.stop,
            ).run()

    threads = [threading.Thread(target=process, args=(str(it),)) for it in range(REPLICAS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_replicas_together_evict_no_more_than_a_share(
    store: PostgresStore, database_url: str
) -> None:
    machines = add_a_cell(store, 12, cpu_milli=4_000)
    lent = [a_running_job(store, a_spec(4, tenant="lends"), [at] * 4) for at in machines]
    kept = a_spec(scheduler="batch", tenant="lends")
    store.set_tenant(Tenant("needs", 2))
    store.submit([a_spec(tenant="needs", precedence=10)] * 100 + [kept])
    watch = Watch(store, {"needs": 32, "lends": 16})

    run(database_url, watch)

    evicted = [job for it in lent if (job := store.job(it.id)) is not None and job.evicted_by]
    assert {"needs": 32, "lends": 16} == dict(watch.cores)
    assert 32 == sum(job.tasks - job.placed for job in evicted)
    assert not store.verify()
