"""Audit queries: the invariants of a cell, in plain SQL.

Each query returns the rows that violate an invariant. It reads committed rows as a superuser, so
open transactions do not affect it.
"""

from tests.attack.sessions import Database
from tests.attack.wires import DEVICES, KINDS

_USED = ", ".join(f"m.{kind}_used" for kind in KINDS)
_SUMS = ", ".join(f"coalesce(sum(a.{kind}), 0)" for kind in KINDS)
_OVER = " OR ".join(
    f"m.{kind}_used < 0 OR m.{kind}_used > m.{kind}_capacity + coalesce(m.notice[{n}], 0)"
    for n, kind in enumerate(KINDS, start=1)
)
_SLICES = " + ".join(f"a.gpu_{n}" for n in range(DEVICES))
_HELD = ", ".join(f"a.gpu_{n}" for n in range(DEVICES))

INVARIANTS = {
    "the used amounts of a machine are the sum of its allocations": f"""
        SELECT m.id, ARRAY[{_USED}], s.sums FROM omega.machine m
         CROSS JOIN LATERAL (SELECT ARRAY[{_SUMS}]::integer[] AS sums
                               FROM omega.allocation a WHERE a.machine_id = m.id) AS s
         WHERE ARRAY[{_USED}] <> s.sums""",
    "no machine is oversold": f"SELECT m.id FROM omega.machine m WHERE {_OVER}",
    "a task has one allocation at most": """
        SELECT job_id, task FROM omega.allocation GROUP BY 1, 2 HAVING count(*) > 1""",
    "an allocation belongs to an unfinished job and an existing machine": """
        SELECT a.job_id, a.task, a.machine_id FROM omega.allocation a
          LEFT JOIN omega.job j ON j.id = a.job_id LEFT JOIN omega.machine m ON m.id = a.machine_id
         WHERE j.id IS NULL OR m.id IS NULL OR a.task NOT BETWEEN 0 AND j.tasks - 1
            OR j.state IN ('succeeded', 'failed', 'cancelled')""",
    "a task is exactly one of running, unplaced and ended": """
        SELECT j.id, t.task FROM omega.job j
         CROSS JOIN LATERAL generate_series(0, j.tasks - 1) AS t (task)
         CROSS JOIN LATERAL (
             SELECT (SELECT count(*) FROM omega.allocation a
                      WHERE a.job_id = j.id AND a.task = t.task) AS runs,
                    (j.unplaced @> t.task)::integer AS waits,
                    (SELECT count(*) FROM omega.ended_task e
                      WHERE e.job_id = j.id AND e.task = t.task AND e.cause = 'ended') AS is_over
         ) AS x
         WHERE j.tasks <= 1000 AND x.runs + x.waits + x.is_over <> 1""",
    "the counts of a job are those of its tasks": """
        SELECT j.id, j.placed, j.ended FROM omega.job j
         WHERE j.placed <> j.ended + (SELECT count(*) FROM omega.allocation a WHERE a.job_id = j.id)
            OR j.ended <> (SELECT count(*) FROM omega.ended_task e
                            WHERE e.job_id = j.id AND e.cause = 'ended')""",
    "the state of a job matches its tasks and its lease": """
        SELECT j.id, j.state FROM omega.job j
         WHERE (j.state = 'planning') <> (j.lease_token IS NOT NULL)
            OR j.state = 'running' AND (NOT isempty(j.unplaced) OR j.ended = j.tasks)
            OR j.state = 'succeeded' AND (j.ended <> j.tasks OR j.failed > 0)
            OR j.state = 'failed' AND (j.ended <> j.placed OR j.failed = 0)
            OR j.state = 'parked' AND isempty(j.unplaced)
            OR j.state = 'planning' AND j.lease_expires_at IS NULL""",
    "a gang runs at least its minimum": """
        SELECT j.id FROM omega.job j WHERE j.placed > j.ended AND j.placed < j.minimum""",
    "the sequence of a machine has risen with each granted commit": """
        SELECT m.id FROM omega.machine m
         WHERE m.sequence < (SELECT count(*) FROM omega.transaction t
                              WHERE EXISTS (SELECT FROM unnest(t.machines, t.verdicts) AS c (it, v)
                                             WHERE c.it = m.id AND c.v = 0))""",
    "each job has a spec": """
        SELECT j.id FROM omega.job j LEFT JOIN omega.job_spec s ON s.job_id = j.id
         WHERE s.job_id IS NULL""",
    "the remainder of a quota is its limit minus the allocations of its jobs": f"""
        SELECT q.scope, q.name, q.limits, q.remains, held.used FROM omega.read_quotas() AS q
         CROSS JOIN LATERAL (
             SELECT ARRAY[coalesce(sum(a.cpu_milli), 0), coalesce(sum(a.memory_mib), 0),
                          coalesce(sum(a.disk_mib), 0), coalesce(sum({_SLICES}), 0),
                          count(DISTINCT a.job_id)]::bigint[] AS used
               FROM omega.allocation a JOIN omega.job j ON j.id = a.job_id
               JOIN omega.job_spec s ON s.job_id = a.job_id
              WHERE q.name = CASE q.scope WHEN 'tenant' THEN s.tenant ELSE j.scheduler END) AS held
          JOIN omega.quota t ON t.scope = q.scope AND t.name = q.name
         WHERE to_jsonb(t) ->> 'counted' IS DISTINCT FROM 'false'
           AND EXISTS (SELECT FROM generate_subscripts(q.limits, 1) AS b
                        WHERE q.limits[b] <> q.remains[b] + held.used[b])""",
    "omega.verify() returns nothing": "SELECT * FROM omega.verify()",
}
"""These hold whatever logins do."""

