"""The store on Postgres: its parts on one connection.

Goal     One object that has all operations of a store.
Promise  It has one connection, opened at the first call, and must not be shared between threads.
Source   docs/decisions/0002-one-store-protocol.md.
"""

from collections.abc import Mapping
from threading import Event
from typing import Self

from omega.store.postgres.agents import PostgresAgents
from omega.store.postgres.cell import PostgresCell
from omega.store.postgres.connection import Link
from omega.store.postgres.elastic import PostgresElasticJobs
from omega.store.postgres.holdings import PostgresHoldings
from omega.store.postgres.jobs import PostgresJobs
from omega.store.postgres.lanes import PostgresLanes
from omega.store.postgres.pipelines import PostgresPipelines
from omega.store.postgres.planned import PostgresPlans
from omega.store.postgres.registry import PostgresRegistry
from omega.store.postgres.rounds import PostgresRounds
from omega.store.postgres.stories import PostgresStories
from omega.store.postgres.turns import PostgresTurns
from omega.store.postgres.usage import PostgresUsage
from omega.store.postgres.watching import PostgresWatching


class PostgresStore(
    PostgresCell,
    PostgresJobs,
    PostgresElasticJobs,
    PostgresAgents,
    PostgresRounds,
    PostgresTurns,
    PostgresLanes,
    PostgresPipelines,
    PostgresHoldings,
    PostgresUsage,
    PostgresStories,
    PostgresPlans,
    PostgresWatching,
    PostgresRegistry,
):
    """A cell, its queue and its registry in one Postgres database."""

    def __init__(
        self,
        url: str,
        *,
        application_name: str = "omega",
        statement_timeout_ms: int = 30_000,
        stop: Event | None = None,
    ) -> None:
        """While `stop` is set, a server that says nothing is soon given up."""
        link = Link(
            url,
            application_name=application_name,
            statement_timeout_ms=statement_timeout_ms,
            stop=stop,
        )
        _connect(self, link)

    @classmethod
    def on(cls, link: Link) -> Self:
        """Return a store whose calls go through this link, which it closes."""
        store = cls.__new__(cls)
        _connect(store, link)
        return store

    def __repr__(self) -> str:
        return f"PostgresStore({self._link!r})"

    @property
    def counts(self) -> Mapping[str, int]:
        """How many calls were repeated and connections replaced, by cause."""
        return dict(self._link.counts)

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        self._link.close()


def _connect(store: PostgresStore, link: Link) -> None:
    """Give a store's parts their link."""
    PostgresCell.__init__(store, link)
    PostgresJobs.__init__(store, link)
    PostgresElasticJobs.__init__(store, link)
    PostgresAgents.__init__(store, link)
    PostgresRounds.__init__(store, link)
    PostgresTurns.__init__(store, link)
    PostgresLanes.__init__(store, link)
    PostgresPipelines.__init__(store, link)
    PostgresHoldings.__init__(store, link)
    PostgresUsage.__init__(store, link)
    PostgresStories.__init__(store, link)
    PostgresPlans.__init__(store, link)
    PostgresWatching.__init__(store, link)
    PostgresRegistry.__init__(store, link)
