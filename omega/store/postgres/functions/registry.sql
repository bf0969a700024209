-- Reports of processes. A report belongs to its login: two logins with the same name of a process have a report each,
-- so that none can replace another's.

CREATE FUNCTION omega.report_process(_kind text, _replica text, _pid integer, _facts jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF NOT is_name(_kind) OR NOT is_name(_replica) OR _pid IS NULL OR is_readable(_facts, ${facts_bytes_max}) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad report: it takes a kind, a replica, a process id and facts, an object of at most ${facts_bytes_max} bytes and ${json_depth_max} levels, with numbers that a double holds'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE process p
       SET facts = _facts, seen_at = clock_timestamp(), pid = _pid,
           started_at = CASE WHEN p.pid = _pid THEN p.started_at ELSE clock_timestamp() END
     WHERE p.kind = _kind AND p.replica = _replica AND p.login = session_user;
    IF FOUND THEN
        RETURN;
    END IF;
    -- A killed process has left its last report, perhaps under another login. Such reports are kept for a day, or
    -- for ten seconds if the login has so many that new processes could not report.
    DELETE FROM process
     WHERE (kind, replica, login) IN (
               SELECT kind, replica, login FROM process
                WHERE kind = _kind AND replica = _replica AND seen_at < clock_timestamp() - interval '10 seconds'
                   OR login = session_user AND seen_at < clock_timestamp() - CASE
                          WHEN (SELECT count(*) FROM process WHERE login = session_user) >= ${processes_per_login_max} THEN interval '10 seconds'
                          ELSE interval '1 day' END
                  FOR UPDATE SKIP LOCKED);
    IF (SELECT count(*) FROM process WHERE login = session_user) >= ${processes_per_login_max} THEN
        RAISE EXCEPTION '${processes_per_login_max} processes report as login %, and no more may', session_user
              USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO process (kind, replica, pid, facts) VALUES (_kind, _replica, _pid, _facts)
        ON CONFLICT (kind, replica, login) DO UPDATE SET facts = excluded.facts, seen_at = excluded.seen_at, pid = excluded.pid;
END $$;

-- The caller's own report of a process, as a health check beside that process reads it; no row if there is none. Reports
-- of other logins are not shown.
CREATE FUNCTION omega.read_report(_kind text, _replica text)
RETURNS TABLE (pid integer, started_ms bigint, seen_ms_ago bigint, facts jsonb) LANGUAGE sql STABLE AS $$
    SELECT p.pid, (extract(epoch FROM p.started_at) * 1000)::bigint,
           (extract(epoch FROM clock_timestamp() - p.seen_at) * 1000)::bigint, p.facts
      FROM omega.process p WHERE p.kind = _kind AND p.replica = _replica AND p.login = session_user
$$;

-- Remove the report of a process that has ended. Other logins' reports of that name are kept, unless the owner calls.
CREATE FUNCTION omega.forget_process(_kind text, _replica text)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    DELETE FROM process WHERE kind = _kind AND replica = _replica AND (login = session_user OR is_owner());
END $$;
