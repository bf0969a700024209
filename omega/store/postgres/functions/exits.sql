-- What agents ask and report of the programs on their machines: whether something has changed, what runs, what it is, how
-- it ended and what it wrote. Every read is by a primary key. docs/decisions/0044-programs-and-agents.md

-- The revision of one of the caller's own machines, and the mark of the calling statement: agents ask for it often.
CREATE FUNCTION omega.machine_revision(_machine integer, OUT revision bigint, OUT mark bigint, OUT incarnation bigint)
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT stands_for(_machine) THEN
        PERFORM own_machines(NULL);  -- a caller without any machine is told so
        RAISE EXCEPTION 'machine % is none for which % stands', coalesce(_machine::text, 'null'), session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM needs_incarnation();
    SELECT m.revision, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, c.incarnation INTO revision, mark, incarnation
      FROM machine m CROSS JOIN cell c WHERE m.id = _machine;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no machine %', coalesce(_machine::text, 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- Refuse lists of tasks that differ in length or are longer than one call may name.
CREATE FUNCTION omega.needs_tasks(_jobs bigint[], _tasks integer[], _started_ms bigint[])
RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_tasks), length_of(_started_ms)]) THEN
        RAISE EXCEPTION 'jobs, tasks and starts differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF cardinality(_jobs) > ${tasks_per_release_max} THEN
        RAISE EXCEPTION 'bad tasks: a list of at most ${tasks_per_release_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- Of each of these tasks, whether the allocation that began then is still there, on one of the caller's own machines.
CREATE FUNCTION omega.are_running(_jobs bigint[], _tasks integer[], _started_ms bigint[])
RETURNS boolean[] LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    PERFORM needs_tasks(_jobs, _tasks, _started_ms);
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    -- A subquery for each task, because a join may be planned as a scan of all allocations.
    RETURN ARRAY(
        SELECT coalesce((SELECT own @> a.machine_id AND (extract(epoch FROM a.started_at) * 1000)::bigint = w.started_ms
                           FROM allocation a WHERE a.job_id = w.job_id AND a.task = w.task), false)
          FROM unnest(_jobs, _tasks, _started_ms) WITH ORDINALITY AS w (job_id, task, started_ms, n) ORDER BY w.n);
END $$;

-- What those of these jobs are that have a task on one of the caller's own machines, ascending; of other jobs a login
-- hears nothing. With the byte limit of a lease: a caller asks again for the rest.
CREATE FUNCTION omega.read_programs(_jobs bigint[])
RETURNS TABLE (id bigint, wire jsonb) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    IF length_of(_jobs) > ${tasks_per_release_max} THEN
        RAISE EXCEPTION 'bad jobs: a list of at most ${tasks_per_release_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    RETURN QUERY
    SELECT e.id, e.wire
      FROM (SELECT t.*, sum(t.large) OVER (ORDER BY t.id) AS bytes
              FROM (SELECT w.id, s.wire, counted_bytes(s.wire_bytes) AS large
                      FROM (SELECT DISTINCT u.id FROM unnest(_jobs) AS u (id)) AS w JOIN job_spec s ON s.job_id = w.id
                     WHERE (SELECT bool_or(own @> a.machine_id) FROM allocation a WHERE a.job_id = w.id)) AS t) AS e
     WHERE e.large = 0 OR e.bytes <= ${lease_bytes_max} OR e.bytes = e.large
     ORDER BY e.id;
END $$;

-- The addresses of the machines of those of these gangs that need all of their tasks and have one on the caller's own
-- machines: a row for each task that runs, and the name of a machine that has said no address. Of other jobs a login hears
-- nothing.
CREATE FUNCTION omega.read_addresses(_jobs bigint[])
RETURNS TABLE (job_id bigint, task integer, address text) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    IF length_of(_jobs) > ${tasks_per_release_max} THEN
        RAISE EXCEPTION 'bad jobs: a list of at most ${tasks_per_release_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    RETURN QUERY
    SELECT a.job_id, a.task, coalesce(p.address, p.name)
      FROM (SELECT DISTINCT u.id FROM unnest(_jobs) AS u (id)) AS w
      JOIN job j ON j.id = w.id AND j.minimum = j.tasks
      JOIN allocation a ON a.job_id = j.id
      JOIN machine_profile p ON p.id = a.machine_id
     WHERE (SELECT bool_or(own @> o.machine_id) FROM allocation o WHERE o.job_id = w.id)
     ORDER BY a.job_id, a.task;
