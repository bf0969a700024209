"""How far jobs in steps have come, by job.

Goal     Let a job that was interrupted go on from its last step, whoever runs it next.
Promise  Down after up leaves the tables as they were; what was made of steps is forgotten then.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.execute(
        "CREATE TABLE omega.progress (job_id bigint NOT NULL, steps bigint NOT NULL,"
        " run_ms bigint NOT NULL, CONSTRAINT progress_pkey PRIMARY KEY (job_id),"
        " CONSTRAINT progress_steps_is_positive CHECK (steps >= 0),"
        " CONSTRAINT progress_run_is_positive CHECK (run_ms >= 0)) WITH (fillfactor = 50)"
    )


def downgrade() -> None:
    """Remove it."""
    op.execute("DROP TABLE omega.progress")
