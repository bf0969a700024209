-- Forced evictions: tasks become unplaced again, and broken gangs lose all their tasks. Jobs whose rows are locked are
-- passed over, so that a transaction that is left open holds up no others: schedulers repeat these calls. If all are
-- locked, one is waited for, so that a job whose row is locked often gets its turn.

-- Evict those of these tasks that still run as they were started then, and the rest of each gang that falls below
-- its minimum; return how many. A task that was placed again since is left, and so are tasks of jobs whose rows are
-- locked. A helper's task is over. Lock order as in a commit: jobs, quotas, machines, each by id.
CREATE FUNCTION omega.force_end(_jobs bigint[], _tasks integer[], _starts timestamptz[], _cause text)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    locked bigint[] := ARRAY(SELECT id FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED);
    jobs bigint[];
    tasks integer[];
BEGIN
    IF locked = '{}' THEN
        locked := ARRAY(SELECT id FROM job WHERE id = _jobs[1] FOR NO KEY UPDATE);
    END IF;
    WITH named AS (
        SELECT DISTINCT a.job_id, a.task
          FROM unnest(_jobs, _tasks, _starts) AS w (job_id, task, started_at) JOIN allocation a USING (job_id, task, started_at)
         WHERE a.job_id = ANY (locked)
    ), broken AS (
        SELECT j.id FROM job j JOIN (SELECT job_id, count(*) AS tasks FROM named GROUP BY job_id) AS n ON n.job_id = j.id
         WHERE j.minimum > 0 AND j.placed - n.tasks < j.minimum
    ), falling AS (
        SELECT job_id, task FROM named UNION SELECT a.job_id, a.task FROM allocation a JOIN broken b ON b.id = a.job_id
    )
    SELECT coalesce(array_agg(job_id), '{}'), coalesce(array_agg(task), '{}') INTO jobs, tasks FROM falling;
    IF EXISTS (SELECT FROM quota) THEN
        PERFORM give_back_to_quotas(jobs, tasks, NULL);
    END IF;
    PERFORM 1 FROM machine
      WHERE id IN (SELECT a.machine_id FROM unnest(jobs, tasks) AS w (job_id, task) JOIN allocation a USING (job_id, task))
      ORDER BY id FOR NO KEY UPDATE;

    WITH ended AS (
        DELETE FROM allocation a USING unnest(jobs, tasks) AS w (job_id, task)
         WHERE a.job_id = w.job_id AND a.task = w.task
        RETURNING a.*
    ), room AS (
        UPDATE machine m
           SET {{ ${kind}_used = m.${kind}_used - e.${kind} }},
               revision = m.revision + 1,
               changed_by = pg_current_xact_id()
          FROM (SELECT machine_id, {{ sum(${kind}) AS ${kind} }} FROM ended GROUP BY machine_id) AS e
         WHERE m.id = e.machine_id
    ), told AS (
        INSERT INTO machine_change (machines) SELECT array_agg(DISTINCT machine_id) FROM ended HAVING count(*) > 0
    ), history AS (
        INSERT INTO ended_task (job_id, task, machine_id, started_at, cause)
        SELECT job_id, task, machine_id, started_at, _cause FROM ended
    )
    UPDATE job j
       SET placed = j.placed - e.tasks,
           unplaced = j.unplaced + e.unplaced,
           not_before = CASE WHEN j.state = 'running' THEN clock_timestamp() ELSE j.not_before END,
           state = CASE WHEN j.state = 'running' THEN 'pending' ELSE j.state END
      FROM (SELECT job_id, count(*) AS tasks, range_agg(int4range(task, task + 1)) AS unplaced FROM ended GROUP BY job_id) AS e
     WHERE j.id = e.job_id;
    PERFORM end_lost_helpers(jobs, tasks);
    RETURN cardinality(jobs);
END $$;

-- Evict what runs on machines that are down or gone; return how many tasks. No commit adds tasks meanwhile. If one of
-- the machines was opened again before its row was locked, nothing is done and the call must be repeated.
CREATE FUNCTION omega.lose_tasks(_machines integer[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    jobs bigint[];
    tasks integer[];
    starts timestamptz[];
    dead integer[];
    ended integer;
BEGIN
    PERFORM needs_read_committed();
    SELECT coalesce(array_agg(a.job_id), '{}'), coalesce(array_agg(a.task), '{}'), coalesce(array_agg(a.started_at), '{}'),
           array_agg(DISTINCT m.id)
      INTO jobs, tasks, starts, dead
      FROM allocation a JOIN machine m ON m.id = a.machine_id
     WHERE a.machine_id = ANY (_machines) AND m.state IN (2, 3);
    ended := force_end(jobs, tasks, starts, 'lost');
    -- The machines on which tasks were evicted are locked here.
    IF EXISTS (SELECT FROM machine m WHERE m.id = ANY (dead) AND m.state NOT IN (2, 3)) THEN
        RAISE EXCEPTION 'a machine was opened again meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN ended;
END $$;

-- The machines whose notice has ended or is no longer needed.
CREATE FUNCTION omega.notices_that_end()
RETURNS SETOF integer LANGUAGE sql STABLE AS $$
    SELECT m.id FROM omega.machine m
     WHERE m.notice IS NOT NULL
       AND (m.notice_ends_at <= clock_timestamp() OR {{ m.${kind}_used <= m.${kind}_capacity | AND }})
     ORDER BY m.id
$$;

-- Evict tasks above capacity from one machine whose notice has ended, and end the notice: lowest precedence first,
-- then latest start; a task that holds nothing of a kind in excess is left. If the machine changed before its row was
-- locked, nothing is done and the call must be repeated.
CREATE FUNCTION omega.enforce_notice(_machine integer)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    jobs bigint[];
    tasks integer[];
    starts timestamptz[];
    ended integer := 0;
    before bigint;    -- the machine's revision when the tasks were chosen
BEGIN
    PERFORM needs_read_committed();
    SELECT max(v.revision), coalesce(array_agg(v.job_id), '{}'), coalesce(array_agg(v.task), '{}'), coalesce(array_agg(v.started_at), '{}')
      INTO before, jobs, tasks, starts
      FROM (SELECT m.revision, a.job_id, a.task, a.started_at,
                   {{ (a.${kind} > 0 AND m.${kind}_used - coalesce(sum(a.${kind}) OVER before, 0) > m.${kind}_capacity) | OR }} AS is_over
              FROM machine m JOIN allocation a ON a.machine_id = m.id JOIN job j ON j.id = a.job_id
             WHERE m.id = _machine AND m.notice_ends_at <= clock_timestamp()
            WINDOW before AS (ORDER BY j.precedence, (extract(epoch FROM a.started_at) * 1000)::bigint DESC, a.job_id DESC, a.task DESC
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS v
     WHERE v.is_over;
    IF cardinality(jobs) > 0 THEN
        ended := force_end(jobs, tasks, starts, 'resized');
        IF EXISTS (SELECT FROM machine m WHERE m.id = _machine AND m.revision > before + 1) THEN
            RAISE EXCEPTION 'machine % has changed meanwhile', _machine USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    UPDATE machine m SET notice = NULL, notice_ends_at = NULL
     WHERE m.id = _machine AND m.notice IS NOT NULL AND {{ m.${kind}_used <= m.${kind}_capacity | AND }};
    RETURN ended;
END $$;
