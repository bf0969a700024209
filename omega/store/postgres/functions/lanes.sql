-- Lanes, tenants, and the orders of queues: docs/decisions/0058-the-order-of-the-queue.md. A lane is the queue of one
-- tenant's jobs of one class, by shape and constraints, and one kind of scheduler. Schedulers without a fair order call only
-- agree_on_order. Placeholders are explained in __init__.py.

-- The lanes of a kind that have jobs in a state, pending or parked, and the first job of each; each is found by one search
-- of the index. Both states are named in the query because Postgres uses a partial index only if its condition is there.
CREATE FUNCTION omega.lanes_of(_scheduler text, _state text)
RETURNS TABLE (
    tenant text, lane_class smallint, id bigint, precedence integer, tasks integer, placed integer, not_before timestamptz
) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE lane AS (
        (SELECT j.tenant, j.lane_class, j.id, j.precedence, j.tasks, j.placed, j.not_before FROM omega.job j
          WHERE j.scheduler = _scheduler AND j.state = _state AND j.state IN ('pending', 'parked')
          ORDER BY j.tenant, j.lane_class, j.precedence DESC, j.id LIMIT 1)
         UNION ALL
        SELECT n.*
          FROM lane l, LATERAL (
              SELECT j.tenant, j.lane_class, j.id, j.precedence, j.tasks, j.placed, j.not_before FROM omega.job j
               WHERE j.scheduler = _scheduler AND j.state = _state AND j.state IN ('pending', 'parked')
                 AND (j.tenant, j.lane_class) > (l.tenant, l.lane_class)
               ORDER BY j.tenant, j.lane_class, j.precedence DESC, j.id LIMIT 1) AS n
    )
    SELECT l.* FROM lane l LIMIT ${lanes_max}
$$;

-- The head of each lane of a kind, and of all kinds that have a fair order: the first of its jobs that may be leased now,
-- and what the unplaced tasks of this job need. If its task groups differ and some tasks have places, that is an estimate.
-- Most first jobs may be leased; only where one may not yet, its lane is searched for one that may.
CREATE FUNCTION omega.read_lanes(_scheduler text)
RETURNS TABLE (
    scheduler text, tenant text, lane_class smallint, id bigint, precedence integer, demand bigint[], tasks integer
) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    WITH first AS MATERIALIZED (
        SELECT k.scheduler, l.*, l.not_before <= clock_timestamp() AS may_be_leased
          FROM (SELECT _scheduler AS scheduler
                 UNION
                SELECT o.scheduler FROM queue_order o WHERE o.name IN ('${fair_orders}') AND o.expires_at > clock_timestamp()) AS k
         CROSS JOIN lanes_of(k.scheduler, 'pending') AS l
    ), head AS (
        SELECT f.scheduler, f.tenant, f.lane_class, f.id, f.precedence, f.tasks, f.placed FROM first f WHERE f.may_be_leased
         UNION ALL
        SELECT f.scheduler, f.tenant, f.lane_class, h.*
          FROM first f
         CROSS JOIN LATERAL (
             SELECT j.id, j.precedence, j.tasks, j.placed FROM job j
              WHERE j.scheduler = f.scheduler AND j.state = 'pending' AND j.tenant = f.tenant
                AND j.lane_class = f.lane_class AND j.not_before <= clock_timestamp()
              ORDER BY j.precedence DESC, j.id LIMIT 1) AS h
         WHERE NOT f.may_be_leased
    )
    SELECT h.scheduler, h.tenant, h.lane_class, h.id, h.precedence,
           ARRAY(SELECT div(d.amount::numeric * (h.tasks - h.placed), h.tasks)::bigint  -- a bigint does not hold the product
                   FROM unnest(s.demand) WITH ORDINALITY AS d (amount, n) ORDER BY d.n),
           h.tasks - h.placed
      FROM head h
     CROSS JOIN LATERAL (SELECT d.demand FROM job_spec d WHERE d.job_id = h.id LIMIT 1) AS s  -- each by its key
     ORDER BY h.scheduler COLLATE "C", h.tenant COLLATE "C", h.lane_class
