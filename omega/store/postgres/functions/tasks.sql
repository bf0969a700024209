-- Ends of tasks, and cancelling of jobs. Lock order as in a commit: jobs, quotas, machines, each by id.

-- End those of these tasks that run, free their amounts, and finish the jobs whose last task has ended. With starts,
-- only allocations that began then are ended. The helpers of a finished job end with it; their tasks are not counted. If the
-- job is a stage of a pipeline, the stages after it are queued, or are skipped.
-- Revisions of machines rise and their sequences do not, so that an end causes no conflict.
CREATE FUNCTION omega.release_tasks(_jobs bigint[], _tasks integer[], _started_ms bigint[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp
-- Planning anew for each call makes the end of a single task take twice as long.
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    freed integer;
    limited boolean;
    helped boolean;       -- some of the jobs have helpers
    ending bigint[];      -- helpers that end with their parents
    more integer := 0;    -- how many tasks of helpers end
    stages bigint[];      -- those of the jobs that are stages of pipelines
    began timestamptz[];  -- when the first of the tasks began that end now, of each stage
BEGIN
    IF cardinality(_jobs) IS DISTINCT FROM cardinality(_tasks)
       OR _started_ms IS NOT NULL AND cardinality(_jobs) <> cardinality(_started_ms) THEN
        RAISE EXCEPTION 'jobs, tasks and starts differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(l.id) FILTER (WHERE l.pipeline IS NOT NULL) INTO stages
      FROM (SELECT id, pipeline FROM job
             WHERE id = ANY (_jobs || ARRAY(SELECT c.id FROM job c WHERE c.parent = ANY (_jobs) AND c.finished_at IS NULL))
             ORDER BY id FOR NO KEY UPDATE) AS l;
    IF stages IS NOT NULL THEN
        PERFORM lock_pipelines(stages);
        began := ARRAY(SELECT (SELECT min(a.started_at) FROM unnest(_jobs, _tasks) AS w (job_id, task)
                                 JOIN allocation a USING (job_id, task) WHERE w.job_id = s.id)
                         FROM unnest(stages) WITH ORDINALITY AS s (id, n) ORDER BY s.n);
    END IF;
    -- While the jobs' rows are locked, no other transaction places or ends a task of theirs, or gives them helpers.
    SELECT EXISTS (SELECT FROM quota), EXISTS (SELECT FROM job c WHERE c.parent = ANY (_jobs) AND c.finished_at IS NULL)
      INTO limited, helped;
    IF helped THEN
        -- Helpers that were added while this waited may come before a job that is locked: nobody is waited for here.
        PERFORM 1 FROM job c WHERE c.parent = ANY (_jobs) AND c.finished_at IS NULL ORDER BY c.id FOR NO KEY UPDATE NOWAIT;
        SELECT h.jobs, h.tasks, h.started_ms, h.ending, h.more INTO _jobs, _tasks, _started_ms, ending, more
          FROM with_helpers(_jobs, _tasks, _started_ms) AS h;
    END IF;
    IF limited THEN
        PERFORM give_back_to_quotas(_jobs, _tasks, _started_ms);
    END IF;
    PERFORM 1 FROM machine
      WHERE id IN (SELECT a.machine_id FROM unnest(_jobs, _tasks) AS w (job_id, task)
                     JOIN allocation a USING (job_id, task))
      ORDER BY id FOR NO KEY UPDATE;

    WITH ended AS (
        DELETE FROM allocation a
         USING (SELECT DISTINCT * FROM unnest(_jobs, _tasks, _started_ms)) AS w (job_id, task, started_ms)
         WHERE a.job_id = w.job_id AND a.task = w.task
           AND (_started_ms IS NULL OR w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint)
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
        INSERT INTO ended_task (job_id, task, machine_id, started_at)
        SELECT job_id, task, machine_id, started_at FROM ended
    ), progress AS (
        UPDATE job j
           SET ended = j.ended + e.tasks,
               state = CASE WHEN j.ended + e.tasks = j.tasks THEN CASE WHEN j.failed > 0 THEN 'failed' ELSE 'succeeded' END ELSE j.state END,
               lease_token = CASE WHEN j.ended + e.tasks < j.tasks THEN j.lease_token END,  -- of a recalled job
               finished_at = CASE WHEN j.ended + e.tasks = j.tasks THEN clock_timestamp() END
          FROM (SELECT job_id, count(*)::integer AS tasks FROM ended GROUP BY job_id) AS e
         WHERE j.id = e.job_id
    )
    SELECT count(*) INTO freed FROM ended;
    IF cardinality(ending) > 0 THEN
        PERFORM finish_helpers(ending, 'succeeded');
    END IF;
    IF stages IS NOT NULL THEN
        PERFORM end_stages(stages, ARRAY(SELECT (extract(epoch FROM clock_timestamp() - b.it) * 1000)::bigint
                                           FROM unnest(began) WITH ORDINALITY AS b (it, n) ORDER BY b.n), NULL);
    END IF;
    RETURN freed - more;
END $$;

-- Cancel a job and its helpers: their running tasks end, their unplaced tasks are dropped. False if it has ended. The stages
-- of its pipeline that come after it are skipped, before its tasks end, so that these do not queue them.
CREATE FUNCTION omega.cancel_job(_job bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    helpers bigint[];
    jobs bigint[];
    live integer[];
BEGIN
    PERFORM needs_read_committed();
    PERFORM 1 FROM job WHERE id = _job AND state NOT IN (${final_states}) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Helpers are made later than their parent, so that these locks too are in the order of ids.
    PERFORM 1 FROM job c WHERE c.parent = _job AND c.finished_at IS NULL ORDER BY c.id FOR NO KEY UPDATE;
    helpers := ARRAY(SELECT c.id FROM job c WHERE c.parent = _job AND c.finished_at IS NULL);
    SELECT coalesce(array_agg(a.job_id), '{}'), coalesce(array_agg(a.task), '{}') INTO jobs, live
      FROM allocation a WHERE a.job_id = ANY (_job || helpers);
    PERFORM lock_pipelines(ARRAY[_job]);
    PERFORM end_stages(ARRAY[_job], NULL, 'cancelled');
    PERFORM release_tasks(jobs, live, NULL);
    PERFORM finish_helpers(helpers, 'cancelled');
    UPDATE job SET state = 'cancelled', lease_token = NULL, park_reason = NULL, park_detail = NULL,
                   finished_at = clock_timestamp()
     WHERE id = _job;
    RETURN true;
END $$;
