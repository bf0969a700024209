"""The store on Postgres: its parts on one connection.

Goal     One object that has all operations of a store.
Promise  It has one connection, opened at the first call, and must not be shared between threads.
Source   docs/decisions/0002-one-store-protocol.md.
"""

from collections.abc import Mapping

from omega.store.postgres.agents import PostgresAgents
from omega.store.postgres.cell import PostgresCell
from omega.store.postgres.connection import Link
from omega.store.postgres.elastic import PostgresElasticJobs
from omega.store.postgres.holdings import PostgresHoldings
from omega.store.postgres.jobs import PostgresJobs
from omega.store.postgres.registry import PostgresRegistry
from omega.store.postgres.rounds import PostgresRounds
from omega.store.postgres.turns import PostgresTurns


class PostgresStore(
    PostgresCell,
    PostgresJobs,
    PostgresElasticJobs,
    PostgresAgents,
    PostgresRounds,
    PostgresTurns,
    PostgresHoldings,
    PostgresRegistry,
):
    """A cell, its queue and its registry in one Postgres database."""

    def __init__(
        self, url: str, *, application_name: str = "omega", statement_timeout_ms: int = 30_000
    ) -> None:
        link = Link(
            url, application_name=application_name, statement_timeout_ms=statement_timeout_ms
        )
        PostgresCell.__init__(self, link)
        PostgresJobs.__init__(self, link)
        PostgresElasticJobs.__init__(self, link)
        PostgresAgents.__init__(self, link)
        PostgresRounds.__init__(self, link)
        PostgresTurns.__init__(self, link)
        PostgresHoldings.__init__(self, link)
        PostgresRegistry.__init__(self, link)

    def __repr__(self) -> str:
        return f"PostgresStore({self._link!r})"

    @property
    def counts(self) -> Mapping[str, int]:
        """How many calls were repeated or replayed and connections replaced, by cause."""
        return dict(self._link.counts)

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        self._link.close()
