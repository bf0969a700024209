"""Costs of stages in picoseconds, and when the order of a kind changed.

Goal     Learn what a unit of input costs also where inputs are counted in bytes, and give new keys
         to jobs that were locked when an order changed.
Promise  Down after up leaves the tables as they were; costs below a microsecond are then 0, and
         jobs in steps have no weight.
Source   docs/decisions/0059-start-deadlines.md.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the column, and add the other."""
    op.execute("ALTER TABLE omega.stage_cost DROP CONSTRAINT stage_cost_micros_is_positive")
    op.execute("ALTER TABLE omega.stage_cost RENAME COLUMN micros TO picos")
    op.execute(
        "ALTER TABLE omega.stage_cost"
        " ALTER COLUMN picos TYPE numeric(30, 0) USING picos * 1000000::numeric,"
        " ADD CONSTRAINT stage_cost_picos_is_positive CHECK (picos >= 0)"
    )
    op.execute(
        "ALTER TABLE omega.queue_order"
        " ADD COLUMN changed_at timestamptz NOT NULL DEFAULT clock_timestamp()"
    )


def downgrade() -> None:
    """Take both back, and the weights of jobs, which earlier versions do not know."""
    for table in ("job_spec", "pipeline_stage"):
        op.execute(
            f"UPDATE omega.{table} SET wire = wire #- '{{work,weight}}'"
            " WHERE jsonb_typeof(wire -> 'work') = 'object' AND wire -> 'work' ? 'weight'"
        )
    op.execute("ALTER TABLE omega.queue_order DROP COLUMN changed_at")
    op.execute("ALTER TABLE omega.stage_cost DROP CONSTRAINT stage_cost_picos_is_positive")
    op.execute(
        "ALTER TABLE omega.stage_cost ALTER COLUMN picos TYPE bigint USING div(picos, 1000000)"
    )
    op.execute("ALTER TABLE omega.stage_cost RENAME COLUMN picos TO micros")
    op.execute(
        "ALTER TABLE omega.stage_cost"
        " ADD CONSTRAINT stage_cost_micros_is_positive CHECK (micros >= 0)"
    )
