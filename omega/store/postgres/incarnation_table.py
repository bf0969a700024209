"""The table of the present incarnation.

Goal     Keep the one row whose loss says that commits may have been lost.
Promise  A recovery of the server empties the table; see functions/incarnations.sql.
Source   docs/decisions/0049-incarnations.md.
"""

from sqlalchemy import Column, DateTime, MetaData, Table, Text, text

from omega.store.postgres.column_types import TransactionNumber


def declare_incarnation(metadata: MetaData) -> None:
    """Declare the row that a recovery of the server loses; see incarnations.sql."""
    Table(
        "incarnation",
        metadata,
        Column(
            "started_at",
            DateTime(timezone=True),
            nullable=False,
            server_default=text("pg_postmaster_start_time()"),
        ),
        Column(
            "born",
            TransactionNumber(),
            nullable=False,
            server_default=text("pg_current_xact_id()"),
        ),
        Column("folder", Text, nullable=False),
        prefixes=["UNLOGGED"],
    )
