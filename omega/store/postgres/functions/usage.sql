-- What tenants, kinds of schedulers or jobs used over a time, for accounting.

-- By tenant, scheduler or job: what their runs held in the last so many milliseconds, evictions, and how long jobs whose
-- first attempt fell into that time had waited for it. The first row is the sum of all; of more than ${holders_max} others
-- those of the largest shares follow, in order. Not on record, and not told: how long a job waited after its first
-- attempt, and for which of its tasks.
CREATE FUNCTION omega.read_usage(_over_ms bigint, _by text)
RETURNS TABLE (
    since_ms bigint, until_ms bigint, unknown bigint, oldest_ms bigint, consumers bigint, name text, job bigint, tenant text,
    scheduler text, runs bigint, held_us numeric[], evicted bigint, lost bigint, attempted bigint, waited_us bigint,
    waited_longest_us bigint, unattempted bigint
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
    ELSIF (_by IN ('tenant', 'scheduler', 'job')) IS NOT TRUE THEN
        RAISE EXCEPTION 'use is summed up by tenant, scheduler or job' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT CASE _by WHEN 'tenant' THEN h.tenant WHEN 'scheduler' THEN h.scheduler ELSE h.job_id::text END AS whose,
               h.tenant IS NULL AS is_unknown, h.amounts, sum(h.runs) AS runs, sum(h.lasted) AS lasted,
               sum(h.evicted) AS evicted, sum(h.lost) AS lost
          FROM runs_between(begins, ends) h GROUP BY 1, 2, h.amounts
    ), waits AS MATERIALIZED (
        SELECT CASE _by WHEN 'tenant' THEN s.tenant WHEN 'scheduler' THEN j.scheduler ELSE j.id::text END AS whose,
               count(j.first_leased_at) AS attempted, sum(j.first_leased_at - j.submitted_at) AS waited,
               max(j.first_leased_at - j.submitted_at) AS longest, count(*) - count(j.first_leased_at) AS unattempted
          FROM job j JOIN job_spec s ON s.job_id = j.id
         WHERE j.parent IS NULL
           AND (j.first_leased_at > begins OR j.first_leased_at IS NULL AND j.finished_at IS NULL)
         GROUP BY 1
    ), weights AS (  -- jobs may be a million: in floating point, since only the order depends on it
        SELECT w.whose, [[ sum(w.held_${number}) AS held_${number} ]]
          FROM (SELECT h.whose, [[ h.amounts[${number}] * extract(epoch FROM h.lasted)::float8 AS held_${number} ]]
                  FROM held h WHERE NOT h.is_unknown
                 UNION ALL SELECT w.whose, [[ 0 * ${number} ]] FROM waits w) AS w
         GROUP BY w.whose
    ), ranked AS (
        SELECT w.whose, count(*) OVER () AS consumers,
               row_number() OVER (ORDER BY greatest([[ w.held_${number} / nullif(whole[${number}], 0) ]]) DESC NULLS LAST,
                                           CASE _by WHEN 'job' THEN w.whose::bigint END, w.whose COLLATE "C") AS place
          FROM weights w
    ), listed AS MATERIALIZED (
        SELECT r.whose, r.consumers, r.place FROM ranked r WHERE r.place <= ${holders_max}
    ), each AS (  -- place 0 is the sum of all
        SELECT 0 AS place, h.amounts, sum(h.runs) AS runs, sum(h.lasted) AS lasted, sum(h.evicted) AS evicted,
               sum(h.lost) AS lost, 0 AS attempted, NULL::interval AS waited, NULL::interval AS longest, 0 AS unattempted
          FROM held h WHERE NOT h.is_unknown GROUP BY h.amounts
         UNION ALL
        SELECT l.place, h.amounts, h.runs, h.lasted, h.evicted, h.lost, 0, NULL, NULL, 0
          FROM listed l JOIN held h ON h.whose = l.whose WHERE NOT h.is_unknown
         UNION ALL
        SELECT 0, NULL, 0, NULL, 0, 0, sum(w.attempted), sum(w.waited), max(w.longest), sum(w.unattempted) FROM waits w
         UNION ALL
        SELECT l.place, NULL, 0, NULL, 0, 0, w.attempted, w.waited, w.longest, w.unattempted
          FROM listed l JOIN waits w ON w.whose = l.whose
    ), sums AS (
        SELECT e.place, sum(e.runs)::bigint AS runs,
               ARRAY[ [[ coalesce(sum(e.amounts[${number}] * extract(epoch FROM e.lasted) * 1000000), 0) ]] ] AS held_us,
               sum(e.evicted)::bigint AS evicted, sum(e.lost)::bigint AS lost, coalesce(sum(e.attempted), 0)::bigint AS attempted,
               (coalesce(extract(epoch FROM sum(e.waited)), 0) * 1000000)::bigint AS waited_us,
               (coalesce(extract(epoch FROM max(e.longest)), 0) * 1000000)::bigint AS longest_us,
               coalesce(sum(e.unattempted), 0)::bigint AS unattempted
          FROM each e GROUP BY e.place
    )
    SELECT (extract(epoch FROM begins) * 1000)::bigint, (extract(epoch FROM ends) * 1000)::bigint,
           (SELECT coalesce(sum(h.runs), 0)::bigint FROM held h WHERE h.is_unknown),
           (SELECT (extract(epoch FROM min(e.ended_at)) * 1000)::bigint FROM ended_task e),
           coalesce(l.consumers, (SELECT max(o.consumers) FROM listed o), 0), coalesce(s.name, l.whose), s.job_id, s.tenant,
           s.wire ->> 'scheduler', u.runs, u.held_us, u.evicted, u.lost, u.attempted, u.waited_us, u.longest_us, u.unattempted
      FROM sums u LEFT JOIN listed l ON l.place = u.place
      LEFT JOIN job_spec s ON s.job_id = CASE _by WHEN 'job' THEN l.whose::bigint END
     ORDER BY u.place;
END $$;