END $$;

-- The reason why such exits cannot be recorded; null if there is none. A code is -1, and a signal 0, where there is none.
CREATE FUNCTION omega.problem_with_exits(
    _number integer, _causes text[], _codes integer[], _signals integer[], _restarts integer[], _details text[]
) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT _number = ALL (ARRAY[length_of(_causes), length_of(_codes), length_of(_signals), length_of(_restarts), length_of(_details)]) THEN
        RETURN 'tasks, causes, codes, signals, restarts and details differ in length';
    ELSIF NOT _causes <@ '{${exit_causes}}' THEN
        RETURN 'a cause is none of ${exit_causes}';
    ELSIF EXISTS (SELECT FROM unnest(_causes, _codes) AS e (cause, code)
                   WHERE e.code NOT BETWEEN -1 AND ${exit_code_max} OR (e.cause = 'exited') <> (e.code >= 0)) THEN
        RETURN 'a code is 0 to ${exit_code_max} of a program that exited, and -1 of others';
    ELSIF EXISTS (SELECT FROM unnest(_signals) AS s (it) WHERE s.it NOT BETWEEN 0 AND ${signal_max}) OR 0 > ANY (_restarts) THEN
        RETURN 'signals are 0 to ${signal_max}, and restarts not negative';
    ELSIF EXISTS (SELECT FROM unnest(_details) AS d (it) WHERE d.it <> '' AND NOT can_name(d.it, ${detail_length_max})) THEN
        RETURN 'a detail is longer than ${detail_length_max} characters, or cannot be printed';
    END IF;
    RETURN NULL;
END $$;

-- End those of these tasks whose allocation began then and runs, and record how their programs ended; return how many
-- there were. Changes nothing and raises an error if one of them runs on a machine that is not the caller's own. A job
-- whose last task ends has failed if one of its tasks has; a gang has failed as soon as one of its tasks has, and what
-- is left of it ends with that task. Lock order as in release_tasks.
CREATE FUNCTION omega.report_exits(
    _jobs bigint[], _tasks integer[], _started_ms bigint[],
    _causes text[], _codes integer[], _signals integer[], _restarts integer[], _details text[]
) RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp
-- Each task is found by its key, however many there are.
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    own int4multirange := '{(,)}';
    wrong text;
    recorded integer;
    ending bigint[];     -- jobs and tasks that end with this
    their_tasks integer[];
    broken bigint[];     -- gangs that fail with this
    helpers bigint[];    -- their helpers
