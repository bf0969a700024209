"""What the tests of quotas under several connections share."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import OwnerStore, QuotaReader

COMMITTERS = 4
CORE = 1_000
CORES_MAX = 3
CLAIMS_MAX = 5
ROOMY = 2_000_000
"""Cores that no race uses up: only quotas refuse here."""
ANN, BATCH = (QuotaScope.TENANT, "ann"), (QuotaScope.SCHEDULER, "batch")

Work = Callable[[PostgresStore], int]


@contextmanager
def a_store(url: str, name: str = "omega committer") -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, application_name=name)) as store:
        yield store
    assert "DeadlockDetected" not in store.counts, "locks are not taken in one order"


def together(url: str, works: Sequence[Work]) -> list[int]:
    """Do these at the same time, each on a connection of its own; return what each returns."""
    barrier = threading.Barrier(len(works))

    def one(work: Work) -> int:
        with a_store(url) as store:
            store.now_ms()  # connected
            barrier.wait()
            return work(store)

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def limit(store: OwnerStore, subject: tuple[QuotaScope, str], budget: Budget, most: int) -> None:
    store.set_quota(Quota(*subject, {budget: most}))


def used(store: QuotaReader, subject: tuple[QuotaScope, str] = ANN) -> dict[Budget, int]:
    (use,) = [u for u in store.quotas() if (u.quota.scope, u.quota.name) == subject]
    return {budget: most - use.left[budget] for budget, most in use.quota.limits.items()}