$$;

-- What each tenant uses: the sum over its allocations. tenants[i] uses used[i], an array of amounts.
CREATE FUNCTION omega.sum_tenant_use(OUT tenants text[], OUT used bigint[])
LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(t.tenant), '{}'), coalesce(array_agg(t.used), '{}')
      FROM (SELECT j.tenant, (omega.cost({{ sum(a.${kind})::bigint }}))[:${resources}] AS used
              FROM omega.allocation a JOIN omega.job j ON j.id = a.job_id GROUP BY j.tenant) AS t
$$;

-- What each tenant uses, by a sum that is kept, and the tenants that the owner has set. The first row has the age of the sum,
-- and no tenant. A sum that is older than _age_ms_max is made anew, but one that took long to make serves for twenty times
-- that time, of which at most ${sum_ms_max} ms count: a making may have waited, or the clock was set meanwhile. With 0 the sum
-- is made now. One call at a time makes the sum that is kept; the others return the old one meanwhile. So that a transaction
-- left open holds up nobody, they make a sum for themselves once the old one is ten times too old.
CREATE FUNCTION omega.read_tenant_use(_age_ms_max bigint)
RETURNS TABLE (age_ms bigint, tenant text, used bigint[], weight integer, parent text) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
#variable_conflict use_column
DECLARE
    kept tenant_use%ROWTYPE;
    began timestamptz := clock_timestamp();
    age bigint;
    age_max bigint;
BEGIN
    PERFORM needs_read_committed();
    PERFORM milliseconds(_age_ms_max);
    SELECT * INTO kept FROM tenant_use;
    age := extract(epoch FROM began - kept.summed_at) * 1000;
    age_max := CASE WHEN _age_ms_max > 0 THEN greatest(_age_ms_max, 20 * least(kept.took_ms, ${sum_ms_max})) ELSE 0 END;
    IF age IS NULL OR age < 0 OR age >= age_max THEN
        IF pg_try_advisory_xact_lock(hashtext('omega.tenant_use'), 0) THEN
            age := 0;
            SELECT * INTO kept.tenants, kept.used FROM sum_tenant_use();
            kept.took_ms := least(extract(epoch FROM clock_timestamp() - began) * 1000, ${sum_ms_max});
            INSERT INTO tenant_use AS u (summed_at, took_ms, tenants, used) VALUES (began, kept.took_ms, kept.tenants, kept.used)
                ON CONFLICT (single) DO UPDATE
               SET summed_at = excluded.summed_at, took_ms = excluded.took_ms, tenants = excluded.tenants, used = excluded.used;
        ELSIF age IS NULL OR age NOT BETWEEN 0 AND 10 * age_max THEN
            age := 0;
            SELECT * INTO kept.tenants, kept.used FROM sum_tenant_use();
        END IF;
    END IF;
    RETURN QUERY
    SELECT age, NULL, NULL::bigint[], NULL::integer, NULL
     UNION ALL
    SELECT NULL, coalesce(n.name, t.name), CASE WHEN n.name IS NOT NULL THEN ARRAY(SELECT kept.used[n.at][r] FROM generate_series(1, ${resources}) AS r) END,
           t.weight, t.parent
      FROM unnest(kept.tenants) WITH ORDINALITY AS n (name, at) FULL JOIN tenant t ON t.name = n.name;
END $$;

