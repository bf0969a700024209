-- Elastic jobs: their helpers, and the activities that they have done. Helpers are tasks of a job that has a parent.
-- A helper that loses its place, or that finds none at once, is over: a job with a parent is never pending or parked.
-- docs/decisions/0043-elastic-jobs.md

-- Make a job of helpers for an elastic job that runs, or whose lease the caller holds, and lease it: at most so many
-- tasks of the parent's shape, and no more than the parent may have. No row if it may have none. The columns are those
-- of lease_jobs.
CREATE FUNCTION omega.add_helpers(
    _scheduler text, _holder text, _parent bigint, _tasks integer, _precedence integer, _lease_ms bigint
) RETURNS TABLE (
    id bigint, token uuid, wire jsonb, starts integer[], stops integer[], placed integer,
    fruitless integer, waited_ms bigint, age_ms bigint, sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    lasts interval;
    of job%ROWTYPE;
    described job_spec%ROWTYPE;
    added integer;
    made job%ROWTYPE;
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    IF NOT is_name(_holder) OR (_tasks BETWEEN 1 AND ${tasks_per_job_max}) IS NOT TRUE OR _precedence IS NULL THEN
        RAISE EXCEPTION 'bad helpers: they take the name of a holder, a precedence, and a number from 1 to ${tasks_per_job_max}'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO of FROM job j
     WHERE j.id = _parent AND j.scheduler = _scheduler AND j.workers_max IS NOT NULL
       AND (j.state = 'running' OR j.state = 'planning' AND j.lease_holder = _holder AND j.lease_login = session_user)
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    ELSIF _precedence >= of.precedence THEN
        RAISE EXCEPTION 'bad helpers: their precedence is not below that of job %', _parent USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- While the parent's row is locked, nobody else gives it helpers.
    SELECT least(_tasks, of.workers_max - of.tasks - coalesce(sum(c.tasks - c.ended), 0)) INTO added
      FROM job c WHERE c.parent = _parent AND c.finished_at IS NULL;
    IF added < 1 THEN
        RETURN;
    END IF;
    SELECT * INTO described FROM job_spec s WHERE s.job_id = _parent;
    INSERT INTO job AS j (scheduler, precedence, tasks, unplaced, parent, state, lease_token, lease_holder, lease_login,
                          lease_expires_at, first_leased_at, attempts, tenant, lane_class)
    VALUES (of.scheduler, _precedence, added, int4multirange(int4range(0, added)), _parent, 'planning', gen_random_uuid(), _holder,
            session_user, clock_timestamp() + lasts, clock_timestamp(), 1, of.tenant, of.lane_class)
    RETURNING j.* INTO made;
    INSERT INTO job_spec (job_id, name, tenant, needs_sibling_machines, group_starts, group_durations_ms, demand, wire)
    VALUES (made.id, described.name, described.tenant, false, described.group_starts, described.group_durations_ms,
            ARRAY(SELECT d.amount / of.tasks * added FROM unnest(described.demand) WITH ORDINALITY AS d (amount, n) ORDER BY d.n),
            described.wire || jsonb_build_object(
                'precedence', _precedence, 'minimum', 0, 'preemptible', true, 'workers', NULL,
                'groups', jsonb_build_array(described.wire #> '{groups,0}' || jsonb_build_object('tasks', added)
                    -- A helper takes what idles now.
                    || CASE WHEN described.wire #> '{groups,0}' ? 'patience_ms' THEN '{"patience_ms": 0}'::jsonb ELSE '{}' END)));
    RETURN QUERY
    SELECT made.id, made.lease_token, s.wire, ARRAY[0], ARRAY[made.tasks], 0, 0, NULL::bigint, 0::bigint, NULL::integer[], NULL::integer[]
      FROM job_spec s WHERE s.job_id = made.id;
END $$;

-- End those of these tasks that run and are helpers of jobs of this kind; return how many.
CREATE FUNCTION omega.end_helpers(_scheduler text, _jobs bigint[], _tasks integer[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF length_of(_jobs) <> length_of(_tasks) THEN
        RAISE EXCEPTION 'jobs and tasks differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT coalesce(array_agg(w.id), '{}'), coalesce(array_agg(w.task), '{}') INTO _jobs, _tasks
      FROM unnest(_jobs, _tasks) AS w (id, task) JOIN job j USING (id)
     WHERE j.parent IS NOT NULL AND j.scheduler = _scheduler
       AND NOT (j.state = 'planning' AND j.lease_login <> session_user);
    RETURN release_tasks(_jobs, _tasks, NULL);
END $$;

-- What is unplaced of those of these jobs that are helpers is over, if nobody holds a lease. The rows are locked.
CREATE FUNCTION omega.give_up_helpers(_jobs bigint[])
RETURNS void LANGUAGE sql SET search_path = omega, pg_temp AS $$
    UPDATE job j
       SET ended = j.ended + j.tasks - j.placed, placed = j.tasks, unplaced = '{}',
           state = CASE WHEN j.ended < j.placed THEN 'running' WHEN j.failed > 0 THEN 'failed' ELSE 'succeeded' END,
           finished_at = CASE WHEN j.ended = j.placed THEN clock_timestamp() END,
           park_reason = NULL, park_detail = NULL
     WHERE j.id = ANY (_jobs) AND j.parent IS NOT NULL AND j.state IN ('pending', 'parked')
$$;

-- Those of these tasks that are helpers and have just lost their places are over. The rows are locked.
CREATE FUNCTION omega.end_lost_helpers(_jobs bigint[], _tasks integer[])
RETURNS void LANGUAGE sql SET search_path = omega, pg_temp AS $$
    UPDATE job j
       SET unplaced = j.unplaced - lost.places, placed = j.placed + lost.tasks, ended = j.ended + lost.tasks,
           state = CASE WHEN j.ended + lost.tasks = j.tasks THEN CASE WHEN j.failed > 0 THEN 'failed' ELSE 'succeeded' END
                        WHEN j.state = 'pending' THEN 'running' ELSE j.state END,
           lease_token = CASE WHEN j.ended + lost.tasks < j.tasks THEN j.lease_token END,
           finished_at = CASE WHEN j.ended + lost.tasks = j.tasks THEN clock_timestamp() END
      FROM (SELECT w.id, count(*)::integer AS tasks, range_agg(int4range(w.task, w.task + 1)) AS places
              FROM (SELECT DISTINCT u.id, u.task FROM unnest(_jobs, _tasks) AS u (id, task)) AS w JOIN job o USING (id)
             WHERE o.parent IS NOT NULL AND o.unplaced @> w.task GROUP BY w.id) AS lost
     WHERE j.id = lost.id
$$;

-- These helpers, of which no task runs, end as their parents have; those of whose tasks one has failed have failed
-- themselves, unless they are cancelled. The rows are locked.
CREATE FUNCTION omega.finish_helpers(_helpers bigint[], _state text)
RETURNS void LANGUAGE sql SET search_path = omega, pg_temp AS $$
    UPDATE job SET ended = tasks, placed = tasks, unplaced = '{}', lease_token = NULL,
                   state = CASE WHEN _state = 'succeeded' AND failed > 0 THEN 'failed' ELSE _state END,
                   finished_at = clock_timestamp()
     WHERE id = ANY (_helpers)
$$;

-- Tasks that are about to end, and, of jobs of which they are the last, all tasks of helpers: `ending` are these
-- helpers, and `more` is the number of their tasks that were not named. With starts, as in release_tasks.
CREATE FUNCTION omega.with_helpers(
    _jobs bigint[], _tasks integer[], _started_ms bigint[],
    OUT jobs bigint[], OUT tasks integer[], OUT started_ms bigint[], OUT ending bigint[], OUT more integer
) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    WITH meant AS MATERIALIZED (
        SELECT DISTINCT a.job_id, a.task, a.started_at
          FROM unnest(_jobs, _tasks, _started_ms) AS w (job_id, task, started_ms) JOIN allocation a USING (job_id, task)
         WHERE _started_ms IS NULL OR w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint
    ), over AS (
        SELECT c.id
          FROM (SELECT job_id, count(*) AS tasks FROM meant GROUP BY job_id) AS m JOIN job j ON j.id = m.job_id
          JOIN job c ON c.parent = j.id AND c.finished_at IS NULL
         WHERE j.ended + m.tasks = j.tasks
    ), helping AS (
        SELECT a.job_id, a.task, a.started_at FROM over o JOIN allocation a ON a.job_id = o.id
    ), together AS (
        SELECT * FROM meant UNION SELECT * FROM helping
    )
    SELECT coalesce(array_agg(t.job_id), '{}'), coalesce(array_agg(t.task), '{}'),
           CASE WHEN _started_ms IS NOT NULL THEN coalesce(array_agg((extract(epoch FROM t.started_at) * 1000)::bigint), '{}') END,
           ARRAY(SELECT id FROM over), (count(*) - (SELECT count(*) FROM meant))::integer
      FROM together t
$$;

-- Elastic jobs of a kind that go on, oldest first: whether all their tasks run, their helpers that go on, and what is
-- done of each phase. With the byte limit of a lease.
CREATE FUNCTION omega.elastic_jobs(_scheduler text, _jobs_max integer)
RETURNS TABLE (
    id bigint, wire jsonb, runs boolean, helpers bigint[], helping integer, done bigint[], busy_ms bigint[]
) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT e.id, e.wire, e.state = 'running', h.ids, h.tasks, p.done, p.busy_ms
      FROM (SELECT t.*, sum(t.large) OVER (ORDER BY t.id) AS bytes
              FROM (SELECT j.id, j.state, s.wire, counted_bytes(s.wire_bytes) AS large
                      FROM job j JOIN job_spec s ON s.job_id = j.id
                     WHERE j.scheduler = _scheduler AND j.workers_max IS NOT NULL AND j.finished_at IS NULL
                     ORDER BY j.id LIMIT at_most(_jobs_max)) AS t) AS e
     CROSS JOIN LATERAL (SELECT coalesce(array_agg(c.id ORDER BY c.id), '{}') AS ids,
                                coalesce(sum(c.tasks - c.ended), 0)::integer AS tasks
                           FROM job c WHERE c.parent = e.id AND c.finished_at IS NULL) AS h
     CROSS JOIN LATERAL (SELECT coalesce(array_agg(coalesce(q.done, 0) ORDER BY n.n), '{}') AS done,
                                coalesce(array_agg(coalesce(q.busy_ms, 0) ORDER BY n.n), '{}') AS busy_ms
                           FROM generate_series(0, jsonb_array_length(e.wire #> '{workers,phases}') - 1) AS n (n)
                           LEFT JOIN phase_progress q ON q.job_id = e.id AND q.phase = n.n) AS p
     WHERE e.large = 0 OR e.bytes <= ${lease_bytes_max} OR e.bytes = e.large
     ORDER BY e.id
$$;

-- Record the activities that elastic jobs have done in a phase, and the time that workers took for them, both since the
-- job was submitted. Values below those on record change nothing. Jobs that are over or have no such phase are passed
-- over; so are, if the caller stands for some machines only, those of which neither a task nor a helper runs on these.
CREATE FUNCTION omega.report_phases(_jobs bigint[], _phases integer[], _done bigint[], _busy_ms bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    PERFORM needs_read_committed();
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_phases), length_of(_done), length_of(_busy_ms)]) THEN
        RAISE EXCEPTION 'jobs, phases, activities and times differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF 0 > ANY (_phases) OR 0 > ANY (_done) OR 0 > ANY (_busy_ms) THEN
        RAISE EXCEPTION 'bad progress: phases, activities and times are not negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    INSERT INTO phase_progress AS p (job_id, phase, done, busy_ms)
    SELECT w.job_id, w.phase, least(max(w.done), max((f.it ->> 'activities')::bigint)),
           least(max(w.busy_ms), max((f.it ->> 'activities')::bigint) * ${duration_ms_max})
      FROM unnest(_jobs, _phases, _done, _busy_ms) AS w (job_id, phase, done, busy_ms)
      JOIN job j ON j.id = w.job_id
      JOIN job_spec s ON s.job_id = w.job_id
     CROSS JOIN LATERAL (SELECT s.wire #> ARRAY['workers', 'phases', w.phase::text] AS it) AS f
     WHERE j.finished_at IS NULL AND j.workers_max IS NOT NULL AND f.it IS NOT NULL
       AND (own = '{(,)}'
            OR EXISTS (SELECT FROM allocation a WHERE a.job_id = w.job_id AND own @> a.machine_id)
            OR EXISTS (SELECT FROM job c JOIN allocation a ON a.job_id = c.id
                        WHERE c.parent = w.job_id AND c.finished_at IS NULL AND own @> a.machine_id))
     GROUP BY w.job_id, w.phase
     ORDER BY w.job_id, w.phase  -- rows are locked in this order
    ON CONFLICT (job_id, phase) DO UPDATE
       SET done = greatest(p.done, excluded.done), busy_ms = greatest(p.busy_ms, excluded.busy_ms)
     WHERE p.done < excluded.done OR p.busy_ms < excluded.busy_ms;
END $$;

-- Of these jobs, those with phases and those that help such a job, ascending: the elastic job itself, its phases as they
-- were submitted, what is done of each, and its helpers that go on.
CREATE FUNCTION omega.read_phases(_jobs bigint[])
RETURNS TABLE (id bigint, elastic bigint, phases jsonb, done bigint[], busy_ms bigint[], helpers bigint[])
LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT j.id, s.job_id, s.wire #> '{workers,phases}', p.done, p.busy_ms,
           ARRAY(SELECT c.id FROM job c WHERE c.parent = s.job_id AND c.finished_at IS NULL ORDER BY c.id)
      FROM job j JOIN job_spec s ON s.job_id = coalesce(j.parent, j.id)
     CROSS JOIN LATERAL (SELECT array_agg(coalesce(q.done, 0) ORDER BY n.n) AS done, array_agg(coalesce(q.busy_ms, 0) ORDER BY n.n) AS busy_ms
                           FROM generate_series(0, jsonb_array_length(s.wire #> '{workers,phases}') - 1) AS n (n)
                           LEFT JOIN phase_progress q ON q.job_id = s.job_id AND q.phase = n.n) AS p
     WHERE j.id = ANY (_jobs) AND (j.parent IS NOT NULL OR j.workers_max IS NOT NULL)
       AND s.wire #> '{workers,phases}' <> '[]'
     ORDER BY j.id
$$;
