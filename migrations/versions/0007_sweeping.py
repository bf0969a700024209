"""When autovacuum sweeps the tables that grow with age: after a share that does not.

Goal     Have jobs and allocations swept by what the queue reads past, not by a fifth of them all.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0019-history.md.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SHARES = {"job": "0.02", "allocation": "0.05"}


def upgrade() -> None:
    """Set the shares."""
    for table, share in SHARES.items():
        op.execute(f"ALTER TABLE omega.{table} SET (autovacuum_vacuum_scale_factor = {share})")


def downgrade() -> None:
    """Go back to the server's."""
    for table in SHARES:
        op.execute(f"ALTER TABLE omega.{table} RESET (autovacuum_vacuum_scale_factor)")
