-- Incarnations of the database: whether what readers remember of it is still its past. A promotion, a restore or a crash
-- may have lost commits that somebody has seen. docs/decisions/0049-incarnations.md

-- Refuse to answer unless the present incarnation has begun since this server may last have lost commits: the caller may
-- remember what was lost. The row of the unlogged table is lost in every recovery from a crash, and so in every promotion
-- and restore of a running server; a server that was stopped and started has another start time; a row that was loaded
-- from a dump has another transaction number. A standby cannot read unlogged tables, and only repeats what a primary does.
-- Without a search_path of its own, which would take longer than all the rest.
CREATE FUNCTION omega.needs_incarnation()
RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM omega.incarnation i WHERE i.started_at = pg_postmaster_start_time() AND i.xmin = i.born::xid) THEN
        RAISE EXCEPTION 'this server was started, promoted or restored, and no incarnation has begun since'
              USING ERRCODE = '${incarnation_unknown}', HINT = 'SELECT omega.begin_incarnation()';
    END IF;
END $$;

-- Begin an incarnation, unless the present one is known. The generation becomes one that none before can have reached, so
-- that every view is read anew. If commits may have been lost, some numbers of jobs and machines are passed over.
CREATE FUNCTION omega.begin_incarnation()
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    now_us bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    numbers regclass := pg_get_serial_sequence('omega.job', 'id');
    was_stopped boolean;
    before bigint;
BEGIN
    PERFORM needs_read_committed();
    SELECT c.incarnation INTO before FROM cell c FOR UPDATE;  -- one caller at a time
    IF EXISTS (SELECT FROM incarnation i WHERE i.started_at = pg_postmaster_start_time() AND i.xmin = i.born::xid) THEN
        RETURN;
    END IF;
    was_stopped := EXISTS (SELECT FROM incarnation i WHERE i.xmin = i.born::xid);  -- and did not crash
    DELETE FROM incarnation;
    INSERT INTO incarnation DEFAULT VALUES;
    UPDATE cell SET incarnation = greatest(incarnation + 1, now_us), generation = greatest(generation + 1, now_us),
                    changes_from = pg_current_xact_id();
    IF before = 0 OR was_stopped THEN
        RETURN;
    END IF;
    UPDATE cell SET machines_from = (SELECT coalesce(max(id), 0) FROM machine) + ${machines_passed_over};
    PERFORM setval(numbers, (nextval(numbers) / ${jobs_passed_over} + 1) * ${jobs_passed_over});
END $$;
