-- Functions for nodes: a node reads the tasks on its own machines, and ends them. The login determines which
-- machines those are. Functions that processes call run as their owner (omega/store/postgres/roles.py), so
-- here current_user is the owner, and session_user is the login.

-- Whether the caller is the owner, or a member of the owner's role.
CREATE FUNCTION omega.is_owner()
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, current_user, 'member')
$$;

-- The machines that the caller stands for, and whether some were assigned to it since the mark. The owner stands
-- for all.
CREATE FUNCTION omega.own_machines(_mark bigint, OUT machines int4multirange, OUT are_new boolean)
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    IF is_owner() THEN
        machines := '{(,)}';
        are_new := false;
        RETURN;
    END IF;
    SELECT range_agg(n.machines), coalesce(bool_or(n.changed_by >= _mark::text::xid8), false) INTO machines, are_new
      FROM node n JOIN pg_roles r ON r.rolname = n.role_name
     WHERE pg_has_role(session_user, r.oid, 'member');
    IF machines IS NULL THEN
        RAISE EXCEPTION '% stands for no machine; its owner may run: omega node assign', session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END $$;

-- Whether the caller stands for a machine. What is assigned to the login itself is found by its key; its other roles
-- are looked at only if that does not decide.
CREATE FUNCTION omega.stands_for(_machine integer)
RETURNS boolean LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    RETURN is_owner()
        OR EXISTS (SELECT FROM node n WHERE n.role_name = session_user::text AND n.machines @> _machine)
        OR EXISTS (SELECT FROM node n JOIN pg_roles r ON r.rolname = n.role_name
                    WHERE n.machines @> _machine AND pg_has_role(session_user, r.oid, 'member'));
END $$;

-- Those of these tasks that run, with their jobs' rows locked. Changes nothing and raises an error if one of them runs
-- on a machine that is not among these. With starts, as in release_tasks.
CREATE FUNCTION omega.lock_own_tasks(
    _own int4multirange, _jobs bigint[], _tasks integer[], _started_ms bigint[],
    OUT jobs bigint[], OUT tasks integer[], OUT started_ms bigint[]
) LANGUAGE plpgsql SET search_path = omega, pg_temp
-- Each task is found by its key, however many there are.
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    elsewhere record;
BEGIN
    -- Jobs without such a running task are not locked: a node must not hold up other jobs.
    IF cardinality(_jobs) = cardinality(_tasks) AND (_started_ms IS NULL OR cardinality(_jobs) = cardinality(_started_ms)) THEN
        SELECT coalesce(array_agg(w.job_id), '{}'), coalesce(array_agg(w.task), '{}'),
               CASE WHEN _started_ms IS NOT NULL THEN coalesce(array_agg(w.started_ms), '{}') END
          INTO _jobs, _tasks, _started_ms
          FROM unnest(_jobs, _tasks, _started_ms) AS w (job_id, task, started_ms) JOIN allocation a USING (job_id, task)
         WHERE _started_ms IS NULL OR w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint;
    END IF;
    -- While the jobs' rows are locked, no other transaction places or ends a task of theirs. Their helpers are locked
    -- with them, in the one order, because they end with the last task.
    PERFORM 1 FROM job
      WHERE id = ANY (_jobs || ARRAY(SELECT c.id FROM job c WHERE c.parent = ANY (_jobs) AND c.finished_at IS NULL))
      ORDER BY id FOR NO KEY UPDATE;
    -- Materialized, because for the limit's sake the planner would otherwise search all allocations for one row.
    WITH meant AS MATERIALIZED (
        SELECT a.job_id, a.task, a.machine_id
          FROM unnest(_jobs, _tasks, _started_ms) AS w (job_id, task, started_ms) JOIN allocation a USING (job_id, task)
         WHERE _started_ms IS NULL OR w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint
    )
    SELECT m.job_id, m.task, p.name INTO elsewhere
      FROM meant m JOIN machine_profile p ON p.id = m.machine_id
     WHERE NOT _own @> m.machine_id ORDER BY m.job_id, m.task LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'task % of job % runs on machine %, for which % does not stand',
            elsewhere.task, elsewhere.job_id, elsewhere.name, session_user USING ERRCODE = 'insufficient_privilege';
    END IF;
    jobs := _jobs;
    tasks := _tasks;
    started_ms := _started_ms;
END $$;

-- End those of these tasks that run, as release_tasks does. Changes nothing and raises an error if one of them
-- runs on a machine that is not the caller's own.
CREATE FUNCTION omega.end_tasks(_jobs bigint[], _tasks integer[], _started_ms bigint[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    own int4multirange;
BEGIN
    PERFORM needs_read_committed();
    IF NOT is_owner() THEN
        SELECT machines INTO own FROM own_machines(NULL);
        SELECT jobs, tasks, started_ms INTO _jobs, _tasks, _started_ms
          FROM lock_own_tasks(own, _jobs, _tasks, _started_ms);
    END IF;
    RETURN release_tasks(_jobs, _tasks, _started_ms);
END $$;

-- Assign a role the machines of these names and no others, or, if the list is null, every machine that exists or
-- will exist; return the number of its machines.
CREATE FUNCTION omega.assign_machines(_role text, _names text[])
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    unknown text;
    assigned int4multirange := '{(,)}';
BEGIN
    PERFORM needs_read_committed();
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = _role) THEN
        RAISE EXCEPTION 'there is no role %', _role USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF _names IS NOT NULL THEN
        SELECT u.name INTO unknown FROM unnest(_names) AS u (name)
         WHERE NOT EXISTS (SELECT FROM machine_profile p WHERE p.name = u.name) ORDER BY u.name LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'there is no machine named %', unknown USING ERRCODE = 'invalid_parameter_value';
        END IF;
        SELECT range_agg(int4range(id, id + 1)) INTO assigned FROM machine_profile WHERE name = ANY (_names);
    END IF;
    IF assigned IS NULL THEN
        DELETE FROM node WHERE role_name = _role;
    ELSE
        INSERT INTO node (role_name, machines) VALUES (_role, assigned)
            ON CONFLICT (role_name) DO UPDATE SET machines = excluded.machines, changed_by = pg_current_xact_id();
    END IF;
    RETURN (SELECT count(*) FROM machine WHERE assigned @> id AND state <> 3);
END $$;