BEGIN
    PERFORM needs_read_committed();
    PERFORM needs_tasks(_jobs, _tasks, _started_ms);
    wrong := problem_with_exits(cardinality(_jobs), _causes, _codes, _signals, _restarts, _details);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'bad exits: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    PERFORM lock_own_tasks(own, _jobs, _tasks, _started_ms);
    WITH told AS (
        SELECT DISTINCT ON (w.job_id, w.task)
               w.job_id, w.task, a.started_at, a.machine_id, w.cause, nullif(w.code, -1) AS code, nullif(w.signal, 0) AS signal,
               w.restarts, w.detail
          FROM unnest(_jobs, _tasks, _started_ms, _causes, _codes, _signals, _restarts, _details)
               WITH ORDINALITY AS w (job_id, task, started_ms, cause, code, signal, restarts, detail, n)
          JOIN allocation a USING (job_id, task)
         -- A task that was placed while this call waited for locks was not checked above.
         WHERE w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint AND own @> a.machine_id
         ORDER BY w.job_id, w.task, w.n
    ), kept AS (
        INSERT INTO task_exit (job_id, task, started_at, machine_id, cause, code, signal, restarts, detail)
        SELECT job_id, task, started_at, machine_id, cause, code, signal, restarts, detail FROM told
    ), counted AS (
        UPDATE job j SET failed = j.failed + f.tasks
          FROM (SELECT job_id, count(*)::integer AS tasks FROM told WHERE code IS DISTINCT FROM 0 GROUP BY job_id) AS f
         WHERE j.id = f.job_id
        RETURNING j.id, j.minimum
    )
    SELECT count(*), coalesce(array_agg(t.job_id), '{}'), coalesce(array_agg(t.task), '{}'),
           ARRAY(SELECT c.id FROM counted c WHERE c.minimum > 0)
      INTO recorded, ending, their_tasks, broken
      FROM told t;
    IF broken = '{}' THEN
        PERFORM release_tasks(ending, their_tasks, NULL);
        RETURN recorded;
    END IF;
    -- Helpers that were added while this waited may come before a job that is locked: nobody is waited for here.
    PERFORM 1 FROM job c WHERE c.parent = ANY (broken) AND c.finished_at IS NULL ORDER BY c.id FOR NO KEY UPDATE NOWAIT;
    helpers := ARRAY(SELECT c.id FROM job c WHERE c.parent = ANY (broken) AND c.finished_at IS NULL);
    SELECT coalesce(array_agg(e.job_id), '{}'), coalesce(array_agg(e.task), '{}') INTO ending, their_tasks
      FROM (SELECT * FROM unnest(ending, their_tasks) AS w (job_id, task)
            UNION SELECT a.job_id, a.task FROM allocation a WHERE a.job_id = ANY (broken || helpers)) AS e;
    PERFORM lock_pipelines(broken || ending);
    PERFORM end_stages(broken, NULL, 'failed');
    PERFORM release_tasks(ending, their_tasks, NULL);
    PERFORM finish_helpers(helpers, 'succeeded');
    UPDATE job SET state = 'failed', lease_token = NULL, park_reason = NULL, park_detail = NULL, finished_at = clock_timestamp()
     WHERE id = ANY (broken) AND finished_at IS NULL;
    RETURN recorded;
END $$;

-- Keep the ends of outputs of tasks that run on the caller's own machines, or whose exits were reported from there. Other
-- tasks are passed over. An earlier start never replaces a later one, nor fewer bytes more.
CREATE FUNCTION omega.report_outputs(
    _jobs bigint[], _tasks integer[], _started_ms bigint[], _streams text[], _bytes_total bigint[], _tails bytea[]
) RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp
-- Each task is found by its key, however many there are.
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    PERFORM needs_read_committed();
    PERFORM needs_tasks(_jobs, _tasks, _started_ms);
    IF NOT cardinality(_jobs) = ALL (ARRAY[length_of(_streams), length_of(_bytes_total), length_of(_tails)]) THEN
        RAISE EXCEPTION 'tasks, streams, bytes and tails differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT _streams <@ '{${streams}}' THEN
        RAISE EXCEPTION 'bad output: a stream is none of ${streams}' USING ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (SELECT FROM unnest(_bytes_total, _tails) AS o (bytes, tail)
                   WHERE octet_length(o.tail) > least(o.bytes, ${output_bytes_kept})) THEN
        RAISE EXCEPTION 'bad output: a tail is longer than all that was written, or than ${output_bytes_kept} bytes'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    INSERT INTO task_output AS o (job_id, task, stream, started_at, bytes_total, tail)
    SELECT DISTINCT ON (w.job_id, w.task, w.stream) w.job_id, w.task, w.stream, s.started_at, w.bytes_total, w.tail
      FROM unnest(_jobs, _tasks, _started_ms, _streams, _bytes_total, _tails)
           AS w (job_id, task, started_ms, stream, bytes_total, tail)
     CROSS JOIN LATERAL (
               SELECT a.started_at FROM allocation a
                WHERE a.job_id = w.job_id AND a.task = w.task AND own @> a.machine_id
                  AND (extract(epoch FROM a.started_at) * 1000)::bigint = w.started_ms
               UNION ALL
               SELECT e.started_at FROM task_exit e
                WHERE e.job_id = w.job_id AND e.task = w.task AND own @> e.machine_id
                  AND (extract(epoch FROM e.started_at) * 1000)::bigint = w.started_ms
               LIMIT 1) AS s
     ORDER BY w.job_id, w.task, w.stream, s.started_at DESC, w.bytes_total DESC  -- rows are locked in this order
    ON CONFLICT (job_id, task, stream) DO UPDATE
       SET started_at = excluded.started_at, bytes_total = excluded.bytes_total, tail = excluded.tail
     WHERE (o.started_at, o.bytes_total) < (excluded.started_at, excluded.bytes_total);
END $$;
