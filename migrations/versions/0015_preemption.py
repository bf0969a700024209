"""Jobs that may not be evicted, by whom a job was evicted last, and the cell's gap of precedence.

Goal     Judge in the database who may evict whom, whatever a scheduler sends.
Promise  Down after up leaves the tables as they were. Jobs submitted before are preemptible.
Source   docs/decisions/0036-preemption.md.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.execute(
        "ALTER TABLE omega.job ADD COLUMN preemptible boolean NOT NULL DEFAULT true,"
        " ADD COLUMN evicted_by bigint, ADD COLUMN evicted_at timestamptz"
    )
    op.execute(
        "ALTER TABLE omega.cell ADD COLUMN precedence_gap integer NOT NULL DEFAULT 10,"
        " ADD CONSTRAINT cell_gap_is_positive CHECK (precedence_gap >= 1)"
    )


def downgrade() -> None:
    """Remove them, and what descriptions of jobs say of it."""
    op.execute("ALTER TABLE omega.cell DROP COLUMN precedence_gap")
    op.execute(
        "ALTER TABLE omega.job DROP COLUMN preemptible, DROP COLUMN evicted_by,"
        " DROP COLUMN evicted_at"
    )
    op.execute(
        "UPDATE omega.job_spec SET wire = wire - 'preemptible'"
        " WHERE jsonb_typeof(wire) = 'object' AND wire ? 'preemptible'"
    )
