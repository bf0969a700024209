"""Addresses of machines, by which the tasks of a gang find each other.

Goal     Let an agent tell its tasks where the others of their gang run.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0046-gangs-meet.md.
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.execute("ALTER TABLE omega.machine_profile ADD COLUMN address text")


def downgrade() -> None:
    """Remove it."""
    op.execute("ALTER TABLE omega.machine_profile DROP COLUMN address")