AMOUNT_INVARIANTS = {
    "an allocation has the amounts that its job asks for": f"""
        SELECT a.job_id, a.task FROM omega.allocation a
         CROSS JOIN LATERAL (
             SELECT g.it FROM (
                 SELECT e.it, sum((e.it ->> 'tasks')::integer) OVER (ORDER BY e.n) AS stop
                   FROM omega.job_spec s, jsonb_array_elements(s.wire -> 'groups')
                        WITH ORDINALITY AS e (it, n) WHERE s.job_id = a.job_id) AS g
              WHERE a.task < g.stop ORDER BY g.stop LIMIT 1) AS own
         CROSS JOIN LATERAL (
             SELECT coalesce(sum(d), 0) AS slices, count(*) FILTER (WHERE d > 0) AS devices,
                    max(d) AS most FROM unnest(ARRAY[{_HELD}]) AS d) AS held
         WHERE a.cpu_milli <> (own.it ->> 'cpu_milli')::integer
            OR a.memory_mib <> (own.it ->> 'memory_mib')::integer
            OR a.disk_mib <> (own.it ->> 'disk_mib')::integer
            OR held.devices <> (own.it ->> 'gpus')::integer
            OR held.devices > 0 AND (held.most <> (own.it ->> 'gpu_slices')::integer
                                     OR held.slices <> held.devices * held.most)""",
}
"""These hold as long as schedulers claim the amounts that jobs ask for."""

LOCKS_OF = """
    SELECT l.pid, l.locktype, l.mode, l.relation::regclass::text FROM pg_locks l
     WHERE l.pid = ANY (%s::int[]) AND l.locktype NOT IN ('virtualxid')
"""


def violations(database: Database, *, check_amounts: bool = True) -> list[str]:
    """Return the violated invariants, one line for each offending row."""
    queries = {**INVARIANTS, **(AMOUNT_INVARIANTS if check_amounts else {})}
    return [f"{name}: {row}" for name, query in queries.items() for row in database.query(query)]


def leftover_locks(database: Database) -> list[str]:
    """Return the locks of sessions that have no open transaction."""
    sessions = database.sessions.values()
    idle = [session.pid for session in sessions if session.is_done and not session.in_transaction]
    return [str(row) for row in database.query(LOCKS_OF, [idle])]
