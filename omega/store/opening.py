"""Opening the store that the settings name.

Goal     One way to a store for every command and process.
Promise  With a database URL, that server; without one, the embedded server, started on demand and
         kept up for as long as the block that needs it.
Source   docs/decisions/0010-embedded-postgres.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omega.config import Settings
from omega.store.postgres.store import PostgresStore


@contextmanager
def server(settings: Settings) -> Iterator[str]:
    """Give the URL of the database that the settings name; an embedded server is up meanwhile.

    Raises StoreUnavailable if an embedded server cannot be started, SettingsError if there is
    neither a URL nor the wheel of the embedded one.
    """
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    from omega.store.embedded import EmbeddedPostgres  # noqa: PLC0415 - an optional extra

    with EmbeddedPostgres(settings.data_dir) as embedded:
        yield embedded.url


def store_at(url: str, settings: Settings, application_name: str) -> PostgresStore:
    """Return the store of the database with this URL; whoever asked for it closes it."""
    return PostgresStore(
        url,
        application_name=application_name,
        statement_timeout_ms=settings.statement_timeout_ms,
    )
