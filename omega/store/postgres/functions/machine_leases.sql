-- Machine leases: the time-limited right of one agent to run tasks on a machine. A machine whose lease has run out is
-- declared down, and returns to its state before when an agent holds it again. A machine that no agent has ever held is
-- left alone. Lock order: leases, then machines, each by id; nobody who holds another row waits for a lease.
-- docs/decisions/0045-machine-leases.md

-- Prolong the lease that this agent has of one of the caller's own machines, or take one that is free or has run out;
-- return false if another agent has it. A machine that its lease declared down returns to its state before.
CREATE FUNCTION omega.hold_machine(_machine integer, _holder uuid, _lease_ms bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    lasts interval;
    before smallint;
BEGIN
    PERFORM needs_read_committed();
    lasts := lease_length(_lease_ms);
    PERFORM needs_own_machine(_machine, _holder);
    -- The condition and the end are computed when the row is locked.
    INSERT INTO machine_lease AS l (machine_id, holder, expires_at) VALUES (_machine, _holder, clock_timestamp() + lasts)
        ON CONFLICT (machine_id) DO UPDATE
           SET holder = excluded.holder, login = excluded.login, expires_at = clock_timestamp() + lasts
         WHERE l.holder = excluded.holder OR l.expires_at <= clock_timestamp()
        RETURNING l.state_before INTO before;
    IF NOT FOUND THEN
        RETURN false;
    ELSIF before IS NOT NULL THEN
        PERFORM 1 FROM machine WHERE id = _machine FOR NO KEY UPDATE;
        PERFORM move_machines(ARRAY[_machine], before);
        UPDATE machine_lease SET state_before = NULL WHERE machine_id = _machine;
    END IF;
    RETURN true;
END $$;

-- End the lease that this agent has of one of the caller's own machines, and declare the machine down; return false, and
-- change nothing, if another agent has it, or none. What runs there is evicted by the next call: that locks jobs, which
-- come before machines.
CREATE FUNCTION omega.leave_machine(_machine integer, _holder uuid)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    PERFORM needs_own_machine(_machine, _holder);
    UPDATE machine_lease SET expires_at = least(expires_at, clock_timestamp()) WHERE machine_id = _machine AND holder = _holder;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM declare_down(ARRAY[_machine]);
    RETURN true;
END $$;

-- Remove the lease of one of the caller's own machines, so that it is like one that no agent has ever held: never declared
-- down. One that its lease declared down returns to its state before. Return false if another agent holds the machine.
CREATE FUNCTION omega.free_machine(_machine integer, _holder uuid)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    before smallint;
BEGIN
    PERFORM needs_read_committed();
    PERFORM needs_own_machine(_machine, _holder);
    DELETE FROM machine_lease l
     WHERE l.machine_id = _machine AND (l.holder = _holder OR l.expires_at <= clock_timestamp())
    RETURNING l.state_before INTO before;
    IF NOT FOUND THEN
        RETURN NOT EXISTS (SELECT FROM machine_lease l WHERE l.machine_id = _machine);
    ELSIF before IS NOT NULL THEN
        PERFORM 1 FROM machine WHERE id = _machine FOR NO KEY UPDATE;
        PERFORM move_machines(ARRAY[_machine], before);
    END IF;
    RETURN true;
END $$;

-- Evict what runs on one of the caller's own machines if it is down or gone, as lose_tasks does; return how many tasks.
CREATE FUNCTION omega.lose_own_tasks(_machine integer)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    PERFORM machine_revision(_machine);  -- which refuses a machine that is not the caller's own
    RETURN lose_tasks(ARRAY[_machine]);
END $$;

-- Declare down the open or draining machines whose lease has run out; return them, ascending. What runs there is left to
-- whoever clears machines. A lease or machine that somebody is using is passed over, so that no login keeps the machines of
-- others open.
CREATE FUNCTION omega.expire_machines()
RETURNS integer[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    expired integer[];
BEGIN
    PERFORM needs_read_committed();
    SELECT coalesce(array_agg(e.machine_id), '{}') INTO expired
      FROM (SELECT l.machine_id FROM machine_lease l JOIN machine m ON m.id = l.machine_id
             WHERE l.expires_at <= clock_timestamp() AND l.state_before IS NULL AND m.state IN (0, 1)
             ORDER BY l.machine_id FOR UPDATE OF l SKIP LOCKED FOR NO KEY UPDATE OF m SKIP LOCKED) AS e;
    RETURN declare_down(expired);
END $$;

-- Take down those of these machines that are open or draining, and keep their state in their leases, whose rows are
-- locked; return them, ascending.
CREATE FUNCTION omega.declare_down(_machines integer[])
RETURNS integer[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    up integer[];
BEGIN
    IF _machines = '{}' THEN
        RETURN _machines;
    END IF;
    PERFORM 1 FROM machine WHERE id = ANY (_machines) ORDER BY id FOR NO KEY UPDATE;
    up := ARRAY(SELECT m.id FROM machine m WHERE m.id = ANY (_machines) AND m.state IN (0, 1) ORDER BY m.id);
    UPDATE machine_lease l SET state_before = m.state FROM machine m WHERE m.id = l.machine_id AND m.id = ANY (up);
    PERFORM move_machines(up, 2::smallint);
    RETURN up;
END $$;

-- Refuse a machine that is not the caller's own or never existed, and a holder without a name.
CREATE FUNCTION omega.needs_own_machine(_machine integer, _holder uuid)
RETURNS void LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM machine_revision(_machine);
    IF _holder IS NULL THEN
        RAISE EXCEPTION 'bad holder: null' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
