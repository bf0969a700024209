"""Machine leases: which agent may run tasks on a machine, and until when.

Goal     Let schedulers find machines whose agent is silent.
Promise  Down after up leaves the tables as they were. At a downgrade, machines that their leases
         declared down return to their states before: earlier versions have nobody who opens them.
Source   docs/decisions/0045-machine-leases.md.
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_LEASES = """
    CREATE TABLE omega.machine_lease (
        machine_id integer NOT NULL,
        holder uuid NOT NULL,
        login text NOT NULL DEFAULT SESSION_USER,
        expires_at timestamptz NOT NULL,
        state_before smallint,
        CONSTRAINT machine_lease_pkey PRIMARY KEY (machine_id),
        CONSTRAINT machine_lease_state_before_known CHECK (state_before BETWEEN 0 AND 1)
    ) WITH (fillfactor = 50)
"""
_REOPENED = """
    WITH moved AS (
        UPDATE omega.machine m
           SET state = l.state_before, sequence = m.sequence + 1, revision = m.revision + 1,
               changed_by = pg_current_xact_id()
          FROM omega.machine_lease l
         WHERE l.machine_id = m.id AND l.state_before IS NOT NULL
        RETURNING m.id
    )
    INSERT INTO omega.machine_change (machines)
    SELECT array_agg(id) FROM moved HAVING count(*) > 0
"""


def upgrade() -> None:
    """Add the table."""
    op.execute(_LEASES)


def downgrade() -> None:
    """Remove it, and reopen the machines that were declared down."""
    op.execute(_REOPENED)
    op.execute("DROP TABLE omega.machine_lease")
