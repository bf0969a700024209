"""Rounds: who plans the next one of a kind of scheduler, and what it is to know.

Goal     Let a scheduler that plans by rounds be followed by another.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE omega.round (
            scheduler text CONSTRAINT round_pkey PRIMARY KEY,
            number bigint NOT NULL,
            holder text NOT NULL,
            began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            ends_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            memo jsonb NOT NULL DEFAULT '{}'
        ) WITH (fillfactor = 50)
        """
    )


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE omega.round")
