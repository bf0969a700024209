"""Lanes by the shape of jobs, too.

Goal     Keep large jobs that find no room from holding up small ones of their tenant.
Promise  Down after up leaves the columns as they were. Jobs that have not ended have their lanes.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

# What omega.lane_class computes (functions/specs.sql), which is installed after migrations; and
# what the class was before.
_TEXTS = r"""
    SELECT string_agg(d.text, E'\n\n' ORDER BY d.text COLLATE "C") AS texts
      FROM (SELECT DISTINCT concat_ws(
                       E'\n', c ->> 'attribute', c ->> 'operator',
                       (SELECT string_agg(v.it, E'\n' ORDER BY v.n)
                          FROM jsonb_array_elements_text(c -> 'values')
                               WITH ORDINALITY AS v (it, n))) AS text
              FROM jsonb_array_elements(s.wire -> 'groups') AS g,
                   jsonb_array_elements(g -> 'constraints') AS c) AS d
"""
_SHAPE = """
    SELECT (2 * CASE WHEN s.demand[4] > 0 THEN 3 ELSE b.resource END + (j.minimum > 1)::integer)
           * 16 + least(length(ltrim(b.amount::bit(64)::text, '0')), 15) AS shape
      FROM (SELECT d.amount / j.tasks * greatest(1, j.minimum) / u.unit AS amount,
                   d.n - 1 AS resource
              FROM unnest(s.demand) WITH ORDINALITY AS d (amount, n)
              JOIN unnest('{125,512,8192,10}'::bigint[]) WITH ORDINALITY AS u (unit, n) USING (n)
             ORDER BY amount DESC, resource LIMIT 1) AS b
"""
_NEW = rf"""
    SELECT CASE WHEN t.texts IS NULL THEN h.shape
                ELSE 128 + get_byte(sha256(convert_to(t.texts || E'\n\n' || h.shape, 'UTF8')), 0)
                           % 64 END
      FROM ({_SHAPE}) AS h, ({_TEXTS}) AS t
"""
_OLD = f"""
    SELECT coalesce(1 + get_byte(sha256(convert_to(t.texts, 'UTF8')), 0) % 64, 0)
      FROM ({_TEXTS}) AS t
"""


def upgrade() -> None:
    """Rename the column, and class the jobs anew."""
    op.execute("ALTER TABLE omega.job RENAME COLUMN constraint_class TO lane_class")
    _class_jobs("lane_class", _NEW)


def downgrade() -> None:
    """Class the jobs as before, and rename the column back."""
    op.execute("ALTER TABLE omega.job RENAME COLUMN lane_class TO constraint_class")
    _class_jobs("constraint_class", _OLD)


def _class_jobs(column: str, lane_class: str) -> None:
    op.execute(
        f"UPDATE omega.job j SET {column} = ({lane_class})"
        " FROM omega.job_spec s WHERE s.job_id = j.id AND j.finished_at IS NULL"
    )