-- The tasks of all jobs that have not ended, by tenant and shape: how many run, and how many have no place. Of a job with
-- several groups it is assumed that of each group the same fraction has none. At most ${lanes_max} rows: those of most tasks.
CREATE FUNCTION omega.read_unfinished_tasks()
RETURNS TABLE (tenant text, shape jsonb, running bigint, waiting bigint) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    WITH running AS (
        SELECT a.job_id, width_bucket(a.task, s.group_starts) AS place, count(*) AS tasks
          FROM allocation a JOIN job_spec s ON s.job_id = a.job_id GROUP BY 1, 2
    ), summed AS (
        SELECT j.tenant, g.it || '{"tasks": 1, "duration_ms": null, "program": null}' AS shape,
               sum(coalesce(r.tasks, 0))::bigint AS running,
               sum((g.it ->> 'tasks')::bigint * (j.tasks - j.placed) / j.tasks)::bigint AS waiting
          FROM job j JOIN job_spec s ON s.job_id = j.id
         CROSS JOIN jsonb_array_elements(s.wire -> 'groups') WITH ORDINALITY AS g (it, place)
          LEFT JOIN running r ON r.job_id = j.id AND r.place = g.place
         WHERE j.finished_at IS NULL
         GROUP BY 1, 2
    )
    SELECT t.* FROM summed t WHERE t.running + t.waiting > 0
     ORDER BY t.running + t.waiting DESC, t.tenant, t.shape LIMIT ${lanes_max}
$$;

-- Agree on the order of a kind's queue for the time of a lease, but ${order_ms_max} ms at most. `granted` is false if replicas
-- have agreed on another order that has not run out: `held_as`, by `held_by` last. An agreement never becomes shorter. Calls
-- write one at a time. One that has waited in vain for the others, as where a transaction was left open, answers by what is
-- on record, and writes nothing: replicas repeat the call with each report.
CREATE FUNCTION omega.agree_on_order(_scheduler text, _replica text, _name text, _lease_ms bigint, OUT granted boolean, OUT held_by text, OUT held_as text)
LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    lasts interval;
    is_alone boolean;
BEGIN
    PERFORM needs_read_committed();
    lasts := least(lease_length(_lease_ms), lease_length(${order_ms_max}));
    IF NOT is_name(_scheduler) OR NOT is_name(_replica) OR (_name IN ('${queue_orders}')) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad order: it needs a kind, a replica, and one of ${queue_orders_told}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR tries IN 1 .. 4 LOOP
        is_alone := pg_try_advisory_xact_lock(hashtext('omega.queue_order'), 0);
        EXIT WHEN is_alone OR tries = 4;
        PERFORM pg_sleep(random() * 0.02);
    END LOOP;
    IF is_alone THEN
        DELETE FROM queue_order o WHERE o.expires_at <= clock_timestamp();
    END IF;
    SELECT o.scheduler || '/' || o.replica, o.name INTO held_by, held_as
      FROM queue_order o WHERE o.scheduler = _scheduler AND o.name <> _name AND o.expires_at > clock_timestamp();
    granted := NOT FOUND;
    IF NOT granted OR NOT is_alone THEN
        RETURN;
    ELSIF (SELECT count(*) FROM queue_order o WHERE o.login = session_user AND o.scheduler <> _scheduler) >= ${kinds_per_login_max} THEN
        RAISE EXCEPTION 'login % has agreed on orders for ${kinds_per_login_max} kinds of scheduler, which is the limit', session_user
              USING ERRCODE = 'program_limit_exceeded';
    END IF;
    -- For ${keys_renewed_s} s after a change keys are computed with each call: transactions that were open then may have
    -- locked jobs, or made jobs with the old keys.
    IF starts_with(_name, 'deadline') AND NOT EXISTS (
           SELECT FROM queue_order o
            WHERE o.scheduler = _scheduler AND o.name = _name AND o.changed_at < clock_timestamp() - interval '${keys_renewed_s} s') THEN
        PERFORM renew_keys(_scheduler, _name);
    END IF;
    INSERT INTO queue_order AS o (scheduler, name, replica, expires_at)
    VALUES (_scheduler, _name, _replica, clock_timestamp() + lasts)
        ON CONFLICT (scheduler) DO UPDATE
       SET replica = excluded.replica, login = session_user, expires_at = greatest(o.expires_at, excluded.expires_at);
END $$;

