"""A cause of ends for programs whose checks failed.

Goal     Record that a program was ended because it did not do its work.
Promise  Down after up leaves the tables as they were. At a downgrade such exits become lost ones,
         and checks are dropped from the programs of jobs.
Source   docs/decisions/0047-checks.md.
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_AFTER = "'exited', 'signalled', 'timeout', 'unhealthy', 'out_of_memory', 'not_started', 'lost'"
_BEFORE = "'exited', 'signalled', 'timeout', 'out_of_memory', 'not_started', 'lost'"
_WITHOUT_CHECKS = """
    UPDATE omega.job_spec s
       SET wire = jsonb_set(
               s.wire, '{groups}',
               (SELECT jsonb_agg(g.it #- '{program,check}' ORDER BY g.n)
                  FROM jsonb_array_elements(s.wire -> 'groups') WITH ORDINALITY AS g (it, n)))
     WHERE jsonb_typeof(s.wire -> 'groups') = 'array'
       AND jsonb_path_exists(s.wire, '$.groups[*].program.check')
"""


def upgrade() -> None:
    """Add the cause."""
    _set_causes(_AFTER)


def downgrade() -> None:
    """Remove it, and checks from the descriptions of jobs."""
    op.execute("UPDATE omega.task_exit SET cause = 'lost' WHERE cause = 'unhealthy'")
    _set_causes(_BEFORE)
    op.execute(_WITHOUT_CHECKS)


def _set_causes(causes: str) -> None:
    op.execute("ALTER TABLE omega.task_exit DROP CONSTRAINT task_exit_cause_known")
    op.execute(
        "ALTER TABLE omega.task_exit ADD CONSTRAINT task_exit_cause_known"
        f" CHECK (cause IN ({causes}))"
    )
