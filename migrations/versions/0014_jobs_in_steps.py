"""Jobs in steps say `work` where they said `training`; a column of job_spec says what it tells.

Goal     Keep jobs that were submitted before the words changed.
Promise  Down after up leaves tables and jobs as they were. What cannot be read as a job stays so.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rewrite the jobs and rename the column."""
    op.execute("ALTER TABLE omega.job_spec RENAME COLUMN sited TO needs_sibling_machines")
    _rename("training", "work", "model", "kind")


def downgrade() -> None:
    """Bring back the old words."""
    _rename("work", "training", "kind", "model")
    op.execute("ALTER TABLE omega.job_spec RENAME COLUMN needs_sibling_machines TO sited")


def _rename(field: str, new_field: str, part: str, new_part: str) -> None:
    """Rename a field of each job in steps, and a part of it; of other jobs it is null."""
    op.execute(
        f"UPDATE omega.job_spec SET wire = wire - '{field}' || jsonb_build_object('{new_field}',"
        f" CASE WHEN jsonb_typeof(wire -> '{field}') = 'object' AND wire -> '{field}' ? '{part}'"
        f" THEN (wire -> '{field}') - '{part}'"
        f" || jsonb_build_object('{new_part}', wire -> '{field}' -> '{part}')"
        f" ELSE wire -> '{field}' END)"
        f" WHERE jsonb_typeof(wire) = 'object' AND wire ? '{field}'"
    )
