-- The job queue. States and moves: omega/lifecycle/states.py. Every time that processes compare
-- comes from this server's clock.

-- Add jobs, all or none, in the wire form of omega/model/wire.py; their ids, in order.
CREATE FUNCTION omega.submit_jobs(_specs jsonb)
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    ids bigint[];
    wrong text;
BEGIN
    IF jsonb_typeof(_specs) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'bad jobs: they are no list' USING ERRCODE = 'invalid_parameter_value';
    ELSIF jsonb_array_length(_specs) > ${jobs_per_submission_max} THEN
        RAISE EXCEPTION 'bad jobs: they are more than ${jobs_per_submission_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT format('%s: %s', s.n, p.problem) INTO wrong
      FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (spec, n), problem_with_job(s.spec) AS p (problem)
     WHERE p.problem IS NOT NULL ORDER BY s.n LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'bad job %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH submitted AS MATERIALIZED (
        SELECT nextval(pg_get_serial_sequence('omega.job', 'id')) AS id, s.spec,
               (SELECT sum((g ->> 'tasks')::integer) FROM jsonb_array_elements(s.spec -> 'groups') AS g)::integer AS tasks
          FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (spec, n) ORDER BY s.n
    ), queued AS (
        INSERT INTO job (id, scheduler, precedence, tasks, minimum, unplaced) OVERRIDING SYSTEM VALUE
        SELECT id, spec ->> 'scheduler', (spec ->> 'precedence')::integer, tasks,
               (spec ->> 'minimum')::integer, int4multirange(int4range(0, tasks))
          FROM submitted
    ), described AS (
        INSERT INTO job_spec (job_id, name, tenant, sited, group_starts, group_durations_ms, wire)
        SELECT id, spec ->> 'name', spec ->> 'tenant', g.sited, g.starts, g.durations_ms, spec
          FROM submitted,
               LATERAL (SELECT bool_or(spread OR apart) AS sited, array_agg(first ORDER BY n) AS starts,
                               array_agg(duration_ms ORDER BY n) AS durations_ms
                          FROM (SELECT n, (e ->> 'duration_ms')::bigint AS duration_ms,
                                       e ->> 'spread_over' IS NOT NULL AS spread,
                                       (e ->> 'different_machines')::boolean AS apart,
                                       coalesce(sum((e ->> 'tasks')::integer) OVER (ORDER BY n ROWS
                                           BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::integer AS first
                                  FROM jsonb_array_elements(spec -> 'groups') WITH ORDINALITY AS x (e, n)) AS y) AS g
    )
    SELECT coalesce(array_agg(id ORDER BY id), '{}') INTO ids FROM submitted;
    RETURN ids;
END $$;

-- Take pending jobs of a kind, highest precedence first, then oldest.
CREATE FUNCTION omega.lease_jobs(_scheduler text, _holder text, _jobs_max integer, _lease_ms bigint)
RETURNS TABLE (
    id bigint, token uuid, wire jsonb, starts integer[], stops integer[], placed integer,
    fruitless integer, waited_ms bigint, sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE sql SET search_path = omega, pg_temp AS $$
    WITH taken AS MATERIALIZED (
        SELECT j.id, j.first_leased_at IS NULL AS first FROM job j
         WHERE j.scheduler = _scheduler AND j.state = 'pending' AND j.not_before <= clock_timestamp()
         ORDER BY j.precedence DESC, j.id LIMIT at_most(_jobs_max) FOR NO KEY UPDATE SKIP LOCKED
    ), lease AS MATERIALIZED (
        SELECT clock_timestamp() AS start
    ), leased AS (
        UPDATE job j
           SET state = 'planning', lease_token = gen_random_uuid(), lease_holder = _holder,
               lease_expires_at = lease.start + milliseconds(_lease_ms),
               first_leased_at = coalesce(j.first_leased_at, lease.start), attempts = j.attempts + 1
          FROM taken, lease WHERE j.id = taken.id
        RETURNING j.*, taken.first, lease.start
    )
    SELECT l.id, l.lease_token, s.wire,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           l.placed, l.fruitless,
           CASE WHEN l.first THEN extract(epoch FROM l.start - l.submitted_at) * 1000 END::bigint,
           siblings.tasks, siblings.machines
      FROM leased l JOIN job_spec s ON s.job_id = l.id
      LEFT JOIN LATERAL (SELECT array_agg(a.task) AS tasks, array_agg(a.machine_id) AS machines
                           FROM allocation a WHERE a.job_id = l.id AND s.sited AND l.placed > 0) AS siblings ON true
     ORDER BY l.precedence DESC, l.id
$$;

-- Prolong leases that are still held; the jobs they are for.
CREATE FUNCTION omega.renew_leases(_jobs bigint[], _tokens uuid[], _lease_ms bigint)
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    kept bigint[];
BEGIN
    IF length_of(_jobs) <> length_of(_tokens) THEN
        RAISE EXCEPTION 'bad leases: jobs and tokens differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE;
    WITH renewed AS (
        UPDATE job j SET lease_expires_at = clock_timestamp() + milliseconds(_lease_ms)
          FROM unnest(_jobs, _tokens) AS w (id, token)
         WHERE j.id = w.id AND j.lease_token = w.token
        RETURNING j.id
    )
    SELECT coalesce(array_agg(id), '{}') INTO kept FROM renewed;
    RETURN kept;
END $$;

-- Give jobs back; how many were still held. Those with tasks left wait in line, a recalled one that has lost
-- nothing goes on.
CREATE FUNCTION omega.hand_back_jobs(_jobs bigint[], _tokens uuid[], _delays_ms bigint[], _progressed boolean[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    returned integer;
BEGIN
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_tokens), length_of(_delays_ms), length_of(_progressed)]) THEN
        RAISE EXCEPTION 'bad jobs: the arrays differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE;
    UPDATE job j
       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END, lease_token = NULL,
           not_before = clock_timestamp() + milliseconds(w.delay_ms),
           fruitless = CASE WHEN w.progressed THEN 0 ELSE j.fruitless + 1 END
      FROM unnest(_jobs, _tokens, _delays_ms, _progressed) AS w (id, token, delay_ms, progressed)
     WHERE j.id = w.id AND j.lease_token = w.token;
    GET DIAGNOSTICS returned = ROW_COUNT;
    RETURN returned;
END $$;

-- Set jobs aside with a reason, but for those that have lost nothing; how many were still held.
CREATE FUNCTION omega.park_jobs(_jobs bigint[], _tokens uuid[], _reasons text[], _details text[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    parked integer;
BEGIN
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_tokens), length_of(_reasons), length_of(_details)]) THEN
        RAISE EXCEPTION 'bad jobs: the arrays differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT _reasons <@ '{${park_reasons}}' THEN
        RAISE EXCEPTION 'bad reason: it is none of ${park_reasons}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE;
    UPDATE job j
       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'parked' END, lease_token = NULL,
           park_reason = CASE WHEN NOT isempty(j.unplaced) THEN w.reason END,
           park_detail = CASE WHEN NOT isempty(j.unplaced) THEN w.detail END,
           park_generation = (SELECT generation FROM cell)
      FROM unnest(_jobs, _tokens, _reasons, _details) AS w (id, token, reason, detail)
     WHERE j.id = w.id AND j.lease_token = w.token;
    GET DIAGNOSTICS parked = ROW_COUNT;
    RETURN parked;
END $$;

-- Parked jobs of a kind, highest precedence first, then oldest.
CREATE FUNCTION omega.parked_jobs(_scheduler text, _jobs_max integer)
RETURNS TABLE (
    id bigint, wire jsonb, reason text, placed integer, running integer, generation bigint,
    starts integer[], stops integer[], sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT j.id, s.wire, j.park_reason, j.placed, j.placed - j.ended, j.park_generation,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           siblings.tasks, siblings.machines
      FROM job j JOIN job_spec s ON s.job_id = j.id
      LEFT JOIN LATERAL (SELECT array_agg(a.task) AS tasks, array_agg(a.machine_id) AS machines
                           FROM allocation a WHERE a.job_id = j.id AND s.sited AND j.placed > 0) AS siblings ON true
     WHERE j.scheduler = _scheduler AND j.state = 'parked'
     ORDER BY j.precedence DESC, j.id LIMIT at_most(_jobs_max)
$$;

-- Put parked jobs back into the queue; how many were parked.
CREATE FUNCTION omega.wake_jobs(_jobs bigint[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    woken integer;
BEGIN
    PERFORM 1 FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE;
    UPDATE job SET state = 'pending', park_reason = NULL, park_detail = NULL, fruitless = 0,
                   not_before = clock_timestamp()
     WHERE id = ANY (_jobs) AND state = 'parked';
    GET DIAGNOSTICS woken = ROW_COUNT;
    RETURN woken;
END $$;

-- End the leases that have run out; of which jobs. With tasks left, they are in line again.
CREATE FUNCTION omega.rescue_jobs()
RETURNS bigint[] LANGUAGE sql SET search_path = omega, pg_temp AS $$
    WITH expired AS MATERIALIZED (
        SELECT id FROM job WHERE state = 'planning' AND lease_expires_at <= clock_timestamp()
         ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    ), rescued AS (
        UPDATE job j SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END,
                         lease_token = NULL, not_before = clock_timestamp()
          FROM expired WHERE j.id = expired.id RETURNING j.id
    )
    SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM rescued
$$;
