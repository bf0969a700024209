"""Loads a start state into a store: the tasks that run at the start, through the public calls.

Goal     Fill a cell of ten thousand machines in seconds.
Promise  What runs at the start was submitted, leased and committed like anything else, so every
         invariant covers it. What could not be placed is counted, not hidden.
Source   omega.workload.arrivals.Prefill.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID, uuid4

from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.limits import LIMITS
from omega.model.arrays import Ids
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec
from omega.model.outcomes import Outcome
from omega.store.leases import HandBack, JobLeases
from omega.store.protocols import CommitStore, Store, SubmitterStore
from omega.workload.arrivals import Prefill

HOLDER: Final = "prefill"
LEASE_MS: Final = 15 * 60_000
"""Long enough for the largest start state; the jobs of a loader that dies are rescued then."""
JOBS_PER_CALL: Final = 1_000
COMMIT_TRIES: Final = 3

Advance = Callable[[int], None]
"""Told how much more is done; what a long piece of work calls as it goes."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Loaded:
    """What became of a start state."""

    jobs: int
    tasks: int
    placed: int
    transactions: int
    seconds: float

    @property
    def tasks_per_second(self) -> float:
        """Tasks from submission to their place, in a second."""
        return self.placed / self.seconds if self.seconds else 0.0


NOTHING: Final = Loaded(0, 0, 0, 0, 0.0)
"""What became of a start state that nobody wanted loaded."""


def submit_all(
    queue: SubmitterStore, specs: Sequence[JobSpec], advance: Advance = lambda jobs: None
) -> list[int]:
    """Submit any number of jobs, in slices; return their ids in order."""
    ids: list[int] = []
    for part in _slices(specs, JOBS_PER_CALL):
        ids += queue.submit(part)
        advance(len(part))
    return ids


def place_prefill(
    store: Store,
    prefill: Prefill,
    machine_ids: Ids,
    *,
    clock: Clock,
    advance: Advance = lambda tasks: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Loaded:
    """Submit the jobs of a start state, lease them, and commit each task to its machine.

    `machine_ids` are the ids of the workload's machines, in order. Jobs that a running scheduler
    takes first are left to it.
    """
    began = clock.now()
    ids = submit_all(store, prefill.jobs)
    tokens = _lease(store, {spec.scheduler for spec in prefill.jobs}, set(ids))
    placed = transactions = 0
    for batch in prefill.batches(
        jobs_max=LIMITS.jobs_per_transaction_max, claims_max=LIMITS.claims_per_transaction_max
    ):
        if stopped():
            break
        parts = [
            (ids[job], tokens[ids[job]], 0, prefill.claims(rows, machine_ids))
            for job, rows in batch
            if ids[job] in tokens
        ]
        outcome = _commit(store, Transaction.of(parts, id=uuid4(), scheduler=HOLDER, replica="0"))
        placed += int(outcome.accepted.sum())
        transactions += 1
        advance(sum(rows.stop - rows.start for _, rows in batch))
    return Loaded(len(ids), len(prefill), placed, transactions, clock.now() - began)


def _lease(store: JobLeases, kinds: set[str], wanted: set[int]) -> dict[int, UUID]:
    """Take the lease of every wanted job that nobody else has; give other jobs back."""
    tokens: dict[int, UUID] = {}
    for kind in sorted(kinds):
        while leased := store.lease(kind, holder=HOLDER, jobs_max=JOBS_PER_CALL, lease_ms=LEASE_MS):
            tokens.update({job.id: job.token for job in leased})
    others = [
        HandBack(job, token, delay_ms=0, progressed=False)
        for job, token in tokens.items()
        if job not in wanted
    ]
    if others:
        store.hand_back(others)
    return {job: token for job, token in tokens.items() if job in wanted}


def _commit(store: CommitStore, transaction: Transaction) -> Outcome:
    """Commit; where no answer came, ask again with the same id, which applies nothing twice."""
    for _ in range(COMMIT_TRIES - 1):
        try:
            return store.commit(transaction)
        except StoreUnavailable:
            continue
    return store.commit(transaction)


def _slices(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
