-- Rounds: one kind of scheduler plans all its jobs at once, again and again. Who plans the next one, and
-- what it is to know, is told here, so that any replica can be the next.

-- Begin the next round if the last one is over, by its own length or by ours if that is shorter: its number,
-- its beginning, and of the last one what it noted and who held it. Otherwise the number is null, and it is told in how many milliseconds it will be.
CREATE FUNCTION omega.begin_round(
    _scheduler text, _holder text, _length_ms bigint,
    OUT number bigint, OUT began_ms bigint, OUT memo jsonb, OUT before text, OUT due_in_ms bigint
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT is_name(to_jsonb(_scheduler)) OR NOT is_name(to_jsonb(_holder)) THEN
        RAISE EXCEPTION 'bad round: it takes the names of a kind of scheduler and of a holder' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT r.holder INTO before FROM round r WHERE r.scheduler = _scheduler FOR UPDATE;
    before := coalesce(before, '');
    INSERT INTO round AS r (scheduler, number, holder, began_at, ends_at)
    VALUES (_scheduler, 1, _holder, clock_timestamp(), clock_timestamp() + milliseconds(_length_ms))
        ON CONFLICT (scheduler) DO UPDATE
       SET number = r.number + 1, holder = excluded.holder, began_at = clock_timestamp(),
           ends_at = clock_timestamp() + milliseconds(_length_ms)
     WHERE least(r.ends_at, r.began_at + milliseconds(_length_ms)) <= clock_timestamp()
    RETURNING r.number, (extract(epoch FROM r.began_at) * 1000)::bigint, r.memo INTO number, began_ms, memo;
    IF NOT FOUND THEN
        SELECT greatest(0, extract(epoch FROM least(r.ends_at, r.began_at + milliseconds(_length_ms))
                                      - clock_timestamp()) * 1000)::bigint INTO due_in_ms
          FROM round r WHERE r.scheduler = _scheduler;
    END IF;
END $$;

-- Keep what the next round is to know, unless it has begun already; whether it is kept.
CREATE FUNCTION omega.note_round(_scheduler text, _number bigint, _memo jsonb)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    IF coalesce(jsonb_typeof(_memo) <> 'object', true) OR octet_length(_memo::text) > ${memo_bytes_max} THEN
        RAISE EXCEPTION 'bad memo: it is no object, or longer than ${memo_bytes_max} bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE round r SET memo = _memo WHERE r.scheduler = _scheduler AND r.number = _number;
    RETURN FOUND;
END $$;

-- Lease those of the jobs, or of all if they are null, that are of this kind and run, or are still leased to
-- who held the round before; what runs runs on, and each tells where. The columns are those of lease_jobs.
CREATE FUNCTION omega.recall_jobs(_scheduler text, _jobs bigint[], _holder text, _lease_ms bigint, _before text)
RETURNS TABLE (
    id bigint, token uuid, wire jsonb, starts integer[], stops integer[], placed integer,
    fruitless integer, waited_ms bigint, sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE sql SET search_path = omega, pg_temp AS $$
    WITH running AS MATERIALIZED (
        SELECT j.id FROM job j
         WHERE (_jobs IS NULL OR j.id = ANY (_jobs)) AND j.scheduler = _scheduler
           AND (j.state = 'running' OR j.state = 'planning' AND j.lease_holder = _before)
         ORDER BY j.id FOR NO KEY UPDATE
    ), leased AS (
        UPDATE job j
           SET state = 'planning', lease_token = gen_random_uuid(), lease_holder = _holder,
               lease_expires_at = clock_timestamp() + milliseconds(_lease_ms)
          FROM running WHERE j.id = running.id
        RETURNING j.*
    )
    SELECT l.id, l.lease_token, s.wire,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(l.unplaced) AS r), l.placed, l.fruitless, NULL::bigint,
           siblings.tasks, siblings.machines
      FROM leased l JOIN job_spec s ON s.job_id = l.id,
           LATERAL (SELECT array_agg(a.task ORDER BY a.task) AS tasks, array_agg(a.machine_id ORDER BY a.task) AS machines
                      FROM allocation a WHERE a.job_id = l.id) AS siblings
     ORDER BY l.id
$$;

-- Those of the jobs that are not over.
CREATE FUNCTION omega.unfinished_jobs(_jobs bigint[])
RETURNS bigint[] LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT coalesce(array_agg(id), '{}') FROM job WHERE id = ANY (_jobs) AND state NOT IN ('succeeded', 'cancelled')
$$;
