"""Jobs that a user holds, and when a job's precedence was changed last.

Goal     Let users hold, release, requeue and reorder jobs that wait.
Promise  Down after up leaves the tables as they were. At a downgrade held jobs become pending.
Source   docs/decisions/0004-the-job-queue.md.
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_BEFORE = (
    "never_fits",
    "unknown_attribute",
    "no_machine_matches",
    "gang_too_large",
    "no_room",
    "conflicts",
    "over_quota",
    "unreadable",
)


def upgrade() -> None:
    """Add the reason and the column."""
    _set_reasons(*_BEFORE, "held")
    op.execute("ALTER TABLE omega.job ADD COLUMN precedence_set_at timestamptz")


def downgrade() -> None:
    """Remove them."""
    op.execute("ALTER TABLE omega.job DROP COLUMN precedence_set_at")
    op.execute(
        "UPDATE omega.job SET state = 'pending', park_reason = NULL, park_detail = NULL"
        " WHERE park_reason = 'held'"
    )
    _set_reasons(*_BEFORE)


def _set_reasons(*reasons: str) -> None:
    listed = ", ".join(f"'{reason}'" for reason in reasons)
    op.execute("ALTER DOMAIN omega.park_reason DROP CONSTRAINT park_reason_known")
    op.execute(
        "ALTER DOMAIN omega.park_reason ADD CONSTRAINT park_reason_known"
        f" CHECK (VALUE IN ({listed}))"
    )
