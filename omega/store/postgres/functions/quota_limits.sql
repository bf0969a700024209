-- Setting quotas: docs/decisions/0016 and 0029. Meanwhile only commits and ends of jobs that the quota covers
-- have to wait.

-- Set a quota or change its limits; return whether its use is counted. A new quota's use is not: until count_quota
-- was called, its balance is lower than any use that can end, so that it grants nothing.
CREATE FUNCTION omega.set_quota(_scope text, _name text, _limits bigint[])
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    it record;
    held bigint[];
BEGIN
    PERFORM needs_read_committed();
    IF cardinality(_limits) IS DISTINCT FROM ${budgets} OR array_lower(_limits, 1) <> 1 OR array_ndims(_limits) <> 1
       OR array_position(_limits, NULL) IS NOT NULL OR 0 > ANY (_limits) OR ${unlimited} < ANY (_limits) THEN
        RAISE EXCEPTION 'bad quota: it takes ${budgets} limits, none negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_name(_name) OR _scope NOT IN ('tenant', 'scheduler') IS NOT FALSE THEN
        RAISE EXCEPTION 'bad quota: it is for a tenant or for a scheduler, by name' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- An existing row is only locked here; its limits are written below.
    INSERT INTO quota AS q (scope, name, limits) VALUES (_scope, _name, _limits)
        ON CONFLICT (scope, name) DO UPDATE SET name = excluded.name
    RETURNING q.id, q.limits, q.counted INTO it;
    IF NOT EXISTS (SELECT FROM quota_shard WHERE quota_id = it.id) THEN
        INSERT INTO quota_shard (quota_id, shard, free, closed)
        SELECT it.id, n, array_fill(-${unlimited}, ARRAY[${budgets}]), true FROM generate_series(0, ${shards} - 1) AS n;
    ELSE
        UPDATE quota SET limits = _limits WHERE id = it.id;
    END IF;
    IF it.counted THEN
        PERFORM 1 FROM quota_shard WHERE quota_id = it.id ORDER BY shard FOR NO KEY UPDATE;
        SELECT ARRAY[ [[ sum(free[${number}])::bigint + _limits[${number}] - it.limits[${number}] ]] ] INTO held
          FROM quota_shard WHERE quota_id = it.id;
        PERFORM settle_quotas(ARRAY[it.id], ARRAY[NULL]::integer[], held, array_fill(0::bigint, ARRAY[${budgets}]));
    END IF;
    RETURN it.counted;
END $$;

-- The open transactions of others that may have granted or ended tasks without seeing any quota: they have read the
-- table of quotas, and locked jobs. Locks on tables are taken before a statement reads rows, and kept until the
-- transaction ends. Each array has an entry for each transaction; a prepared one has no process.
CREATE FUNCTION omega.transactions_past_quotas(OUT transactions text[], OUT pids integer[])
LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(l.virtualtransaction), '{}'), coalesce(array_agg(l.pid), '{}')
      FROM (SELECT virtualtransaction, pid FROM pg_locks
             WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND pid IS DISTINCT FROM pg_backend_pid() AND granted
               AND (relation = 'omega.quota'::regclass OR relation = 'omega.job'::regclass AND mode = 'RowShareLock')
             GROUP BY virtualtransaction, pid HAVING count(DISTINCT relation) = 2) AS l
$$;

-- Sum up what the jobs of a quota hold, and count its use from now on; false if there is no such quota. This needs a
-- later transaction than the one that set it, because by then every commit sees the quota. It waits at most a second
-- for transactions that did not see it. While it sums up, only commits of this quota wait.
CREATE FUNCTION omega.count_quota(_scope text, _name text)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    it record;
    past text[];
    open_now record;
    lock_timeout timestamptz := clock_timestamp() + interval '1 s';
    held bigint[];
BEGIN
    PERFORM needs_read_committed();
    SELECT q.id, q.limits, q.set_by INTO it FROM quota q WHERE q.scope = _scope AND q.name = _name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    ELSIF it.set_by = pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'bad quota: it was set in this transaction, and is to be counted in a later one'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT t.transactions INTO past FROM transactions_past_quotas() AS t;
    LOOP
        SELECT * INTO open_now FROM transactions_past_quotas();
        past := ARRAY(SELECT unnest(past) INTERSECT SELECT unnest(open_now.transactions));
        EXIT WHEN cardinality(past) = 0;
        IF clock_timestamp() > lock_timeout THEN
            RAISE EXCEPTION 'the quota of % % grants nothing yet: a transaction that began before it is still open (%); set it again',
                _scope, _name,
                (SELECT string_agg(CASE WHEN o.pid IS NULL THEN 'a prepared one'
                                        ELSE format('login %s, process %s', a.usename, o.pid) END, '; ')
                   FROM unnest(open_now.transactions, open_now.pids) AS o (transaction, pid) LEFT JOIN pg_stat_activity a USING (pid)
                  WHERE o.transaction = ANY (past))
                USING ERRCODE = 'lock_not_available';
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    -- A commit or end that changes what these jobs hold locks one of these first.
    PERFORM 1 FROM quota_shard WHERE quota_id = it.id ORDER BY shard FOR NO KEY UPDATE;
    SELECT u.used INTO held FROM used_of_quotas() AS u WHERE u.quota = it.id;
    held := ARRAY[ [[ it.limits[${number}] - coalesce(held[${number}], 0) ]] ];
    PERFORM settle_quotas(ARRAY[it.id], ARRAY[NULL]::integer[], held, array_fill(0::bigint, ARRAY[${budgets}]));
    UPDATE quota SET counted = true WHERE id = it.id;
    RETURN true;
END $$;

-- Remove a quota; false if there was none. A commit that waited for one of its shards then finds none.
CREATE FUNCTION omega.remove_quota(_scope text, _name text)
RETURNS boolean LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    it integer;
BEGIN
    PERFORM needs_read_committed();
    DELETE FROM quota WHERE scope = _scope AND name = _name RETURNING id INTO it;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM quota_shard WHERE quota_id = it ORDER BY shard FOR UPDATE;
    DELETE FROM quota_shard WHERE quota_id = it;
    RETURN true;
END $$;

-- All quotas with their limits and balances; the balance is 0 until the use is counted.
CREATE FUNCTION omega.read_quotas()
RETURNS TABLE (scope text, name text, limits bigint[], remains bigint[], counted boolean) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    SELECT q.scope, q.name, q.limits, ARRAY[ [[ CASE WHEN q.counted THEN sum(s.free[${number}]) ELSE 0 END::bigint ]] ], q.counted
      FROM quota q JOIN quota_shard s ON s.quota_id = q.id GROUP BY q.id ORDER BY q.scope, q.name
$$;
