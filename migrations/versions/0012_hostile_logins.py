"""The login of a lease and of a round; the size of a job's JSON; whether a quota counts yet.

Goal     Let functions refuse what one login may not do to another, and bound what they return.
Promise  Down after up leaves the tables as they were. Quotas that are there go on counting.
Source   docs/decisions/0029-hostile-logins.md.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    # The text of such a number may be thousands of times as long as the number. No program could
    # read these jobs; they stay as jobs that no program can read.
    op.execute(
        "UPDATE omega.job_spec SET wire = '{}' WHERE EXISTS ("
        "SELECT FROM jsonb_path_query(wire, 'strict $.** ? (@.type() == \"number\")') AS n (it)"
        " WHERE abs(n.it::numeric) > 1e308 OR scale(n.it::numeric) > 400)"
    )
    op.execute("ALTER TABLE omega.job ADD COLUMN lease_login text")
    op.execute(
        "ALTER TABLE omega.job_spec ADD COLUMN wire_bytes integer"
        " GENERATED ALWAYS AS (octet_length(wire::text)) STORED"
    )
    op.execute(
        "ALTER TABLE omega.quota ADD COLUMN counted boolean NOT NULL DEFAULT true,"
        " ADD COLUMN set_by xid8 NOT NULL DEFAULT pg_current_xact_id()"
    )
    op.execute("ALTER TABLE omega.quota ALTER COLUMN counted SET DEFAULT false")
    op.execute(
        "ALTER TABLE omega.round ADD COLUMN login text NOT NULL DEFAULT SESSION_USER,"
        " ADD COLUMN holder_before text NOT NULL DEFAULT '',"
        " ADD COLUMN login_before text NOT NULL DEFAULT ''"
    )
    op.execute(
        "ALTER TABLE omega.process DROP CONSTRAINT process_pkey,"
        " ADD CONSTRAINT process_pkey PRIMARY KEY (kind, replica, login)"
    )


def downgrade() -> None:
    """Drop them; a quota that does not count yet goes with them: without the column it would."""
    op.execute(
        "DELETE FROM omega.quota_shard s USING omega.quota q"
        " WHERE q.id = s.quota_id AND NOT q.counted"
    )
    op.execute("DELETE FROM omega.quota WHERE NOT counted")
    op.execute(
        "DELETE FROM omega.process p USING omega.process o"
        " WHERE o.kind = p.kind AND o.replica = p.replica AND o.seen_at > p.seen_at"
    )
    op.execute(
        "ALTER TABLE omega.process DROP CONSTRAINT process_pkey,"
        " ADD CONSTRAINT process_pkey PRIMARY KEY (kind, replica)"
    )
    op.execute(
        "ALTER TABLE omega.round DROP COLUMN login, DROP COLUMN holder_before,"
        " DROP COLUMN login_before"
    )
    op.execute("ALTER TABLE omega.quota DROP COLUMN counted, DROP COLUMN set_by")
    op.execute("ALTER TABLE omega.job_spec DROP COLUMN wire_bytes")
    op.execute("ALTER TABLE omega.job DROP COLUMN lease_login")
