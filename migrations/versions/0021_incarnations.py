"""Histories: a row that a recovery of the server loses, and what begins anew with each.

Goal     Let readers notice that the database may have lost commits that they have seen.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0049-incarnations.md.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table."""
    op.execute("ALTER TABLE omega.cell ADD COLUMN incarnation bigint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE omega.cell ADD COLUMN machines_from integer NOT NULL DEFAULT 0")
    op.execute("""
        CREATE UNLOGGED TABLE omega.incarnation (
            started_at timestamptz NOT NULL DEFAULT pg_postmaster_start_time(),
            born xid8 NOT NULL DEFAULT pg_current_xact_id(),
            folder text NOT NULL
        )
    """)


def downgrade() -> None:
    """Remove them."""
    op.execute("DROP TABLE omega.incarnation")
    op.execute("ALTER TABLE omega.cell DROP COLUMN machines_from")
    op.execute("ALTER TABLE omega.cell DROP COLUMN incarnation")
