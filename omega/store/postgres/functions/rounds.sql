-- Rounds: one kind of scheduler plans all its jobs at once, repeatedly. The row of the kind has the holder of the
-- last round and its memo, so that any replica can plan the next one.

-- Milliseconds until a kind's next round may begin; null if it had none. The last round is over after its own length,
-- or after the next one's if that is shorter; for another login it lasts at least a second.
CREATE FUNCTION omega.round_ends_in(_scheduler text, _lasts interval)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT greatest(0, ceil(extract(epoch FROM
               least(r.ends_at, r.began_at + CASE WHEN r.login = session_user THEN _lasts ELSE greatest(_lasts, '1 s') END)
               - clock_timestamp()) * 1000))::bigint
      FROM omega.round r WHERE r.scheduler = _scheduler
$$;

-- Begin the next round if the last one is over; return its number, its beginning and the memo of the last one.
-- Otherwise the number is null, and the milliseconds until the last one is over are returned. The row keeps the
-- login of this round and of the one before.
CREATE FUNCTION omega.begin_round(
    _scheduler text, _holder text, _length_ms bigint,
    OUT number bigint, OUT began_ms bigint, OUT memo jsonb, OUT due_in_ms bigint
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    lasts interval;
BEGIN
    PERFORM needs_read_committed();
    lasts := milliseconds(_length_ms);
    IF NOT is_name(_scheduler) OR NOT is_name(_holder) THEN
        RAISE EXCEPTION 'bad round: it takes the names of a kind of scheduler and of a holder' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Check first without a lock, so that polling locks nothing.
    due_in_ms := round_ends_in(_scheduler, lasts);
    IF due_in_ms > 0 THEN
        RETURN;
    ELSIF due_in_ms IS NULL AND (SELECT count(*) FROM round r WHERE r.login = session_user) >= ${kinds_per_login_max} THEN
        RAISE EXCEPTION 'login % has begun rounds of ${kinds_per_login_max} kinds of scheduler, which is the limit', session_user
              USING ERRCODE = 'program_limit_exceeded';
    END IF;
    due_in_ms := NULL;
    INSERT INTO round AS r (scheduler, number, holder, began_at, ends_at)
    VALUES (_scheduler, 1, _holder, clock_timestamp(), clock_timestamp() + lasts)
        ON CONFLICT (scheduler) DO UPDATE
       SET number = r.number + 1, holder = excluded.holder, login = excluded.login,
           holder_before = r.holder, login_before = r.login,
           began_at = clock_timestamp(), ends_at = clock_timestamp() + lasts
     WHERE least(r.ends_at, r.began_at + CASE WHEN r.login = session_user THEN lasts ELSE greatest(lasts, '1 s') END)
           <= clock_timestamp()
    RETURNING r.number, (extract(epoch FROM r.began_at) * 1000)::bigint, r.memo INTO number, began_ms, memo;
    IF NOT FOUND THEN  -- another replica was faster
        due_in_ms := round_ends_in(_scheduler, lasts);
    END IF;
END $$;

-- Keep the memo for the next round; return whether it is kept. It is not if the next round has begun, or if this one
-- belongs to another login.
CREATE FUNCTION omega.note_round(_scheduler text, _number bigint, _memo jsonb)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF is_readable(_memo, ${memo_bytes_max}) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad memo: it is no object of at most ${memo_bytes_max} bytes and ${json_depth_max} levels, with numbers that a double holds'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE round r SET memo = _memo
     WHERE r.scheduler = _scheduler AND r.number = _number AND (r.login = session_user OR is_owner());
    RETURN FOUND;
END $$;

-- Lease to the holder of this round those of the jobs, or of all jobs if null, that are of its kind, are no helpers and
-- run, or that the holder of the round before still has leased. Their tasks go on; the machine of each is returned.
-- Returns no rows if the round is not the last one or belongs to another login. Large jobs beyond the byte limit of one answer go on
-- without being recalled. The columns are those of lease_jobs.
CREATE FUNCTION omega.recall_jobs(_scheduler text, _number bigint, _jobs bigint[], _lease_ms bigint)
RETURNS TABLE (
    id bigint, token uuid, wire jsonb, starts integer[], stops integer[], placed integer,
    fruitless integer, waited_ms bigint, age_ms bigint, sibling_tasks integer[], sibling_machines integer[]
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    lasts interval;
    of round%ROWTYPE;
    taken bigint[];
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    SELECT * INTO of FROM round r
     WHERE r.scheduler = _scheduler AND r.number = _number AND (r.login = session_user OR is_owner());
    -- In a statement of its own, so that the places of a job are read after its row was locked.
    SELECT array_agg(t.id) FILTER (WHERE t.large = 0 OR t.bytes <= ${lease_bytes_max} OR t.bytes = t.large) INTO taken
      FROM (SELECT j.id, counted_bytes(s.wire_bytes) AS large, sum(counted_bytes(s.wire_bytes)) OVER (ORDER BY j.id) AS bytes
              FROM (SELECT j.id FROM job j
                     WHERE (_jobs IS NULL OR j.id = ANY (_jobs)) AND j.scheduler = of.scheduler AND j.parent IS NULL
                       AND (j.state = 'running'
                            OR j.state = 'planning' AND j.lease_holder = of.holder_before AND j.lease_login = of.login_before)
                     ORDER BY j.id FOR NO KEY UPDATE) AS j
              JOIN job_spec s ON s.job_id = j.id) AS t;
    IF NOT EXISTS (SELECT FROM round r WHERE r.scheduler = _scheduler AND r.number = _number) THEN
        RETURN;  -- the next round began while this waited
    END IF;
    RETURN QUERY
    WITH leased AS (
        UPDATE job j
           SET state = 'planning', lease_token = gen_random_uuid(), lease_holder = of.holder, lease_login = of.login,
               lease_expires_at = clock_timestamp() + lasts
         WHERE j.id = ANY (taken)
        RETURNING j.*
    )
    SELECT l.id, l.lease_token, s.wire,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(l.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(l.unplaced) AS r), l.placed, l.fruitless, NULL::bigint,
           (extract(epoch FROM clock_timestamp() - l.submitted_at) * 1000)::bigint,
           siblings.tasks, siblings.machines
      FROM leased l JOIN job_spec s ON s.job_id = l.id,
           LATERAL (SELECT array_agg(a.task ORDER BY a.task) AS tasks, array_agg(a.machine_id ORDER BY a.task) AS machines
                      FROM allocation a WHERE a.job_id = l.id) AS siblings
     ORDER BY l.id;
END $$;

-- Those of the jobs that have not ended.
CREATE FUNCTION omega.unfinished_jobs(_jobs bigint[])
RETURNS bigint[] LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT coalesce(array_agg(id), '{}') FROM job WHERE id = ANY (_jobs) AND state NOT IN (${final_states})
$$;

-- The last round of each kind of scheduler, and what it tells people of it: the memo without the scheduler's own part.
-- Of the rounds that one login has begun, the last ones are told: together at most as many bytes as the largest memo
-- takes, so that no login makes the answer long for everybody.
CREATE FUNCTION omega.read_rounds()
RETURNS TABLE (scheduler text, number bigint, began_ms bigint, length_ms bigint, told jsonb) LANGUAGE sql STABLE AS $$
    SELECT t.scheduler, t.number, (extract(epoch FROM t.began_at) * 1000)::bigint,
           (extract(epoch FROM t.ends_at - t.began_at) * 1000)::bigint,
           coalesce(CASE WHEN t.bytes <= 4 * ${memo_bytes_max} THEN t.memo -> 'told' END, 'null')
      FROM (SELECT r.*, sum(coalesce(pg_column_size(r.memo -> 'told'), 0)) OVER (PARTITION BY r.login ORDER BY r.began_at DESC, r.scheduler) AS bytes
              FROM omega.round r) AS t
     ORDER BY t.scheduler COLLATE "C"
$$;
