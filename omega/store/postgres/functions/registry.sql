-- What processes say of themselves. A report is its login's: another login may replace it only once
-- its process has been silent for as long as makes `omega status` call it so.

CREATE FUNCTION omega.report_process(_kind text, _replica text, _pid integer, _facts jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    IF NOT is_name(to_jsonb(_kind)) OR NOT is_name(to_jsonb(_replica)) OR coalesce(jsonb_typeof(_facts) <> 'object', true) THEN
        RAISE EXCEPTION 'bad report: it takes a kind, a replica and an object of facts' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO process AS p (kind, replica, pid, facts) VALUES (_kind, _replica, _pid, _facts)
        ON CONFLICT (kind, replica) DO UPDATE
       SET facts = excluded.facts, seen_at = clock_timestamp(), pid = excluded.pid, login = excluded.login,
           started_at = CASE WHEN p.pid = excluded.pid AND p.login = excluded.login THEN p.started_at
                             ELSE clock_timestamp() END
     WHERE p.login = excluded.login OR p.seen_at < clock_timestamp() - interval '10 seconds' OR is_owner();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a process of another login reports as % %', _kind, _replica USING ERRCODE = 'insufficient_privilege';
    END IF;
END $$;

-- Remove a process that has ended cleanly; another login's report stays.
CREATE FUNCTION omega.forget_process(_kind text, _replica text)
RETURNS void LANGUAGE sql SET search_path = omega, pg_temp AS $$
    DELETE FROM process WHERE kind = _kind AND replica = _replica AND (login = session_user OR is_owner())
$$;
