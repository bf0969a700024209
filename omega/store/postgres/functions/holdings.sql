-- What jobs held over a time, and which hold room idly, for audits after the fact.

-- The runs of tasks that were there between two moments, by job and amounts: how many, for how long, and how many of
-- them were ended within by evictions or lost with machines. Live tasks count with what was allocated to them; ended
-- ones, of which that is not on record, with what their group asked for; of jobs that were pruned neither tenant nor
-- amounts are known.
CREATE FUNCTION omega.runs_between(_begins timestamptz, _ends timestamptz)
RETURNS TABLE (
    job_id bigint, tenant text, scheduler text, amounts bigint[], runs bigint, lasted interval, evicted bigint, lost bigint
) LANGUAGE sql STABLE AS $$
    WITH ended AS (
        SELECT e.job_id, width_bucket(e.task, s.group_starts) AS place, count(*) AS runs,
               sum(greatest(least(e.ended_at, _ends) - greatest(e.started_at, _begins), '0')) AS lasted,
               count(*) FILTER (WHERE e.cause = 'evicted') AS evicted,
               count(*) FILTER (WHERE e.cause NOT IN ('ended', 'evicted')) AS lost
          FROM omega.ended_task e LEFT JOIN omega.job_spec s ON s.job_id = e.job_id
         WHERE e.ended_at > _begins
         GROUP BY e.job_id, place
    ), live AS (
        SELECT a.job_id, omega.cost({{ a.${kind} }}) AS amounts, count(*) AS runs,
               sum(greatest(_ends - greatest(a.started_at, _begins), '0')) AS lasted
          FROM omega.allocation a
         GROUP BY a.job_id, amounts
    )
    SELECT l.job_id, s.tenant, s.wire ->> 'scheduler', l.amounts, l.runs, l.lasted, 0, 0
      FROM live l LEFT JOIN omega.job_spec s ON s.job_id = l.job_id
     UNION ALL
    SELECT e.job_id, s.tenant, s.wire ->> 'scheduler',
           ARRAY[(g.it ->> 'cpu_milli')::bigint, (g.it ->> 'memory_mib')::bigint, (g.it ->> 'disk_mib')::bigint,
                 (g.it ->> 'gpus')::bigint * (g.it ->> 'gpu_slices')::bigint, 0],
           e.runs, e.lasted, e.evicted, e.lost
      FROM ended e LEFT JOIN omega.job_spec s ON s.job_id = e.job_id,
           LATERAL (SELECT s.wire -> 'groups' -> (e.place - 1) AS it) AS g
$$;

-- What the jobs of each tenant, and of each kind of scheduler, held in the last so many milliseconds: by budget, amounts
-- times microseconds; runs of jobs that were pruned are only counted. Of more than ${holders_max} tenants, or kinds, those
-- of the largest shares are returned. There is at least one row, so that the window and the capacity of the machines that
-- are not gone are always told.
CREATE FUNCTION omega.read_holdings(_over_ms bigint)
RETURNS TABLE (
    since_ms bigint, until_ms bigint, capacity bigint[], unknown bigint, scope text, name text, holders bigint, runs bigint,
    held_us numeric[]
) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp
-- A million jobs are summed up without files on disk.
SET work_mem = '64MB' AS $$
#variable_conflict use_column
DECLARE
    ends timestamptz := date_trunc('milliseconds', clock_timestamp());
    begins timestamptz := ends - milliseconds(_over_ms);
    whole bigint[] := (SELECT cost({{ coalesce(sum(m.${kind}_capacity), 0)::bigint }}) FROM machine m WHERE m.state <> 3);
