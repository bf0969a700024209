-- Write what was granted, and what was evicted for it: allocations, use of machines, counts of the
-- jobs. The CHECKs on machine assert the same a second time.
CREATE FUNCTION omega.apply_verdicts(
    _jobs bigint[], _ends integer[],
    _tasks integer[], _landed integer[], _shapes integer[], _amounts integer[], _verdicts smallint[],
    _evicted_jobs bigint[], _evicted_tasks integer[], _evicted_for bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    lost_on integer[];
    lost integer[];      -- (evicted, kinds)
BEGIN
    IF cardinality(_evicted_jobs) > 0 THEN
        -- In a statement of its own and first, because the same task may be placed again below.
        WITH evicted AS (
            DELETE FROM allocation a USING unnest(_evicted_jobs, _evicted_tasks) AS w (job_id, task)
             WHERE a.job_id = w.job_id AND a.task = w.task
            RETURNING a.*
        ), history AS (
            INSERT INTO ended_task (job_id, task, machine_id, started_at, cause)
            SELECT job_id, task, machine_id, started_at, 'evicted' FROM evicted
        )
        SELECT array_agg(machine_id), array_agg(ARRAY[{{ ${kind} }}]) INTO lost_on, lost FROM evicted;
    END IF;

    INSERT INTO allocation (job_id, task, machine_id, {{ ${kind} }})
    SELECT c.job, c.task, c.machine, {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }}
      FROM unnest(claimants(_jobs, _ends), _tasks, _landed, _shapes, _verdicts)
           AS c (job, task, machine, shape, verdict)
     WHERE c.verdict = ${accepted};

    UPDATE machine m
       SET {{ ${kind}_used = m.${kind}_used + net.${kind} }},
           sequence = m.sequence + net.granted,
           revision = m.revision + 1,
           changed_by = pg_current_xact_id()
      FROM (SELECT x.machine, max(x.granted) AS granted, {{ sum(x.${kind}) AS ${kind} }}
              FROM (SELECT c.machine, 1 AS granted, {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] AS ${kind} }}
                      FROM unnest(_landed, _shapes, _verdicts) AS c (machine, shape, verdict)
                     WHERE c.verdict = ${accepted}
                     UNION ALL
                    SELECT l.machine, 0, {{ -lost[l.n][${number}] }} FROM unnest(lost_on) WITH ORDINALITY AS l (machine, n)) AS x
             GROUP BY x.machine) AS net
     WHERE m.id = net.machine;

    UPDATE job j
       SET unplaced = j.unplaced + net.evicted_tasks - net.granted_tasks,
           placed = j.placed + net.granted - net.evicted,
           fruitless = CASE WHEN net.granted > 0 THEN 0 ELSE j.fruitless END,
           state = CASE WHEN isempty(j.unplaced + net.evicted_tasks - net.granted_tasks) THEN 'running'
                        WHEN j.state = 'running' THEN 'pending' ELSE j.state END,
           not_before = CASE WHEN j.state = 'running' THEN clock_timestamp() ELSE j.not_before END,
           lease_token = CASE WHEN isempty(j.unplaced + net.evicted_tasks - net.granted_tasks) THEN NULL
                              ELSE j.lease_token END,
           evicted_by = coalesce(net.evicted_by, j.evicted_by),
           evicted_at = CASE WHEN net.evicted_by IS NULL THEN j.evicted_at ELSE clock_timestamp() END
      FROM (SELECT x.job, sum(x.granted) AS granted, sum(x.evicted) AS evicted,
                   max(x.evictor) FILTER (WHERE x.evictor <> x.job) AS evicted_by,
                   coalesce(range_agg(int4range(x.task, x.task + 1)) FILTER (WHERE x.granted = 1), '{}') AS granted_tasks,
                   coalesce(range_agg(int4range(x.task, x.task + 1)) FILTER (WHERE x.evicted = 1), '{}') AS evicted_tasks
              FROM (SELECT c.job, c.task, 1 AS granted, 0 AS evicted, NULL::bigint AS evictor
                      FROM unnest(claimants(_jobs, _ends), _tasks, _verdicts) AS c (job, task, verdict)
                     WHERE c.verdict = ${accepted}
                     UNION ALL
                    SELECT e.job, e.task, 0, 1, e.evictor
                      FROM unnest(_evicted_jobs, _evicted_tasks, _evicted_for) AS e (job, task, evictor)) AS x
             GROUP BY x.job) AS net
     WHERE j.id = net.job;
    IF cardinality(_evicted_jobs) > 0 THEN
        PERFORM end_lost_helpers(_evicted_jobs, _evicted_tasks);
    END IF;
END $$;
