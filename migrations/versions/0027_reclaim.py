"""The lease of the one process that reclaims for tenants.

Goal     Keep two processes from evicting at once for the same difference of shares.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0063-reclaim.md.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.execute(
        "CREATE UNLOGGED TABLE omega.reclaim_lease ("
        " single boolean DEFAULT true CONSTRAINT reclaim_lease_pkey PRIMARY KEY,"
        " holder uuid NOT NULL, scheduler text NOT NULL, replica text NOT NULL,"
        " login text NOT NULL DEFAULT SESSION_USER,"
        " expires_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " CONSTRAINT reclaim_lease_one_row CHECK (single)) WITH (fillfactor = 50)"
    )


def downgrade() -> None:
    """Remove it."""
    op.execute("DROP TABLE omega.reclaim_lease")
