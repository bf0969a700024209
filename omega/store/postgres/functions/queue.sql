-- The job queue. States and moves: omega/lifecycle/states.py. All times that processes compare are of this
-- server's clock. A call locks only jobs that it may change, so that a transaction that is left open holds up
-- no others.

-- Add jobs, all or none, in the wire form of omega/model/wire.py; return their ids, in order.
CREATE FUNCTION omega.submit_jobs(_specs jsonb)
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    wrong text;
BEGIN
    PERFORM needs_read_committed();
    IF jsonb_typeof(_specs) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'bad jobs: they are no list' USING ERRCODE = 'invalid_parameter_value';
    ELSIF jsonb_array_length(_specs) > ${jobs_per_submission_max} OR pg_column_size(_specs) > ${submission_bytes_max} THEN
        RAISE EXCEPTION 'bad jobs: they are more than ${jobs_per_submission_max}, or longer than ${submission_bytes_max} bytes'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT format('%s: %s', s.n, p.problem) INTO wrong
      FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (spec, n), problem_with_job(s.spec) AS p (problem)
     WHERE p.problem IS NOT NULL ORDER BY s.n LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'bad job %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN queue_jobs(_specs, NULL, NULL);
END $$;

-- Add jobs whose specs have been checked, perhaps of stages of a pipeline with the keys of these; return their ids, in order.
CREATE FUNCTION omega.queue_jobs(_specs jsonb, _pipeline bigint, _keys bigint[])
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    ids bigint[];
BEGIN
    PERFORM needs_incarnation();  -- the numbers of jobs of another must not come again
    WITH submitted AS MATERIALIZED (
        SELECT nextval(pg_get_serial_sequence('omega.job', 'id')) AS id, s.spec, coalesce(_keys[s.n], (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS order_key,
               (SELECT sum((g ->> 'tasks')::integer) FROM jsonb_array_elements(s.spec -> 'groups') AS g)::integer AS tasks
          FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (spec, n) ORDER BY s.n
    ), queued AS (
        INSERT INTO job (id, scheduler, precedence, tasks, minimum, unplaced, preemptible, workers_max, tenant,
                         lane_class, order_key, pipeline) OVERRIDING SYSTEM VALUE
        SELECT id, spec ->> 'scheduler', (spec ->> 'precedence')::integer, tasks,
               (spec ->> 'minimum')::integer, int4multirange(int4range(0, tasks)),
               coalesce((spec ->> 'preemptible')::boolean, true), (spec #>> '{workers,at_most}')::integer,
               spec ->> 'tenant', lane_class(spec), order_key, _pipeline
          FROM submitted
    ), described AS (
        INSERT INTO job_spec (job_id, name, tenant, needs_sibling_machines, group_starts, group_durations_ms, wire, demand)
        SELECT id, spec ->> 'name', spec ->> 'tenant', g.needs_sibling_machines, g.starts, g.durations_ms, spec,
               job_demand(spec -> 'groups')
          FROM submitted,
               LATERAL (SELECT bool_or(spread OR apart) AS needs_sibling_machines, array_agg(first ORDER BY n) AS starts,
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

-- Lease pending jobs of a kind, highest precedence first, then oldest, or if _by_key those of the smallest keys. With lanes, only their jobs are leased, of each lane
-- up to its count. The bytes of large jobs are limited, but one job is always leased. A row that is locked but exceeds the
-- byte limit stays pending.
CREATE FUNCTION omega.lease_jobs(
    _scheduler text, _holder text, _jobs_max integer, _lease_ms bigint,
    _tenants text[] DEFAULT NULL, _classes integer[] DEFAULT NULL, _counts integer[] DEFAULT NULL,  -- an entry per lane
    _by_key boolean DEFAULT false
)
RETURNS TABLE (
    id bigint, token uuid, wire jsonb, starts integer[], stops integer[], placed integer,
    fruitless integer, waited_ms bigint, age_ms bigint, sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    lasts interval;
    taken bigint[];
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    IF NOT is_name(_holder) THEN
        RAISE EXCEPTION 'bad lease: the name of its holder is empty, too long or not printable' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- In statements of their own: what is read of a job below is as it is now that its row is locked.
    IF _by_key THEN
        taken := ARRAY(SELECT id FROM job
                        WHERE scheduler = _scheduler AND state = 'pending' AND not_before <= clock_timestamp()
                        ORDER BY precedence DESC, order_key, id LIMIT at_most(_jobs_max) FOR NO KEY UPDATE SKIP LOCKED);
    ELSIF _tenants IS NULL THEN
        taken := ARRAY(SELECT id FROM job
                        WHERE scheduler = _scheduler AND state = 'pending' AND not_before <= clock_timestamp()
                        ORDER BY precedence DESC, id LIMIT at_most(_jobs_max) FOR NO KEY UPDATE SKIP LOCKED);
    ELSE
        taken := lock_in_lanes(_scheduler, at_most(_jobs_max), _tenants, _classes, _counts);
    END IF;
    IF taken = '{}' THEN
        RETURN;  -- idle schedulers ask often
    END IF;
    SELECT array_agg(t.id) FILTER (WHERE t.large = 0 OR t.bytes <= ${lease_bytes_max} OR t.bytes = t.large) INTO taken
      FROM (SELECT j.id, counted_bytes(s.wire_bytes) AS large,
                   sum(counted_bytes(s.wire_bytes)) OVER (ORDER BY j.n) AS bytes
              FROM unnest(taken) WITH ORDINALITY AS j (id, n) JOIN job_spec s ON s.job_id = j.id) AS t;
    RETURN QUERY
    WITH lease AS MATERIALIZED (
        SELECT clock_timestamp() AS start
    ), first AS MATERIALIZED (
        SELECT id FROM job WHERE id = ANY (taken) AND first_leased_at IS NULL
    ), leased AS (
        UPDATE job j
           SET state = 'planning', lease_token = gen_random_uuid(), lease_holder = _holder, lease_login = session_user,
               lease_expires_at = lease.start + lasts,
               first_leased_at = coalesce(j.first_leased_at, lease.start), attempts = j.attempts + 1
          FROM lease WHERE j.id = ANY (taken)
        RETURNING j.*, j.id IN (SELECT id FROM first) AS first, lease.start
    )
    SELECT l.id, l.lease_token, s.wire,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           l.placed, l.fruitless,
           CASE WHEN l.first THEN extract(epoch FROM l.start - l.submitted_at) * 1000 END::bigint,
           (extract(epoch FROM l.start - l.submitted_at) * 1000)::bigint,
           siblings.tasks, siblings.machines
      FROM leased l JOIN job_spec s ON s.job_id = l.id
      LEFT JOIN LATERAL (SELECT array_agg(a.task) AS tasks, array_agg(a.machine_id) AS machines
                           FROM allocation a WHERE a.job_id = l.id AND s.needs_sibling_machines AND l.placed > 0) AS siblings ON true
     ORDER BY l.precedence DESC, CASE WHEN _by_key THEN l.order_key END, l.id;
END $$;

-- Lock pending jobs of these lanes, of each lane up to its count by precedence, then age, and up to _jobs_max in all.
CREATE FUNCTION omega.lock_in_lanes(_scheduler text, _jobs_max integer, _tenants text[], _classes integer[], _counts integer[])
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT length_of(_tenants) = ALL (ARRAY[length_of(_classes), length_of(_counts)]) THEN
        RAISE EXCEPTION 'bad lanes: the arrays differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF cardinality(_tenants) > ${lanes_max} THEN
        RAISE EXCEPTION 'bad lanes: they are more than ${lanes_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN ARRAY(
        SELECT j.id
          FROM unnest(_tenants, _classes, _counts) AS w (tenant, class, count)
         CROSS JOIN LATERAL (
             SELECT id FROM job
              WHERE scheduler = _scheduler AND state = 'pending' AND tenant = w.tenant AND lane_class = w.class
                AND not_before <= clock_timestamp()
              ORDER BY precedence DESC, id LIMIT at_most(w.count) FOR NO KEY UPDATE SKIP LOCKED) AS j
         LIMIT _jobs_max);
END $$;

-- Prolong leases that are still held; return their jobs.
CREATE FUNCTION omega.renew_leases(_jobs bigint[], _tokens uuid[], _lease_ms bigint)
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    kept bigint[];
    lasts interval;
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    IF length_of(_jobs) <> length_of(_tokens) THEN
        RAISE EXCEPTION 'bad leases: jobs and tokens differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) AND lease_token = ANY (_tokens) ORDER BY id FOR NO KEY UPDATE;
    WITH renewed AS (
        UPDATE job j SET lease_expires_at = clock_timestamp() + lasts
          FROM unnest(_jobs, _tokens) AS w (id, token)
         WHERE j.id = w.id AND j.lease_token = w.token
        RETURNING j.id
    )
    SELECT coalesce(array_agg(id), '{}') INTO kept FROM renewed;
    RETURN kept;
END $$;

-- Give jobs back; return how many leases were still held. A job with unplaced tasks is pending after its delay, which
-- is at most the longest lease. A recalled job that has lost no task is running again. Helpers give up what is unplaced.
CREATE FUNCTION omega.hand_back_jobs(_jobs bigint[], _tokens uuid[], _delays_ms bigint[], _progressed boolean[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    returned integer;
BEGIN
    PERFORM needs_read_committed();
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_tokens), length_of(_delays_ms), length_of(_progressed)]) THEN
        RAISE EXCEPTION 'bad jobs: the arrays differ in length' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) AND lease_token = ANY (_tokens) ORDER BY id FOR NO KEY UPDATE;
    UPDATE job j
       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END, lease_token = NULL,
           not_before = clock_timestamp() + lease_length(w.delay_ms),
           fruitless = CASE WHEN w.progressed THEN 0 ELSE j.fruitless + 1 END
      FROM unnest(_jobs, _tokens, _delays_ms, _progressed) AS w (id, token, delay_ms, progressed)
     WHERE j.id = w.id AND j.lease_token = w.token;
    GET DIAGNOSTICS returned = ROW_COUNT;
    PERFORM give_up_helpers(_jobs);
    RETURN returned;
END $$;

-- Park jobs with a reason; return how many leases were still held. A job without unplaced tasks is running again, and so
-- is a helper, which gives up those that it has.
CREATE FUNCTION omega.park_jobs(_jobs bigint[], _tokens uuid[], _reasons text[], _details text[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    parked integer;
BEGIN
    PERFORM needs_read_committed();
    IF NOT length_of(_jobs) = ALL (ARRAY[length_of(_tokens), length_of(_reasons), length_of(_details)]) THEN
        RAISE EXCEPTION 'bad jobs: the arrays differ in length' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT _reasons <@ '{${park_reasons}}' THEN
        RAISE EXCEPTION 'bad reason: it is none of ${park_reasons}' USING ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (SELECT FROM unnest(_details) AS detail WHERE detail <> '' AND NOT can_name(detail, ${detail_length_max})) THEN
        RAISE EXCEPTION 'bad detail: it is longer than ${detail_length_max} characters, or cannot be printed'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM 1 FROM job WHERE id = ANY (_jobs) AND lease_token = ANY (_tokens) ORDER BY id FOR NO KEY UPDATE;
    UPDATE job j
       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'parked' END, lease_token = NULL,
           park_reason = CASE WHEN NOT isempty(j.unplaced) THEN w.reason END,
           park_detail = CASE WHEN NOT isempty(j.unplaced) THEN w.detail END,
           park_generation = (SELECT generation FROM cell)
      FROM unnest(_jobs, _tokens, _reasons, _details) AS w (id, token, reason, detail)
     WHERE j.id = w.id AND j.lease_token = w.token;
    GET DIAGNOSTICS parked = ROW_COUNT;
    PERFORM give_up_helpers(_jobs);
    RETURN parked;
END $$;

-- The first parked jobs of a kind that no user holds, by precedence, then age.
CREATE FUNCTION omega.parked_first(_scheduler text, _jobs_max integer)
RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT j.id FROM omega.job j WHERE j.scheduler = _scheduler AND j.state = 'parked' AND j.park_reason <> 'held'
     ORDER BY j.precedence DESC, j.id LIMIT _jobs_max
$$;

-- The first parked jobs of each lane of a kind that no user holds: of each lane _jobs_max divided by the number of lanes,
-- and at least one. A lane of which all jobs are held does not count.
CREATE FUNCTION omega.parked_in_lanes(_scheduler text, _jobs_max integer)
RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH lane AS MATERIALIZED (
        SELECT l.tenant, l.lane_class, count(*) OVER () AS lanes FROM omega.lanes_of(_scheduler, 'parked') AS l
         WHERE EXISTS (SELECT FROM omega.job j
                        WHERE j.scheduler = _scheduler AND j.state = 'parked' AND j.tenant = l.tenant
                          AND j.lane_class = l.lane_class AND j.park_reason <> 'held')
    )
    SELECT p.id
      FROM lane l
     CROSS JOIN LATERAL (
         SELECT j.id FROM omega.job j
          WHERE j.scheduler = _scheduler AND j.state = 'parked' AND j.tenant = l.tenant
            AND j.lane_class = l.lane_class AND j.park_reason <> 'held'
          ORDER BY j.precedence DESC, j.id LIMIT greatest(1, _jobs_max / l.lanes)) AS p
     LIMIT _jobs_max
$$;

-- Parked jobs of a kind that no user holds, highest precedence first, then oldest; with the byte limit of a lease. If
-- _by_lane, each lane has its part of _jobs_max (parked_in_lanes).
CREATE FUNCTION omega.parked_jobs(_scheduler text, _jobs_max integer, _by_lane boolean DEFAULT false)
RETURNS TABLE (
    id bigint, wire jsonb, reason text, placed integer, running integer, generation bigint,
    starts integer[], stops integer[], sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT j.id, j.wire, j.park_reason, j.placed, j.placed - j.ended, j.park_generation,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           siblings.tasks, siblings.machines
      FROM (SELECT p.*, sum(p.large) OVER (ORDER BY p.precedence DESC, p.id) AS bytes
              FROM (SELECT p.*, s.wire, counted_bytes(s.wire_bytes) AS large, s.needs_sibling_machines
                      FROM (SELECT * FROM parked_first(_scheduler, at_most(_jobs_max)) WHERE NOT _by_lane
                             UNION ALL
                            SELECT * FROM parked_in_lanes(_scheduler, at_most(_jobs_max)) WHERE _by_lane) AS f (id)
                      JOIN job p ON p.id = f.id JOIN job_spec s ON s.job_id = p.id) AS p) AS j
      LEFT JOIN LATERAL (SELECT array_agg(a.task) AS tasks, array_agg(a.machine_id) AS machines
                           FROM allocation a WHERE a.job_id = j.id AND j.needs_sibling_machines AND j.placed > 0) AS siblings ON true
     WHERE j.large = 0 OR j.bytes <= ${lease_bytes_max} OR j.bytes = j.large
     ORDER BY j.precedence DESC, j.id
$$;

-- Move parked jobs back to pending, but for held ones and those whose rows are locked; return the jobs moved, ascending.
CREATE FUNCTION omega.wake_jobs(_jobs bigint[])
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    woken bigint[];
BEGIN
    PERFORM needs_read_committed();
    WITH parked AS MATERIALIZED (
        SELECT id FROM job WHERE id = ANY (_jobs) AND state = 'parked' AND park_reason <> 'held'
         ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE job j SET state = 'pending', park_reason = NULL, park_detail = NULL, fruitless = 0,
                         not_before = clock_timestamp()
          FROM parked WHERE j.id = parked.id RETURNING j.id
    )
    SELECT coalesce(array_agg(id ORDER BY id), '{}') INTO woken FROM moved;
    RETURN woken;
END $$;

-- End expired leases; return their jobs. A job with unplaced tasks is pending again, another one is running.
CREATE FUNCTION omega.rescue_jobs()
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    jobs bigint[];
BEGIN
    PERFORM needs_read_committed();
    WITH expired AS MATERIALIZED (
        SELECT id FROM job WHERE state = 'planning' AND lease_expires_at <= clock_timestamp()
         ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    ), rescued AS (
        UPDATE job j SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END,
                         lease_token = NULL, not_before = clock_timestamp()
          FROM expired WHERE j.id = expired.id RETURNING j.id
    )
    SELECT coalesce(array_agg(id ORDER BY id), '{}') INTO jobs FROM rescued;
    PERFORM give_up_helpers(jobs);
    RETURN jobs;
END $$;
