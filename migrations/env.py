"""What Alembic runs: our tables, our schema, the connection that omega.store.postgres.schema made.

Goal     Let `alembic` compare and upgrade within a transaction that the caller opened.
Promise  Nothing is committed here.
Source   Alembic's documentation, "sharing a connection".
"""

from alembic import context

from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    compare_server_default=False,
)
context.run_migrations()
