-- All invariants: a row for each violation. One statement, so one snapshot for all.
CREATE FUNCTION omega.verify()
RETURNS TABLE (invariant text, subject text, detail text) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    WITH held AS (
        SELECT machine_id, {{ sum(${kind}) AS ${kind} }} FROM allocation GROUP BY machine_id
    ), live AS (
        SELECT job_id, count(*) AS tasks, range_agg(int4range(task, task + 1)) AS placed FROM allocation GROUP BY job_id
    ), over AS (
        SELECT job_id, count(*) AS tasks, count(DISTINCT task) AS distinct_tasks
          FROM ended_task WHERE cause = 'ended' GROUP BY job_id
    )
    SELECT 'used is the sum of live allocations', 'machine ' || m.id,
           format('used %s, allocated %s', ARRAY[{{ m.${kind}_used }}], ARRAY[{{ coalesce(h.${kind}, 0) }}])
      FROM machine m LEFT JOIN held h ON h.machine_id = m.id
     WHERE ({{ m.${kind}_used }}) IS DISTINCT FROM ({{ coalesce(h.${kind}, 0)::integer }})
    UNION ALL
    SELECT 'no machine is oversold', 'machine ' || m.id,
           format('capacity %s, used %s', ARRAY[{{ m.${kind}_capacity }}], ARRAY[{{ m.${kind}_used }}])
      FROM machine m
     WHERE NOT ({{ m.${kind}_used BETWEEN 0 AND m.${kind}_capacity + coalesce(m.notice[${number}], 0) | AND }})
    UNION ALL
    SELECT 'an allocation has a machine', 'job ' || a.job_id || ' task ' || a.task, 'machine ' || a.machine_id
      FROM allocation a LEFT JOIN machine m ON m.id = a.machine_id WHERE m.id IS NULL
    UNION ALL
    SELECT 'an allocation has a job that goes on', 'job ' || a.job_id, format('%s tasks live', a.tasks)
      FROM live a LEFT JOIN job j ON j.id = a.job_id
     WHERE j.id IS NULL OR j.state IN (${final_states})
    UNION ALL
    SELECT 'a task has at most one live allocation, and none once it is unplaced', 'job ' || j.id, l.placed::text
      FROM job j JOIN live l ON l.job_id = j.id WHERE l.placed && j.unplaced
    UNION ALL
    SELECT 'placed tasks run or are over', 'job ' || j.id,
           format('placed %s, live %s, ended %s', j.placed, coalesce(l.tasks, 0), j.ended)
      FROM job j LEFT JOIN live l ON l.job_id = j.id
     WHERE j.placed <> coalesce(l.tasks, 0) + j.ended
    UNION ALL
    SELECT 'unplaced tasks are those never placed', 'job ' || j.id, j.unplaced::text
      FROM job j
     WHERE j.tasks - j.placed <> (SELECT coalesce(sum(upper(r) - lower(r)), 0) FROM unnest(j.unplaced) AS r)
    UNION ALL
    SELECT 'a gang is whole, absent, or above its minimum', 'job ' || j.id, format('placed %s of a minimum of %s', j.placed, j.minimum)
      FROM job j WHERE j.placed > j.ended AND j.placed < j.minimum
    UNION ALL
    SELECT 'a task ends once', 'job ' || o.job_id, format('%s ends of %s tasks', o.tasks, o.distinct_tasks)
      FROM over o WHERE o.tasks <> o.distinct_tasks
    UNION ALL
    SELECT 'a granting transaction raises a machine''s sequence by one', 'machine ' || m.id,
           format('sequence %s, granting transactions %s', m.sequence, coalesce(g.grants, 0))
      FROM machine m
      LEFT JOIN (SELECT c.machine, count(DISTINCT t.id) AS grants
                   FROM transaction t, unnest(t.machines, t.verdicts) AS c (machine, verdict)
                  WHERE c.verdict = ${accepted} GROUP BY c.machine) AS g ON g.machine = m.id
     WHERE m.sequence < coalesce(g.grants, 0)
    UNION ALL
    SELECT 'a change of a machine is on record', 'machine ' || m.id, 'transaction ' || m.changed_by
      FROM machine m CROSS JOIN cell c
     WHERE m.revision > 0 AND m.changed_by >= c.changes_from
       AND NOT EXISTS (SELECT FROM transaction t
                        WHERE t.changed_by = m.changed_by AND (m.id = ANY (t.machines) OR m.id = ANY (t.evicted_machines)))
       AND NOT EXISTS (SELECT FROM machine_change o WHERE o.changed_by = m.changed_by AND m.id = ANY (o.machines))
    UNION ALL
    SELECT 'a machine has a profile as wide as the catalogue', 'machine ' || coalesce(m.id, p.id), coalesce(p.codes::text, 'none')
      FROM machine m FULL JOIN machine_profile p ON p.id = m.id CROSS JOIN cell c
     WHERE m.id IS NULL OR p.id IS NULL OR cardinality(p.codes) <> jsonb_array_length(c.catalogue -> 'names')
    UNION ALL
    SELECT 'a job has a description', 'job ' || j.id, j.scheduler FROM job j LEFT JOIN job_spec s ON s.job_id = j.id WHERE s.job_id IS NULL
    UNION ALL
    SELECT 'only a higher precedence, or its own scheduler, evicts', 'transaction ' || t.id, format('job %s was evicted', v.id)
      FROM transaction t CROSS JOIN LATERAL (SELECT DISTINCT e FROM unnest(t.evicted_jobs) AS e) AS e JOIN job v ON v.id = e.e
     -- The gap may have been another one then; it was never less than 1.
     WHERE NOT EXISTS (SELECT FROM unnest(claimants(t.jobs, t.ends), t.verdicts) AS c (job, verdict) JOIN job j ON j.id = c.job
                        WHERE c.verdict = ${accepted}
                          AND (v.preemptible AND j.precedence > v.precedence OR t.committed_at < greatest(j.precedence_set_at, v.precedence_set_at)
                               OR v.id = ANY (t.jobs) AND j.scheduler = v.scheduler))
    UNION ALL
    SELECT 'a job was evicted for a higher precedence, or by its own scheduler', 'job ' || v.id, format('for job %s', j.id)
      FROM job v JOIN job j ON j.id = v.evicted_by
     WHERE NOT (v.preemptible AND j.precedence > v.precedence OR j.scheduler = v.scheduler
                -- A user has changed one of them since.
                OR coalesce(v.evicted_at < greatest(j.precedence_set_at, v.precedence_set_at), false))
    UNION ALL
    SELECT 'what is left of a quota is the limit less what its jobs hold', 'quota of ' || q.scope || ' ' || q.name,
           format('limits %s, left %s, used %s', q.limits, l.remains, u.used)
      FROM quota q
      LEFT JOIN (SELECT quota_id, ARRAY[ [[ sum(free[${number}])::bigint ]] ] AS remains FROM quota_shard GROUP BY quota_id) AS l ON l.quota_id = q.id
      LEFT JOIN used_of_quotas() u ON u.quota = q.id
     WHERE q.counted AND NOT coalesce([[ q.limits[${number}] = l.remains[${number}] + coalesce(u.used[${number}], 0) | AND ]], false)
    UNION ALL
    SELECT 'a quota that is used above its limit is closed', 'quota of ' || q.scope || ' ' || q.name, l.remains::text
      FROM quota q
      JOIN (SELECT quota_id, ARRAY[ [[ sum(free[${number}])::bigint ]] ] AS remains, bool_and(closed) AS closed
              FROM quota_shard GROUP BY quota_id) AS l ON l.quota_id = q.id
     WHERE 0 > ANY (l.remains) AND NOT l.closed
    UNION ALL
    SELECT 'helpers never wait', 'job ' || j.id, j.state
      FROM job j WHERE j.parent IS NOT NULL AND j.state IN ('pending', 'parked')
    UNION ALL
    SELECT 'helpers end with their parent', 'job ' || j.id, j.parent::text
      FROM job j LEFT JOIN job p ON p.id = j.parent
     WHERE j.parent IS NOT NULL AND j.finished_at IS NULL AND (p.id IS NULL OR p.finished_at IS NOT NULL)
    UNION ALL
    SELECT 'a job has the workers that it may have', 'job ' || j.id, format('%s of %s', j.tasks + sum(h.tasks - h.ended), j.workers_max)
      FROM job j JOIN job h ON h.parent = j.id AND h.finished_at IS NULL
     GROUP BY j.id HAVING (j.tasks + sum(h.tasks - h.ended) <= j.workers_max) IS NOT TRUE
    UNION ALL
    SELECT 'a job has failed if a task of it has', 'job ' || j.id, format('%s, %s failed of %s that are over', j.state, j.failed, j.ended)
      FROM job j
      LEFT JOIN (SELECT job_id, count(*) AS failures FROM task_exit WHERE code IS DISTINCT FROM 0 GROUP BY job_id) AS x ON x.job_id = j.id
     WHERE j.failed > j.ended OR j.failed < coalesce(x.failures, 0)
        OR CASE j.state WHEN 'failed' THEN j.failed = 0 OR j.ended < j.placed
                        WHEN 'cancelled' THEN false
                        WHEN 'succeeded' THEN j.failed > 0
                        ELSE j.failed > 0 AND j.minimum > 0 END
    UNION ALL
    SELECT 'a machine that its lease declared down is down', 'machine ' || l.machine_id, coalesce(m.state::text, 'none')
      FROM machine_lease l LEFT JOIN machine m ON m.id = l.machine_id
     WHERE l.state_before IS NOT NULL AND m.state IS DISTINCT FROM 2
    UNION ALL
    SELECT 'a stage is queued once all before it have succeeded', 'pipeline ' || s.pipeline_id, s.name
      FROM pipeline_stage s
     WHERE s.ended_as IS NULL
       AND (s.job_id IS NOT NULL) <> NOT EXISTS (SELECT FROM pipeline_stage p WHERE p.pipeline_id = s.pipeline_id AND p.number = ANY (s.after)
                                                    AND p.ended_as IS DISTINCT FROM 'succeeded')
    UNION ALL
    SELECT 'a stage ends with its job', 'job ' || j.id, format('%s, %s', j.state, coalesce(s.ended_as, 'none'))
      FROM job j LEFT JOIN pipeline_stage s ON s.pipeline_id = j.pipeline AND s.job_id = j.id
     WHERE j.pipeline IS NOT NULL AND EXISTS (SELECT FROM pipeline p WHERE p.id = j.pipeline)
       AND s.ended_as IS DISTINCT FROM CASE WHEN j.finished_at IS NOT NULL THEN j.state END
    UNION ALL
    SELECT 'a lease runs out', 'job ' || j.id, coalesce(j.lease_holder, '')
      FROM job j WHERE j.state = 'planning' AND j.lease_expires_at IS NULL
$$;
