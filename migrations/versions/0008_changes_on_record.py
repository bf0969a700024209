"""Changes of machines on record, so that a delta looks up what has changed and scans nothing.

Goal     Have a delta cost what has changed, however large the cell.
Promise  Down after up leaves the tables as they were. Views of before scan once more.
Source   docs/decisions/0020-deltas-look-up-what-changed.md.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Begin the record with this transaction."""
    op.execute(
        "CREATE TABLE omega.machine_change (machines integer[] NOT NULL,"
        " changed_by xid8 NOT NULL DEFAULT pg_current_xact_id())"
    )
    op.execute("CREATE INDEX machine_change_changed_by ON omega.machine_change (changed_by)")
    op.execute("ALTER TABLE omega.cell ADD changes_from xid8 NOT NULL DEFAULT pg_current_xact_id()")


def downgrade() -> None:
    """Drop the record."""
    op.execute("ALTER TABLE omega.cell DROP changes_from")
    op.execute("DROP TABLE omega.machine_change")
