-- What a user may change of a job that waits. Each call locks one job, and only if it may change it.

-- Park a job of which tasks wait until it is released; who has leased it loses the lease.
CREATE FUNCTION omega.hold_job(_job bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    UPDATE job SET state = 'parked', lease_token = NULL, park_reason = 'held', park_detail = 'a user holds it',
                   park_generation = (SELECT generation FROM cell)
     WHERE id = _job AND parent IS NULL AND NOT isempty(unplaced)
       AND (state IN ('pending', 'planning') OR state = 'parked' AND park_reason <> 'held');
    RETURN FOUND;
END $$;

-- Move a held job back to pending.
CREATE FUNCTION omega.release_job(_job bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    UPDATE job SET state = 'pending', park_reason = NULL, park_detail = NULL, fruitless = 0, not_before = clock_timestamp()
     WHERE id = _job AND state = 'parked' AND park_reason = 'held';
    RETURN FOUND;
END $$;

-- Have a job tried as soon as possible that is pending or parked, but not held.
CREATE FUNCTION omega.requeue_job(_job bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    UPDATE job SET state = 'pending', park_reason = NULL, park_detail = NULL, fruitless = 0, not_before = clock_timestamp()
     WHERE id = _job AND parent IS NULL AND (state = 'pending' OR state = 'parked' AND park_reason <> 'held');
    RETURN FOUND;
END $$;

-- Change the precedence of a job that is pending or parked, and requeue it unless it is held. An elastic job keeps its
-- own, because that of its helpers is below it. Evictions before are judged by the precedence of then: see verify.
CREATE FUNCTION omega.set_job_precedence(_job bigint, _precedence integer)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF _precedence IS NULL THEN
        RAISE EXCEPTION 'bad precedence: null' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE job SET precedence = _precedence, precedence_set_at = clock_timestamp(), fruitless = 0, not_before = clock_timestamp(),
                   state = CASE WHEN park_reason = 'held' THEN 'parked' ELSE 'pending' END,
                   park_detail = CASE WHEN park_reason = 'held' THEN park_detail END,
                   park_reason = CASE WHEN park_reason = 'held' THEN park_reason END
     WHERE id = _job AND parent IS NULL AND workers_max IS NULL AND state IN ('pending', 'parked');
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE job_spec SET wire = jsonb_set(wire, '{precedence}', to_jsonb(_precedence)) WHERE job_id = _job;
    RETURN true;
END $$;
