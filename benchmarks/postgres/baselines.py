"""Other ways to commit the same claims, to hold omega's against.

Each writes the same rows to the same tables of the same server, with the same durability, and is
given what it could wish for: it judges claims all together, names no machine that it does not
need, and tries again without a pause.
"""

from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from multiprocessing.connection import Client as ConnectionTo
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors

from benchmarks.client import DEMAND, Ways, Work
from omega.errors import StoreUnavailable
from omega.model.arrays import every_kind
from omega.model.outcomes import Verdict
from omega.store.postgres import packing
from omega.store.postgres.connection import Link
from omega.store.postgres.functions import KINDS_OF, render
from omega.store.postgres.packing import Int, unpack_machines

COLLISIONS: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
"""Why Postgres turns a transaction away that may be tried again."""
WRITE: Final = "SELECT baseline.write_claims(%s, %s, %s, %s, %s, %s, %s)"
STATEMENT_TIMEOUT_MS: Final = 60_000


def install(url: str) -> None:
    """Put the functions into a database that has omega's."""
    sql = files(__package__).joinpath("baselines.sql").read_text(encoding="utf-8")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(render(sql, KINDS_OF["no_device"]).encode())


def all_of(work: Work, verdict: Verdict) -> NDArray[np.int8]:
    """Return one verdict for all claims."""
    return np.full(len(work.task), verdict, dtype=np.int8)


def written(work: Work, replica: str) -> tuple[Any, ...]:
    """Return the parameters of `WRITE`."""
    return (
        work.id,
        replica,
        work.job,
        Int(work.task),
        Int(work.machine),
        Int(work.shape + 1),
        Int(DEMAND),
    )


class _OneCall:
    """A way to commit that is one call, tried again until Postgres takes it."""

    def __init__(self, url: str, name: str, _address: str | None) -> None:
        self._link = Link(
            url, application_name="omega benchmark", statement_timeout_ms=STATEMENT_TIMEOUT_MS
        )
        self._name = name

    def begin(self) -> None:
        """Keep the connection of the slice before."""

    def repeats(self) -> Mapping[str, int]:
        """Return how often Postgres turned a transaction away."""
        return self._link.counts

    def end(self) -> None:
        """Keep the connection for the next slice."""

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _call(self, query: str, parameters: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any column
        while True:
            try:
                ((answer,),) = self._link.call(query, parameters)
            except StoreUnavailable as error:
                if not isinstance(error.__cause__, COLLISIONS):
                    raise
            else:
                return answer


class Raw(_OneCall):
    """The rows alone: no judging, no order of locks. What nobody could use, and the ceiling."""

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Write."""
        self._call(WRITE, written(work, self._name))
        return all_of(work, Verdict.ACCEPTED)


class Serializable(_OneCall):
    """Postgres' own optimism: SERIALIZABLE, and again from the start when it sees a conflict."""

    COMMIT = "SELECT baseline.commit_serializable(%s, %s, %s, %s, %s, %s, %s, %s)"

    def begin(self) -> None:
        """Have every transaction of this connection be serializable."""
        self._link.call("SELECT set_config('default_transaction_isolation', 'serializable', false)")

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Look, judge and write in one call."""
        fresh = self._call(
            self.COMMIT,
            (*written(work, self._name)[:3], work.token, *written(work, self._name)[3:]),
        )
        if fresh is None:
            return all_of(work, Verdict.OVERCOMMIT)
        unpack_machines(fresh)
        return all_of(work, Verdict.ACCEPTED)


class SerializablePromising(Serializable):
    """The same, with what omega promises where nothing special is asked for."""

    COMMIT = "SELECT baseline.commit_promising(%s, %s, %s, %s, %s, %s, %s, %s)"


class Pessimistic:
    """Lock first, then decide: SELECT ... FOR UPDATE of the machines, in the order of their ids.

    Two round trips, which is the least when the decision is the client's: BEGIN and the locks, then
    the rows and COMMIT.
    """

    def __init__(self, url: str, name: str, _address: str | None) -> None:
        self._name = name
        self._counts: Counter[str] = Counter()
        self._connection = psycopg.connect(
            url,
            autocommit=True,
            application_name="omega benchmark",
            options="-c jit=off -c max_parallel_workers_per_gather=0 -c timezone=UTC",
        )
        packing.register(self._connection)

    def begin(self) -> None:
        """Keep the connection of the slice before."""

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Lock and read, decide, then write."""
        while True:
            try:
                return self._commit(work)
            except COLLISIONS as collision:
                self._counts[type(collision).__name__] += 1
                self._connection.rollback()

    def repeats(self) -> Mapping[str, int]:
        """Return how often Postgres turned a transaction away."""
        return self._counts

    def end(self) -> None:
        """Keep the connection for the next slice."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _commit(self, work: Work) -> NDArray[np.int8]:
        cursor = self._connection.cursor(binary=True)
        with self._connection.pipeline():
            cursor.execute("BEGIN", prepare=True)
            cursor.execute(
                "SELECT baseline.lock_machines(%s, %s, %s)",
                (work.job, work.token, Int(np.unique(work.machine))),
                prepare=True,
            )
            ((packed,),) = cursor.fetchall()
            stands = packed is not None and self._fits(work, packed)
            if stands:
                cursor.execute(WRITE, written(work, self._name), prepare=True)
            cursor.execute("COMMIT", prepare=True)
        return all_of(work, Verdict.ACCEPTED if stands else Verdict.OVERCOMMIT)

    def _fits(self, work: Work, packed: bytes) -> bool:
        rows = unpack_machines(packed)
        claims = np.bincount(rows.where(work.machine), minlength=len(rows))
        return bool(every_kind(claims[:, np.newaxis] * DEMAND <= rows.free).all())


class OneCommitter:
    """Every transaction through one process, which judges and writes one after the other."""

    TOGETHER = False
    """Whether transactions that wait at the same time are written together."""

    def __init__(self, _url: str, _name: str, address: str | None) -> None:
        assert address is not None, "nobody has started the one committer"
        self._address = address
        self._connection: Connection | None = None

    def begin(self) -> None:
        """Queue up at the committer; it looks at the cell when the first one comes."""
        self._connection = ConnectionTo(self._address, family="AF_UNIX")
        self._connection.send(self.TOGETHER)
        assert self._connection.recv()

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Send the claims and wait for the verdict."""
        assert self._connection is not None
        self._connection.send((work.id, work.job, work.task, work.machine))
        granted: bool = self._connection.recv()
        return all_of(work, Verdict.ACCEPTED if granted else Verdict.OVERCOMMIT)

    def repeats(self) -> Mapping[str, int]:
        """Return nothing: one committer collides with nobody."""
        return {}

    def end(self) -> None:
        """Leave, so that the committer notices when the slice is over."""
        assert self._connection is not None
        self._connection.close()

    def close(self) -> None:
        """Have nothing left to let go of."""


class OneCommitterTogether(OneCommitter):
    """One process again, which writes together, in one transaction, whatever waits for it."""

    TOGETHER = True


BASELINES: Final[Ways] = {
    "raw": Raw,
    "serializable": Serializable,
    "serializable-promising": SerializablePromising,
    "pessimistic": Pessimistic,
    "one-committer": OneCommitter,
    "one-committer-together": OneCommitterTogether,
}
