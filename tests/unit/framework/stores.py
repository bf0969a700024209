"""Stores that misbehave, for the tests of those who must bear it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from omega.errors import BadInput, NotAllowed, StoreUnavailable
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane
from omega.model.outcomes import Outcome
from omega.store.leases import HandBack
from omega.store.protocols import Store
from omega.testing.pass_through import PassThrough


class Absent(PassThrough):
    """Counts down failures: each call to commit, lease, renew or hand_back may fail first."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.absences = 0
        """How many calls go unanswered from now on."""
        self.replies_lost = 0
        """How many commits are applied from now on without an answer."""
        self.committed: list[UUID] = []
        self.closed = 0

    def commit(self, transaction: Transaction) -> Outcome:
        self._fail()
        self.committed.append(transaction.id)
        outcome = super().commit(transaction)
        if self.replies_lost:
            self.replies_lost -= 1
            raise StoreUnavailable("the reply was lost")
        return outcome

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        self._fail()
        return super().lease(
            scheduler,
            holder=holder,
            jobs_max=jobs_max,
            lease_ms=lease_ms,
            lanes=lanes,
            by_key=by_key,
        )

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        self._fail()
        return super().renew(leases, lease_ms=lease_ms)

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        self._fail()
        return super().hand_back(jobs)

    def close(self) -> None:
        self.closed += 1

    def _fail(self) -> None:
        if self.absences:
            self.absences -= 1
            raise StoreUnavailable("the server is away")


class Forbidden(PassThrough):
    """Lets nobody take a job, nor remove its report."""

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        raise NotAllowed(f"{holder} may not lease jobs of {scheduler}")

    def forget(self, kind: str, replica: str) -> None:
        raise NotAllowed(f"{kind}/{replica} may not be forgotten")


class RefusesMemos(PassThrough):
    """Takes no memo in which one of these fields tells anything."""

    def __init__(self, store: Store, *fields: str) -> None:
        super().__init__(store)
        self._fields = fields

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        if any(memo.get(field) for field in self._fields):
            raise BadInput("this memo is too long")
        return super().note_round(scheduler, number, memo)
