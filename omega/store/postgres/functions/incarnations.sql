-- Incarnations of the database: whether what readers remember of it is still its past. A promotion, a restore or a crash
-- may have lost commits that somebody has seen. docs/decisions/0049-incarnations.md

-- Refuse to answer unless the present incarnation has begun since this server may last have lost commits: the caller may
-- remember what was lost. The row of the unlogged table is lost in every recovery from a crash, and so in every promotion
-- and restore of a running server; a server that was stopped and started has another start time; a row that was loaded
-- from a dump has another transaction number; one that was copied with its database lies in another folder. A standby
-- cannot read unlogged tables, and only repeats what a primary does. Without a search_path of its own, which would take
-- longer than all the rest.
CREATE FUNCTION omega.needs_incarnation()
RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN;
    ELSIF NOT ${incarnation_is_known} THEN
        RAISE EXCEPTION 'this server was started, promoted or restored, and no incarnation has begun since'
              USING ERRCODE = '${incarnation_unknown}', HINT = 'SELECT omega.begin_incarnation()';
    END IF;
END $$;

-- Begin an incarnation, unless the present one is known. The generation becomes one that none before has reached, whatever
-- the clocks of servers say, so that every view is read anew. If commits may have been lost, numbers of jobs, pipelines and
-- machines are passed over; how many of jobs and pipelines is drawn, because one backup may be restored twice.
CREATE FUNCTION omega.begin_incarnation()
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    now_us bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    drawn bigint := 1 + (random() * 1e9)::bigint;
    numbers regclass;
    was_stopped boolean;
    before bigint;
BEGIN
    PERFORM needs_read_committed();
    FOR attempt IN 1 .. 2 LOOP
        BEGIN
            PERFORM needs_incarnation();
            RETURN;
        EXCEPTION WHEN SQLSTATE '${incarnation_unknown}' THEN
            -- One caller at a time, and none while it is known: then nobody can hold others up.
            SELECT c.incarnation INTO before FROM cell c FOR UPDATE;
        END;
    END LOOP;
    was_stopped := EXISTS (SELECT FROM incarnation i WHERE i.xmin = i.born::xid  -- and did not crash
                              AND starts_with(pg_relation_filepath('omega.incarnation'), i.folder));
    DELETE FROM incarnation;
    INSERT INTO incarnation (folder) VALUES (regexp_replace(pg_relation_filepath('omega.incarnation'), '[^/]+$', ''));
    UPDATE cell SET incarnation = greatest(incarnation, now_us) + drawn, generation = greatest(generation, now_us) + drawn,
                    changes_from = pg_current_xact_id();
    IF before = 0 OR was_stopped THEN
        RETURN;
    END IF;
    UPDATE cell SET machines_from = (SELECT coalesce(max(id), 0) FROM machine) + ${machines_passed_over};
    FOREACH numbers IN ARRAY ARRAY[pg_get_serial_sequence('omega.job', 'id'), pg_get_serial_sequence('omega.pipeline', 'id')] LOOP
        PERFORM setval(numbers, (nextval(numbers) / ${jobs_passed_over} + 2 + (random() * 997)::bigint) * ${jobs_passed_over});
    END LOOP;
END $$;
