"""Opening the store that the settings name.

Goal     One way to a store for all commands and processes.
Promise  With a database URL the store is on that server. Without one it is on the embedded server,
         which runs at least for as long as the block that needs it.
Source   docs/decisions/0010-embedded-postgres.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from omega.config import Settings
from omega.store.postgres.store import PostgresStore


@contextmanager
def server(settings: Settings) -> Iterator[str]:
    """Yield the URL of the database that the settings name; an embedded server runs meanwhile.

    Raises StoreUnavailable if the embedded server cannot be started, SettingsError if no URL is set
    and the embedded server is not installed.
    """
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    from omega.store.embedded import EmbeddedPostgres  # noqa: PLC0415 - an optional extra

    with EmbeddedPostgres(settings.data_dir) as embedded:
        yield embedded.url


def store_at(
    url: str, settings: Settings, application_name: str, stop: Event | None = None
) -> PostgresStore:
    """Return the store of the database with this URL; the caller closes it.

    While `stop` is set, a server that says nothing is soon given up.
    """
    return PostgresStore(
        url,
        application_name=application_name,
        statement_timeout_ms=settings.statement_timeout_ms,
        stop=stop,
    )