-- Let one process at a time reclaim for tenants, for the time of a lease, but ${reclaim_ms_max} ms at most. Returns whether the
-- caller holds the lease now; its holder may renew it. No call waits: if another one runs, the answer is false.
CREATE FUNCTION omega.lease_reclaim(_holder uuid, _scheduler text, _replica text, _lease_ms bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    lasts interval;
BEGIN
    PERFORM needs_read_committed();
    lasts := least(lease_length(_lease_ms), lease_length(${reclaim_ms_max}));
    IF _holder IS NULL OR NOT is_name(_scheduler) OR NOT is_name(_replica) THEN
        RAISE EXCEPTION 'bad lease: it needs a holder, a kind and a replica' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtext('omega.reclaim_lease'), 0) THEN
        RETURN false;
    END IF;
    INSERT INTO reclaim_lease AS l (holder, scheduler, replica, expires_at)
    VALUES (_holder, _scheduler, _replica, clock_timestamp() + lasts)
        ON CONFLICT (single) DO UPDATE
       SET holder = excluded.holder, scheduler = excluded.scheduler, replica = excluded.replica, login = session_user,
           expires_at = excluded.expires_at
     WHERE l.expires_at <= clock_timestamp() OR (l.holder = _holder AND l.login = session_user);
    RETURN FOUND;
END $$;

-- Set the weight and the parent of a tenant. A parent is a tenant that was set before, and no descendant. The table is locked
-- so that two calls cannot make a cycle together; reads go on.
CREATE FUNCTION omega.set_tenant(_name text, _weight integer, _parent text)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    above text := _parent;
    levels integer := 1;
BEGIN
    PERFORM needs_read_committed();
    IF NOT is_name(_name) OR (_weight BETWEEN 1 AND ${tenant_weight_max}) IS NOT TRUE OR NOT (_parent IS NULL OR is_name(_parent)) THEN
        RAISE EXCEPTION 'bad tenant: it has a name, a weight of 1 to ${tenant_weight_max}, and perhaps a parent'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOCK TABLE tenant IN SHARE ROW EXCLUSIVE MODE;
    IF _parent IS NOT NULL AND NOT EXISTS (SELECT FROM tenant WHERE name = _parent) THEN
        RAISE EXCEPTION 'bad tenant: its parent % was not set', _parent USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WHILE above IS NOT NULL AND levels <= ${tenant_depth_max} LOOP
        levels := levels + 1;
        IF above = _name THEN
            RAISE EXCEPTION 'bad tenant: % would be its own ancestor', _name USING ERRCODE = 'invalid_parameter_value';
        END IF;
        SELECT parent INTO above FROM tenant WHERE name = above;
    END LOOP;
    IF levels + height_of_tenant(_name) - 1 > ${tenant_depth_max} THEN
        RAISE EXCEPTION 'bad tenant: more than ${tenant_depth_max} levels' USING ERRCODE = 'invalid_parameter_value';
    ELSIF (SELECT count(*) FROM tenant WHERE name <> _name) >= ${lanes_max} THEN
        RAISE EXCEPTION 'bad tenant: ${lanes_max} are set, and no more may be' USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO tenant AS t (name, weight, parent) VALUES (_name, _weight, _parent)
        ON CONFLICT (name) DO UPDATE SET weight = excluded.weight, parent = excluded.parent;
END $$;

-- How many levels of tenants there are from this one down; 1 if it has no children.
CREATE FUNCTION omega.height_of_tenant(_name text)
RETURNS integer LANGUAGE sql STABLE AS $$
    WITH RECURSIVE below AS (
        SELECT _name AS name, 1 AS height
         UNION ALL
        SELECT t.name, b.height + 1 FROM below b JOIN omega.tenant t ON t.parent = b.name
    )
    SELECT max(height) FROM below
$$;

-- Remove the weight and the parent of a tenant; false if none were set. Raises if it is the parent of others.
CREATE FUNCTION omega.remove_tenant(_name text)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    LOCK TABLE tenant IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM tenant WHERE parent = _name) THEN
        RAISE EXCEPTION 'bad tenant: % is the parent of others', _name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM tenant WHERE name = _name;
    RETURN FOUND;
END $$;
