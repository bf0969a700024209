"""Elastic jobs, their helpers, and how far each phase has come.

Goal     Tie helpers to their parent, and bound in the database how many workers a job may have.
Promise  Down after up leaves the tables as they were. A helper that runs at a downgrade goes on as
         an ordinary job of its low precedence.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, their indexes and the table."""
    op.execute("ALTER TABLE omega.job ADD COLUMN workers_max integer, ADD COLUMN parent bigint")
    op.execute("CREATE INDEX job_parent ON omega.job (parent) WHERE parent IS NOT NULL")
    op.execute(
        "CREATE INDEX job_elastic ON omega.job (scheduler, id)"
        " WHERE workers_max IS NOT NULL AND finished_at IS NULL"
    )
    op.execute(
        "CREATE TABLE omega.phase_progress ("
        " job_id bigint NOT NULL, phase integer NOT NULL, done bigint NOT NULL,"
        " busy_ms bigint NOT NULL, CONSTRAINT phase_progress_pkey PRIMARY KEY (job_id, phase),"
        " CONSTRAINT phase_progress_counts_are_positive CHECK (least(done, busy_ms) >= 0))"
        " WITH (fillfactor = 50)"
    )


def downgrade() -> None:
    """Remove them, and what descriptions of jobs say of workers."""
    op.execute("DROP TABLE omega.phase_progress")
    op.execute("ALTER TABLE omega.job DROP COLUMN workers_max, DROP COLUMN parent")
    op.execute(
        "UPDATE omega.job_spec SET wire = wire - 'workers'"
        " WHERE jsonb_typeof(wire) = 'object' AND wire ? 'workers'"
    )
