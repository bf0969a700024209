"""Turns: which of the replicas that share out their reading reads which parts of the cell.

Goal     Let replicas come and go while no two of them hold one turn.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0032-turns-are-leased.md.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE omega.turn (
            login text NOT NULL DEFAULT SESSION_USER,
            holder uuid NOT NULL,
            kind text NOT NULL,
            replica text NOT NULL,
            gap_ms bigint NOT NULL,
            parts integer NOT NULL,
            number integer,
            schedulers integer,
            asked bigint NOT NULL,
            joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            expires_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            CONSTRAINT turn_pkey PRIMARY KEY (login, holder),
            CONSTRAINT turn_held_once UNIQUE (gap_ms, parts, schedulers, number),
            CONSTRAINT turn_whole CHECK (
                (number IS NULL) = (schedulers IS NULL)
                AND (number IS NULL OR 0 <= number AND number < schedulers)
            )
        ) WITH (fillfactor = 50)
        """
    )


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE omega.turn")
