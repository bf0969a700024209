-- A job that is submitted together with the places that a plan gave it: docs/decisions/0053. What is changed before a
-- claim is refused is undone by the end of the inner block; its rows are then dead, as after a transaction that failed.
CREATE FUNCTION omega.submit_planned(
    _spec jsonb, _id uuid, _holder text,
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[],  -- an entry per claim
    _amounts integer[],                                                       -- an entry per kind of each shape
    _evict_claims integer[], _evict_jobs bigint[], _evict_tasks integer[],    -- evictions that claims name
    _lost_jobs bigint[], _lost_tasks integer[],                               -- all that may be evicted
    OUT job bigint, OUT verdicts smallint[], OUT evicted_jobs bigint[], OUT evicted_tasks integer[], OUT fresh bytea
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    token uuid := gen_random_uuid();
    claims integer := cardinality(_tasks);
    outcome record;
    number bigint;
    is_as_planned boolean;
BEGIN
    PERFORM needs_read_committed();
    SELECT t.jobs[1], t.verdicts, t.evicted_jobs, t.evicted_tasks, packed_machines(_machines)
      INTO job, verdicts, evicted_jobs, evicted_tasks, fresh
      FROM transaction t WHERE t.id = _id;
    IF FOUND THEN
        RETURN;  -- the answer to this call was lost
    END IF;
    BEGIN
        number := (submit_jobs(jsonb_build_array(_spec)))[1];
        UPDATE omega.job j
           SET state = 'planning', lease_token = token, lease_holder = _holder, lease_login = session_user,
               lease_expires_at = clock_timestamp() + interval '1 minute', first_leased_at = clock_timestamp(),
               attempts = 1
         WHERE j.id = number;
        SELECT * INTO outcome
          FROM commit_claims(_id, _spec ->> 'scheduler', _holder, true, ARRAY[number], ARRAY[token], ARRAY[claims],
                             ARRAY[claims], _tasks, _machines, _seen, _shapes, _amounts, '{}', '{}', '{}', '{}',
                             _evict_claims, _evict_jobs, _evict_tasks);
        verdicts := outcome.verdicts;
        evicted_jobs := outcome.evicted_jobs;
        evicted_tasks := outcome.evicted_tasks;
        is_as_planned := ${accepted} = ALL (verdicts)
            AND (SELECT array_agg(e ORDER BY e) FROM unnest(evicted_jobs, evicted_tasks) AS e (job, task))
                IS NOT DISTINCT FROM
                (SELECT array_agg(l ORDER BY l) FROM unnest(_lost_jobs, _lost_tasks) AS l (job, task));
        IF NOT is_as_planned THEN
            RAISE EXCEPTION 'not as planned' USING ERRCODE = 'triggered_action_exception';
        END IF;
        PERFORM hand_back_jobs(ARRAY[number], ARRAY[token], ARRAY[0]::bigint[], ARRAY[true]);
        job := number;
    EXCEPTION WHEN triggered_action_exception THEN
        job := NULL;
    END;
    fresh := packed_machines(_machines);
END $$;
