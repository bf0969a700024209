"""How the programs of tasks ended, what they wrote, and jobs that have failed.

Goal     Let a job fail, and its user see why.
Promise  Down after up leaves the tables as they were. At a downgrade, jobs that have failed become
         cancelled ones, and programs are dropped from the descriptions of jobs.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_BEFORE = "'pending', 'planning', 'parked', 'running', 'succeeded', 'cancelled'"
_COUNTS = "0 <= ended AND ended <= placed AND placed <= tasks AND tasks BETWEEN 1 AND 100000"

_EXITS = """
    CREATE TABLE omega.task_exit (
        job_id bigint NOT NULL,
        task integer NOT NULL,
        started_at timestamptz NOT NULL,
        ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        machine_id integer NOT NULL,
        cause text NOT NULL,
        code smallint,
        signal smallint,
        restarts integer NOT NULL DEFAULT 0,
        detail text NOT NULL DEFAULT '',
        CONSTRAINT task_exit_pkey PRIMARY KEY (job_id, task, started_at),
        CONSTRAINT task_exit_cause_known CHECK (
            cause IN ('exited', 'signalled', 'timeout', 'out_of_memory', 'not_started', 'lost')
        ),
        CONSTRAINT task_exit_code_iff_exited CHECK ((cause = 'exited') = (code IS NOT NULL)),
        CONSTRAINT task_exit_code_within CHECK (code BETWEEN 0 AND 255),
        CONSTRAINT task_exit_signal_within CHECK (signal BETWEEN 1 AND 64),
        CONSTRAINT task_exit_restarts_is_positive CHECK (restarts >= 0),
        CONSTRAINT task_exit_detail_within CHECK (length(detail) <= 1000)
    )
"""
_OUTPUTS = """
    CREATE TABLE omega.task_output (
        job_id bigint NOT NULL,
        task integer NOT NULL,
        stream text NOT NULL,
        started_at timestamptz NOT NULL,
        bytes_total bigint NOT NULL,
        tail bytea NOT NULL,
        CONSTRAINT task_output_pkey PRIMARY KEY (job_id, task, stream),
        CONSTRAINT task_output_stream_known CHECK (stream = 'stdout' OR stream = 'stderr'),
        CONSTRAINT task_output_tail_within
            CHECK (octet_length(tail) <= least(bytes_total, 65536))
    )
"""


def upgrade() -> None:
    """Add the state, the count of failed tasks, the tables, and the index of names."""
    _set_states(f"{_BEFORE}, 'failed'")
    op.execute("ALTER TABLE omega.job ADD COLUMN failed integer NOT NULL DEFAULT 0")
    _set_counts(f"{_COUNTS} AND failed BETWEEN 0 AND placed")
    op.execute("CREATE INDEX job_spec_name ON omega.job_spec (name, job_id)")
    op.execute(_EXITS)
    op.execute(_OUTPUTS)


def downgrade() -> None:
    """Remove them, and programs from the descriptions of jobs."""
    op.execute("DROP TABLE omega.task_output")
    op.execute("DROP TABLE omega.task_exit")
    op.execute("DROP INDEX omega.job_spec_name")
    op.execute("UPDATE omega.job SET state = 'cancelled' WHERE state = 'failed'")
    _set_counts(_COUNTS)
    op.execute("ALTER TABLE omega.job DROP COLUMN failed")
    _set_states(_BEFORE)
    op.execute(
        """
        UPDATE omega.job_spec s
           SET wire = jsonb_set(
                   s.wire, '{groups}',
                   (SELECT jsonb_agg(CASE WHEN jsonb_typeof(g.it) = 'object' THEN g.it - 'program'
                                          ELSE g.it END ORDER BY g.n)
                      FROM jsonb_array_elements(s.wire -> 'groups') WITH ORDINALITY AS g (it, n)))
         WHERE jsonb_typeof(s.wire -> 'groups') = 'array'
           AND jsonb_path_exists(s.wire, '$.groups[*].program')
        """
    )


def _set_states(states: str) -> None:
    op.execute("ALTER DOMAIN omega.job_state DROP CONSTRAINT job_state_known")
    op.execute(
        f"ALTER DOMAIN omega.job_state ADD CONSTRAINT job_state_known CHECK (VALUE IN ({states}))"
    )


def _set_counts(condition: str) -> None:
    op.execute("ALTER TABLE omega.job DROP CONSTRAINT job_counts_within")
    op.execute(f"ALTER TABLE omega.job ADD CONSTRAINT job_counts_within CHECK ({condition})")
