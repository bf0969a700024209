"""Lanes of the queue, the weights of tenants, and what each tenant uses.

Goal     Let schedulers lease the next jobs under a fair order without reading the queue.
Promise  Down after up leaves the tables as they were. Jobs that were there before have their lanes.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# What omega.constraint_class and omega.job_demand compute (functions/specs.sql), which are
# installed after migrations.
_CLASS = r"""
    SELECT coalesce(1 + get_byte(sha256(convert_to(
               string_agg(d.text, E'\n\n' ORDER BY d.text COLLATE "C"), 'UTF8')), 0) % 64, 0)
      FROM (SELECT DISTINCT concat_ws(
                       E'\n', c ->> 'attribute', c ->> 'operator',
                       (SELECT string_agg(v.it, E'\n' ORDER BY v.n)
                          FROM jsonb_array_elements_text(c -> 'values')
                               WITH ORDINALITY AS v (it, n))) AS text
              FROM jsonb_array_elements(s.wire -> 'groups') AS g,
                   jsonb_array_elements(g -> 'constraints') AS c) AS d
"""
_DEMAND = """
    SELECT ARRAY[sum(t * (g ->> 'cpu_milli')::bigint), sum(t * (g ->> 'memory_mib')::bigint),
                 sum(t * (g ->> 'disk_mib')::bigint),
                 sum(t * (g ->> 'gpus')::bigint * (g ->> 'gpu_slices')::bigint)]::bigint[]
      FROM jsonb_array_elements(s.wire -> 'groups') AS g,
           LATERAL (SELECT (g ->> 'tasks')::bigint AS t) AS x
"""


def upgrade() -> None:
    """Add the columns, the index and the tables."""
    op.execute(
        "ALTER TABLE omega.job ADD COLUMN tenant text NOT NULL DEFAULT '',"
        " ADD COLUMN constraint_class smallint NOT NULL DEFAULT 0"
    )
    op.execute("ALTER TABLE omega.job_spec ADD COLUMN demand bigint[] NOT NULL DEFAULT '{0,0,0,0}'")
    op.execute(
        f"UPDATE omega.job j SET tenant = s.tenant, constraint_class = ({_CLASS})"
        " FROM omega.job_spec s WHERE s.job_id = j.id"
    )
    op.execute(f"UPDATE omega.job_spec s SET demand = ({_DEMAND})")
    op.execute("ALTER TABLE omega.job ALTER COLUMN tenant DROP DEFAULT")
    op.execute("ALTER TABLE omega.job_spec ALTER COLUMN demand DROP DEFAULT")
    op.execute(
        "CREATE INDEX job_lane ON omega.job"
        " (scheduler, state, tenant, constraint_class, precedence DESC, id)"
        " WHERE state IN ('pending', 'parked')"
    )
    op.execute(
        "CREATE TABLE omega.tenant ("
        " name text CONSTRAINT tenant_pkey PRIMARY KEY, weight integer NOT NULL, parent text,"
        " CONSTRAINT tenant_weight_is_positive CHECK (weight >= 1))"
    )
    op.execute(
        "CREATE UNLOGGED TABLE omega.tenant_use ("
        " single boolean DEFAULT true CONSTRAINT tenant_use_pkey PRIMARY KEY,"
        " summed_at timestamptz NOT NULL DEFAULT clock_timestamp(), took_ms integer NOT NULL,"
        " tenants text[] NOT NULL, used bigint[] NOT NULL,"
        " CONSTRAINT tenant_use_one_row CHECK (single))"
    )
    op.execute(
        "CREATE TABLE omega.queue_order ("
        " scheduler text CONSTRAINT queue_order_pkey PRIMARY KEY, name text NOT NULL,"
        " replica text NOT NULL, login text NOT NULL DEFAULT SESSION_USER,"
        " expires_at timestamptz NOT NULL DEFAULT clock_timestamp()) WITH (fillfactor = 50)"
    )


def downgrade() -> None:
    """Remove them."""
    op.execute("DROP TABLE omega.queue_order, omega.tenant_use, omega.tenant")
    op.execute("ALTER TABLE omega.job_spec DROP COLUMN demand")
    op.execute("ALTER TABLE omega.job DROP COLUMN tenant, DROP COLUMN constraint_class")
