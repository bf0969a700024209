"""Fills a cell as months of use would: valid live allocations and history, written in bulk.

One set-based statement writes the rows that commits and ends of some thousands of jobs would have
left: jobs with their descriptions, allocations or ended tasks, and a transaction for each ten
tasks. Another one writes what the machines hold. `verify` finds no violation.
"""

from collections.abc import Callable
from typing import Final

from benchmarks.client import CPU_MILLI, MEMORY_MIB
from omega.store.postgres.connection import Link
from omega.store.postgres.health.server_state import TABLES, TableState

TASKS_PER_JOB: Final = 100
TASKS_PER_TRANSACTION: Final = 10
JOBS_AT_A_TIME: Final = 2_000
HISTORY_S: Final = 2_592_000
"""Jobs were submitted, and if over ended, at random times within the last thirty days."""

FILL: Final = f"""
    WITH made AS MATERIALIZED (
        SELECT nextval(pg_get_serial_sequence('omega.job', 'id')) AS id, n,
               clock_timestamp() - make_interval(secs => {HISTORY_S} * random()) AS at
          FROM generate_series(0, %(jobs)s::integer - 1) AS n
    ), task AS MATERIALIZED (
        SELECT m.id, m.at, t AS task,
               1 + ((%(first)s::bigint + m.n * {TASKS_PER_JOB} + t) %% %(machines)s)::integer
                   AS machine
          FROM made m, generate_series(0, {TASKS_PER_JOB} - 1) AS t
    ), queued AS (
        INSERT INTO omega.job (id, scheduler, state, tasks, placed, ended, unplaced, attempts,
                               submitted_at, not_before, first_leased_at, finished_at, tenant)
        OVERRIDING SYSTEM VALUE
        SELECT id, 'filling',
               (CASE WHEN %(over)s THEN 'succeeded' ELSE 'running' END)::omega.job_state,
               {TASKS_PER_JOB}, {TASKS_PER_JOB}, CASE WHEN %(over)s THEN {TASKS_PER_JOB} ELSE 0 END,
               '{{}}', 1, at, at, at, CASE WHEN %(over)s THEN at END, 'default'
          FROM made
    ), described AS (
        INSERT INTO omega.job_spec (job_id, name, tenant, needs_sibling_machines, group_starts,
                                    group_durations_ms, wire, demand)
        SELECT m.id, s.name, s.tenant, s.needs_sibling_machines, s.group_starts,
               s.group_durations_ms, s.wire, s.demand
          FROM made m, omega.job_spec s WHERE s.job_id = %(template)s
    ), live AS (
        INSERT INTO omega.allocation (job_id, task, machine_id, cpu_milli, memory_mib, disk_mib,
                                      gpu_0, gpu_1, gpu_2, gpu_3, gpu_4, gpu_5, gpu_6, gpu_7,
                                      started_at)
        SELECT id, task, machine, {CPU_MILLI}, {MEMORY_MIB}, 0, 0, 0, 0, 0, 0, 0, 0, 0, at
          FROM task WHERE NOT %(over)s
    ), over AS (
        INSERT INTO omega.ended_task (job_id, task, machine_id, started_at, ended_at)
        SELECT id, task, machine, at, at FROM task WHERE %(over)s
    ), recorded AS (
        INSERT INTO omega.transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks,
                                       machines, verdicts, committed_at)
        SELECT gen_random_uuid(), 'filling', '0', false, ARRAY[id], ARRAY[{TASKS_PER_TRANSACTION}],
               array_agg(task ORDER BY task), array_agg(machine ORDER BY task),
               array_fill(0::smallint, ARRAY[{TASKS_PER_TRANSACTION}]), at
          FROM task GROUP BY id, at, task / {TASKS_PER_TRANSACTION}
    )
    SELECT count(*) FROM made
"""
COUNT: Final = f"""
    WITH counted AS (
    UPDATE omega.machine m
       SET cpu_milli_used = m.cpu_milli_used + c.live * {CPU_MILLI},
           memory_mib_used = m.memory_mib_used + c.live * {MEMORY_MIB},
           sequence = m.sequence + c.tasks, revision = m.revision + 1,
           changed_by = pg_current_xact_id()
      FROM (SELECT id, tasks, CASE WHEN %(over)s THEN 0 ELSE tasks END AS live
              FROM (SELECT id, %(tasks)s::integer / %(machines)s
                               + (id <= %(tasks)s::integer %% %(machines)s)::integer AS tasks
                      FROM omega.machine) AS even) AS c
     WHERE m.id = c.id
    RETURNING m.id)
    INSERT INTO omega.machine_change (machines) SELECT array_agg(id) FROM counted
"""
"""Run once, not for each batch, which would leave dead row versions that no real cell has."""


def fill(
    link: Link, tasks: int, *, over: bool, template: int, machines: int, then: Callable[[], None]
) -> None:
    """Add so many tasks, which run or are over; `then` is called after every few thousand."""
    jobs = tasks // TASKS_PER_JOB
    for first in range(0, jobs, JOBS_AT_A_TIME):
        link.call(
            FILL,
            {
                "jobs": min(JOBS_AT_A_TIME, jobs - first),
                "first": first * TASKS_PER_JOB,
                "machines": machines,
                "over": over,
                "template": template,
            },
        )
        then()
    link.call(COUNT, {"tasks": jobs * TASKS_PER_JOB, "machines": machines, "over": over})


def sweep(link: Link) -> None:
    """Vacuum and analyse the tables, as autovacuum would have done."""
    for table in ("machine", "job", "job_spec", "allocation", "ended_task", "transaction"):
        link.call(f"VACUUM (ANALYZE) omega.{table}")


def table_states(link: Link) -> dict[str, TableState]:
    """Return the statistics of Omega's tables, by table."""
    return {row[0]: TableState(*row) for row in link.call(TABLES)}