BEGIN
    IF _over_ms = 0 THEN
        RAISE EXCEPTION 'bad length of time: 0 ms' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH shapes AS (  -- jobs are many and shapes are few, and numbers without limit are slow
        SELECT h.tenant, h.scheduler, h.amounts, sum(h.runs) AS runs, extract(epoch FROM sum(h.lasted)) * 1000000 AS lasted_us
          FROM runs_between(begins, ends) h GROUP BY h.tenant, h.scheduler, h.amounts
    ), sums AS (
        SELECT CASE WHEN grouping(s.tenant) = 0 THEN 'tenant' ELSE 'scheduler' END AS scope,
               coalesce(s.tenant, s.scheduler) AS name, sum(s.runs)::bigint AS runs,
               ARRAY[ [[ sum(s.amounts[${number}] * s.lasted_us) ]] ] AS held_us
          FROM shapes s WHERE s.tenant IS NOT NULL
         GROUP BY GROUPING SETS ((s.tenant), (s.scheduler))
    ), ranked AS (
        SELECT s.*, count(*) OVER (PARTITION BY s.scope) AS holders,
               row_number() OVER (PARTITION BY s.scope ORDER BY greatest([[ s.held_us[${number}]::float8 / nullif(whole[${number}], 0) ]]) DESC NULLS LAST,
                                                                s.name COLLATE "C") AS place
          FROM sums s
    )
    SELECT (extract(epoch FROM begins) * 1000)::bigint, (extract(epoch FROM ends) * 1000)::bigint, whole,
           (SELECT coalesce(sum(s.runs), 0)::bigint FROM shapes s WHERE s.tenant IS NULL),
           r.scope, r.name, r.holders, r.runs, r.held_us
      FROM (VALUES (true)) AS always LEFT JOIN ranked r ON r.place <= ${holders_max};
END $$;

-- Jobs that have held room for at least so many milliseconds without getting on: some of their tasks have places and
-- others have none; or their work is counted in steps, all tasks run, and no step is on record.
--
-- Since when: the last time that a task got a place or lost one. When the last step was made is not on record, so that
-- a job with any steps is not returned while all its tasks run.
CREATE FUNCTION omega.read_idle_jobs(_idle_ms bigint)
RETURNS TABLE (
    job bigint, name text, tenant text, scheduler text, cause text, running integer, unplaced integer, since_ms bigint,
    held bigint[]
) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    latest timestamptz := clock_timestamp() - milliseconds(_idle_ms);
BEGIN
    RETURN QUERY
    WITH live AS MATERIALIZED (
        SELECT a.job_id, count(*)::integer AS tasks, max(a.started_at) AS placed_at, {{ sum(a.${kind})::bigint AS ${kind} }}
          FROM allocation a GROUP BY a.job_id HAVING max(a.started_at) <= latest
    ), idle AS MATERIALIZED (
        SELECT j.id, s.name, s.tenant, j.scheduler, j.tasks - j.placed AS unplaced, greatest(l.placed_at, j.evicted_at) AS since,
               l.tasks AS running, cost({{ l.${kind} }}) AS held
          FROM live l JOIN job j ON j.id = l.job_id JOIN job_spec s ON s.job_id = j.id
          LEFT JOIN progress p ON p.job_id = j.id
         WHERE NOT isempty(j.unplaced)
            OR (l.tasks = j.tasks AND s.wire -> 'work' <> 'null' AND coalesce(p.steps, 0) = 0)
    ), lost AS (
        SELECT e.job_id, max(e.ended_at) AS lost_at FROM ended_task e
         WHERE e.cause <> 'ended' AND e.job_id IN (SELECT i.id FROM idle i) GROUP BY e.job_id
    )
    SELECT i.id, i.name, i.tenant, i.scheduler,
           CASE WHEN i.unplaced > 0 THEN 'unplaced_siblings' ELSE 'no_step' END, i.running, i.unplaced,
           (extract(epoch FROM greatest(i.since, o.lost_at)) * 1000)::bigint, i.held
      FROM idle i LEFT JOIN lost o ON o.job_id = i.id
     WHERE greatest(i.since, o.lost_at) <= latest
     ORDER BY greatest(i.since, o.lost_at), i.id;
END $$;
