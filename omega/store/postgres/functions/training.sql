-- How far training jobs have come: reported by nodes, read by whoever decides what runs next.

-- Record steps made and milliseconds run by these jobs, both since they were submitted. Values below those on record
-- change nothing, so that a report may come twice or late. The steps on record never exceed those wanted.
--
-- Jobs that have ended or do not train are skipped. If the caller stands for some machines only, so are jobs without a
-- running task on these, because a gang may have moved since the caller read it.
CREATE FUNCTION omega.report_progress(_jobs bigint[], _steps bigint[], _run_ms bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    own int4multirange := '{(,)}';
BEGIN
    PERFORM needs_read_committed();
    IF length_of(_jobs) <> length_of(_steps) OR length_of(_jobs) <> length_of(_run_ms) THEN
        RAISE EXCEPTION 'jobs, steps and times differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF 0 > ANY (_steps) OR 0 > ANY (_run_ms) OR ${steps_max} < ANY (_run_ms) THEN
        RAISE EXCEPTION 'bad progress: steps and times are not negative, and times no more than ${steps_max} ms' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
    END IF;
    INSERT INTO progress AS p (job_id, steps, run_ms)
    SELECT w.job_id, least(max(w.steps), max((s.wire #>> '{training,steps}')::bigint)), max(w.run_ms)
      FROM unnest(_jobs, _steps, _run_ms) AS w (job_id, steps, run_ms)
      JOIN job j ON j.id = w.job_id
      JOIN job_spec s ON s.job_id = w.job_id
     WHERE j.state NOT IN ('succeeded', 'cancelled') AND s.wire -> 'training' <> 'null'
       AND (own = '{(,)}' OR EXISTS (SELECT FROM allocation a WHERE a.job_id = w.job_id AND own @> a.machine_id))
     GROUP BY w.job_id
     ORDER BY w.job_id  -- rows are locked in this order
    ON CONFLICT (job_id) DO UPDATE
       SET steps = greatest(p.steps, excluded.steps), run_ms = greatest(p.run_ms, excluded.run_ms)
     WHERE p.steps < excluded.steps OR p.run_ms < excluded.run_ms;
END $$;

-- Those of these jobs that train, ascending: the model, the progress, and since when all tasks run; -1 unless all do.
CREATE FUNCTION omega.read_training(
    _jobs bigint[],
    OUT jobs bigint[], OUT models text[], OUT wanted bigint[], OUT done bigint[], OUT run_ms bigint[],
    OUT tasks integer[], OUT since_ms bigint[]
) LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(j.id ORDER BY j.id), '{}'),
           coalesce(array_agg(s.wire #>> '{training,model}' ORDER BY j.id), '{}'),
           coalesce(array_agg((s.wire #>> '{training,steps}')::bigint ORDER BY j.id), '{}'),
           coalesce(array_agg(coalesce(p.steps, 0) ORDER BY j.id), '{}'),
           coalesce(array_agg(coalesce(p.run_ms, 0) ORDER BY j.id), '{}'),
           coalesce(array_agg(j.tasks ORDER BY j.id), '{}'),
           coalesce(array_agg(CASE WHEN live.tasks = j.tasks THEN (extract(epoch FROM live.since) * 1000)::bigint
                                   ELSE -1 END ORDER BY j.id), '{}')
      FROM omega.job j
      JOIN omega.job_spec s ON s.job_id = j.id
      LEFT JOIN omega.progress p ON p.job_id = j.id
     CROSS JOIN LATERAL (SELECT count(*) AS tasks, max(a.started_at) AS since
                           FROM omega.allocation a WHERE a.job_id = j.id) AS live
     WHERE j.id = ANY (_jobs) AND s.wire -> 'training' <> 'null'
$$;
