-- Turns of partitioned synchronisation. Replicas with the same gap and number of parts form a group, which divides the
-- reading: each leases the turn of scheduler i of N. Two replicas of a group never hold the same turn at the same time,
-- nor turns of different N.

-- Take or renew a turn: the one given, or, if the number is null, one among all of the group. The holder numbers its
-- requests. A lease of 0 ms gives the turn back. `granted` is null, and nothing changes, if another call runs at this
-- moment, or if a later request of this holder was answered and its lease goes on. `granted` is false if the caller
-- holds no turn now, whatever it held before; `held_by` names the holder of the turn that it asked for.
CREATE FUNCTION omega.take_turn(
    _holder uuid, _asked bigint, _kind text, _replica text, _gap_ms bigint, _parts integer, _number integer,
    _schedulers integer, _lease_ms bigint, OUT granted boolean, OUT number integer, OUT schedulers integer, OUT held_by text
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    lasts interval;
    before turn%ROWTYPE;
    joined timestamptz;
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    IF NOT is_name(_kind) OR NOT is_name(_replica) OR _holder IS NULL OR _asked IS NULL
       OR (_gap_ms BETWEEN 1 AND ${lease_ms_max}) IS NOT TRUE OR (_parts BETWEEN 0 AND ${parts_max}) IS NOT TRUE
       OR (_number IS NULL) <> (_schedulers IS NULL)
       OR (0 <= _number AND _number < _schedulers AND _schedulers <= ${parts_max}) IS FALSE THEN
        RAISE EXCEPTION 'bad turn: it takes a holder, a kind, a replica, a gap of at most ${lease_ms_max} ms, at most ${parts_max} parts, and no number or one below that of schedulers'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF _lease_ms = 0 THEN  -- giving back conflicts with nobody
        DELETE FROM turn t
         WHERE t.ctid IN (SELECT o.ctid FROM turn o
                           WHERE o.login = session_user AND o.holder = _holder AND o.asked < _asked
                             FOR UPDATE SKIP LOCKED);
        granted := false;
        RETURN;
    END IF;
    -- One call at a time, and none waits for long: a login that keeps its transaction open must not stop the others'
    -- reading. Calls that come at the same moments wait for random times.
    FOR tries IN 1 .. 4 LOOP
        EXIT WHEN pg_try_advisory_xact_lock(hashtext('omega.turn'), 0);
        IF tries = 4 THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(random() * 0.02);
    END LOOP;
    DELETE FROM turn t WHERE t.expires_at <= clock_timestamp();
    SELECT * INTO before FROM turn t WHERE t.login = session_user AND t.holder = _holder;
    IF before.asked >= _asked THEN
        RETURN;
    ELSIF before.holder IS NULL AND (SELECT count(*) FROM turn t WHERE t.login = session_user) >= ${processes_per_login_max} THEN
        RAISE EXCEPTION '${processes_per_login_max} processes share out their reading as login %, and no more may', session_user
              USING ERRCODE = 'program_limit_exceeded';
    END IF;
    joined := coalesce(before.joined_at, clock_timestamp());
    number := _number;
    schedulers := _schedulers;
    IF number IS NULL THEN
        SELECT count(*) FILTER (WHERE (t.joined_at, t.login, t.holder) < (joined, session_user::text, _holder)),
               count(*) + 1
          INTO number, schedulers
          FROM turn t
         WHERE t.gap_ms = _gap_ms AND t.parts = _parts AND (t.login, t.holder) <> (session_user::text, _holder);
        schedulers := least(schedulers, ${parts_max});
    END IF;
    SELECT coalesce(max(t.kind || '/' || t.replica)
                    FILTER (WHERE t.number = take_turn.number AND t.schedulers = take_turn.schedulers), ''),
           count(*) = 0
      INTO held_by, granted
      FROM turn t
     WHERE t.gap_ms = _gap_ms AND t.parts = _parts AND (t.login, t.holder) <> (session_user::text, _holder)
       AND (t.schedulers <> take_turn.schedulers OR t.number = take_turn.number);
    granted := granted AND number < schedulers;
    IF NOT granted THEN
        number := NULL;
        schedulers := NULL;
    END IF;
    INSERT INTO turn AS t (holder, asked, kind, replica, gap_ms, parts, number, schedulers, joined_at, expires_at)
    VALUES (_holder, _asked, _kind, _replica, _gap_ms, _parts, number, schedulers, joined, clock_timestamp() + lasts)
        ON CONFLICT (login, holder) DO UPDATE
       SET asked = excluded.asked, kind = excluded.kind, replica = excluded.replica, gap_ms = excluded.gap_ms, parts = excluded.parts,
           number = excluded.number, schedulers = excluded.schedulers, expires_at = excluded.expires_at;
END $$;
