-- How far jobs in steps have come: reported by nodes, read by whoever decides what runs next.

-- Record steps made and milliseconds run by these jobs, both since they were submitted. Values below those on record
-- change nothing, so that a report may come twice or late. The steps on record never exceed those wanted.
--
-- Jobs that are over or not in steps are passed over; so are, if the caller stands for some
-- machines only, those of which nothing runs on these: a gang may have moved on since it was seen.
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
    SELECT w.job_id, least(max(w.steps), max((s.wire #>> '{work,steps}')::bigint)), max(w.run_ms)
      FROM unnest(_jobs, _steps, _run_ms) AS w (job_id, steps, run_ms)
      JOIN job j ON j.id = w.job_id
      JOIN job_spec s ON s.job_id = w.job_id
     WHERE j.state NOT IN (${final_states}) AND s.wire -> 'work' <> 'null'
       AND (own = '{(,)}' OR EXISTS (SELECT FROM allocation a WHERE a.job_id = w.job_id AND own @> a.machine_id))
     GROUP BY w.job_id
     ORDER BY w.job_id  -- rows are locked in this order
    ON CONFLICT (job_id) DO UPDATE
       SET steps = greatest(p.steps, excluded.steps), run_ms = greatest(p.run_ms, excluded.run_ms)
     WHERE p.steps < excluded.steps OR p.run_ms < excluded.run_ms;
END $$;

-- Those of these jobs that are in steps, ascending: what kind of work, how far they have come, and since when all their
-- tasks run; -1 while not all do.
CREATE FUNCTION omega.read_progress(
    _jobs bigint[],
    OUT jobs bigint[], OUT kinds text[], OUT wanted bigint[], OUT done bigint[], OUT run_ms bigint[],
    OUT tasks integer[], OUT since_ms bigint[]
) LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(j.id ORDER BY j.id), '{}'),
           coalesce(array_agg(s.wire #>> '{work,kind}' ORDER BY j.id), '{}'),
           coalesce(array_agg((s.wire #>> '{work,steps}')::bigint ORDER BY j.id), '{}'),
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
     WHERE j.id = ANY (_jobs) AND s.wire -> 'work' <> 'null'
$$;
