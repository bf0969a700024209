-- Quotas: docs/decisions/0016. The balance of each is divided into rows, its shards, so that commits of one
-- tenant can run in parallel. Lock order: jobs by id, then quotas by id and their shards in order, then
-- machines by id. Budgets are in the order of omega/model/quotas.py; jobs are the last.

-- The cost of amounts in each budget.
CREATE FUNCTION omega.cost({{ _${kind} bigint }})
RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[${costs}]
$$;

-- The quotas that jobs draw on; a job is idle if none of its tasks run.
CREATE FUNCTION omega.quotas_of(_jobs bigint[])
RETURNS TABLE (job bigint, quota integer, is_idle boolean) LANGUAGE sql STABLE AS $$
    SELECT j.id, q.id, j.placed = j.ended
      FROM omega.job j JOIN omega.job_spec s ON s.job_id = j.id
      JOIN omega.quota q ON (q.scope = 'tenant' AND q.name = s.tenant) OR (q.scope = 'scheduler' AND q.name = j.scheduler)
     WHERE j.id = ANY (_jobs)
$$;

-- For each party, the position among these quotas of its tenant's and then of its kind's; null if there is no
-- such quota. Two entries for each party.
CREATE FUNCTION omega.draws(_party bigint[], _quotas integer[])
RETURNS integer[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(array_position(_quotas, q.id) ORDER BY p.n, k.scope DESC)
      FROM unnest(_party) WITH ORDINALITY AS p (id, n) CROSS JOIN (VALUES ('tenant'), ('scheduler')) AS k (scope)
      LEFT JOIN omega.job j ON j.id = p.id
      LEFT JOIN omega.job_spec s ON s.job_id = p.id
      LEFT JOIN omega.quota q ON q.scope = k.scope AND q.name = CASE k.scope WHEN 'tenant' THEN s.tenant ELSE j.scheduler END
$$;

-- Lock the shards that a transaction needs. One unlocked shard that covers all it may need is enough; otherwise all
-- shards of the quota are locked, whose sum is exact. `shards` has the one shard's number, or null.
CREATE FUNCTION omega.hold_quotas(
    _jobs bigint[], _ends integer[], _shapes integer[], _amounts integer[],
    _other_claims integer[], _other_shapes integer[], _evict_jobs bigint[],
    OUT quotas integer[], OUT shards integer[],
    OUT balances bigint[],    -- the balances of the shards: all budgets of the first quota, then of the second ...
    OUT asked bigint[],       -- what the claims cost on their own machines, in the same order
    OUT covered boolean       -- no quota can refuse a claim
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    drawing bigint[];   -- the jobs that draw on a quota ...
    drawn integer[];    -- ... which quota ...
    idle boolean[];     -- ... and whether the job is idle
    jobs integer[];     -- an entry for each quota: how many idle jobs with claims may begin to count
    most bigint[];      -- like asked, but with all alternates as well
    claimants bigint[] := claimants(_jobs, _ends);
    asking record;
    charge bigint[];
    need bigint[];
    shard integer;
    held bigint[];
BEGIN
    -- Quotas are read once, because they may be set or removed at any moment.
    SELECT array_agg(d.job), array_agg(d.quota), array_agg(d.is_idle) INTO drawing, drawn, idle
      FROM quotas_of(_jobs || _evict_jobs) AS d;
    SELECT coalesce(array_agg(q.quota ORDER BY q.quota), '{}'), array_agg(q.jobs ORDER BY q.quota) INTO quotas, jobs
      FROM (SELECT d.quota, count(*) FILTER (WHERE d.is_idle AND d.job = ANY (claimants)) AS jobs
              FROM unnest(drawing, drawn, idle) AS d (job, quota, is_idle) GROUP BY d.quota) AS q;
    asked := array_fill(0::bigint, ARRAY[cardinality(quotas) * ${budgets}]);
    most := asked;
    covered := true;
    FOR asking IN
        SELECT array_position(quotas, d.quota) AS place, c.shape, count(*) FILTER (WHERE c.own) AS own, count(*) AS any
          FROM (SELECT u.job, u.shape, true AS own FROM unnest(claimants, _shapes) AS u (job, shape)
                 UNION ALL
                SELECT claimants[o.claim], o.shape, false FROM unnest(_other_claims, _other_shapes) AS o (claim, shape)) AS c
          JOIN unnest(drawing, drawn) AS d (job, quota) USING (job) GROUP BY 1, 2
    LOOP
        charge := cost({{ _amounts[(asking.shape - 1) * ${kinds} + ${number}] }});
        FOR b IN 1 .. ${budgets} LOOP
            asked[(asking.place - 1) * ${budgets} + b] := asked[(asking.place - 1) * ${budgets} + b] + asking.own * charge[b];
            most[(asking.place - 1) * ${budgets} + b] := most[(asking.place - 1) * ${budgets} + b] + asking.any * charge[b];
        END LOOP;
    END LOOP;

    FOR q IN 1 .. cardinality(quotas) LOOP
        asked[q * ${budgets}] := jobs[q];
        most[q * ${budgets}] := jobs[q];
        need := most[(q - 1) * ${budgets} + 1 : q * ${budgets}];
        shard := NULL;
        IF cardinality(_evict_jobs) = 0 THEN
            SELECT s.shard, s.free INTO shard, held FROM quota_shard s
             WHERE s.quota_id = quotas[q] AND NOT s.closed AND [[ s.free[${number}] >= need[${number}] | AND ]]
             ORDER BY (s.shard + pg_backend_pid()) % ${shards} LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
        END IF;
        IF shard IS NULL THEN
            -- A shard that changed while it was read is locked now, but does not cover the need. A transaction that
            -- holds one shard must not wait for another: it locks all without waiting, or the commit is repeated.
            IF EXISTS (SELECT FROM quota_shard s WHERE s.quota_id = quotas[q] AND s.xmax = pg_current_xact_id()::xid) THEN
                PERFORM 1 FROM quota_shard s WHERE s.quota_id = quotas[q] FOR NO KEY UPDATE NOWAIT;
            END IF;
            SELECT ARRAY[ [[ sum(s.free[${number}])::bigint ]] ] INTO held
              FROM (SELECT a.free FROM quota_shard a WHERE a.quota_id = quotas[q] ORDER BY a.shard FOR NO KEY UPDATE) AS s;
            IF held[1] IS NULL THEN  -- the quota was removed while this waited for its shards
                held := array_fill(${unlimited}::bigint, ARRAY[${budgets}]);
            END IF;
            covered := covered AND [[ (need[${number}] = 0 OR held[${number}] >= need[${number}]) | AND ]];
        END IF;
        shards := shards || shard;
        balances := balances || held;
    END LOOP;
END $$;

-- One array minus another, entry by entry.
CREATE FUNCTION omega.minus(_from bigint[], _less bigint[])
RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(f - l ORDER BY n) FROM unnest(_from, _less) WITH ORDINALITY AS u (f, l, n)
$$;

-- Write the balances of the locked quotas. If all shards were locked their sum is divided again; this connection's
-- shard gets eight times what was asked for, but at most half and at least an equal share.
CREATE FUNCTION omega.settle_quotas(_quotas integer[], _shards integer[], _balances bigint[], _asked bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    total bigint[];
    others bigint[];
    first integer;
BEGIN
    FOR q IN 1 .. cardinality(_quotas) LOOP
        first := (q - 1) * ${budgets};
        total := _balances[first + 1 : first + ${budgets}];
        IF _shards[q] IS NOT NULL THEN
            UPDATE quota_shard SET free = total WHERE quota_id = _quotas[q] AND shard = _shards[q];
        ELSE
            others := CASE WHEN 0 > ANY (total) THEN array_fill(0::bigint, ARRAY[${budgets}]) ELSE ARRAY[
                [[ (total[${number}] - greatest(total[${number}] / ${shards},
                                                least(total[${number}] / 2, 8 * _asked[first + ${number}])))
                   / (${shards} - 1) ]] ] END;
            UPDATE quota_shard
               SET free = CASE WHEN shard = pg_backend_pid() % ${shards}
                               THEN ARRAY[ [[ total[${number}] - (${shards} - 1) * others[${number}] ]] ]
                               ELSE others END,
                   closed = 0 > ANY (total)
             WHERE quota_id = _quotas[q];
        END IF;
    END LOOP;
END $$;

-- The balances after a claim has been charged and its victims' charges were given back; null if one of the
-- claimant's quotas would be used above its limit, and more than before.
CREATE FUNCTION omega.charged(
    _balances bigint[], _drawn integer[], _running integer[], _claimant integer, _cost bigint[],
    _evicts integer[], _victim_party integer[], _victim_amounts bigint[]
) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    remains bigint[] := _balances;
    amounts bigint[];
    given_back bigint[];
    victim integer;
    party integer;
    d integer;
    place integer;
BEGIN
    FOREACH victim IN ARRAY _evicts LOOP
        party := _victim_party[victim];
        _running[party] := _running[party] - 1;
        amounts := _victim_amounts[(victim - 1) * ${kinds} + 1 : victim * ${kinds}];
        given_back := cost({{ amounts[${number}] }});
        given_back[${budgets}] := (_running[party] = 0)::integer;
        FOREACH d IN ARRAY _drawn[2 * party - 1 : 2 * party] LOOP
            CONTINUE WHEN d IS NULL;
            FOR b IN 1 .. ${budgets} LOOP
                place := (d - 1) * ${budgets} + b;
                remains[place] := remains[place] + given_back[b];
            END LOOP;
        END LOOP;
    END LOOP;
    _cost[${budgets}] := (_running[_claimant] = 0)::integer;
    FOREACH d IN ARRAY _drawn[2 * _claimant - 1 : 2 * _claimant] LOOP
        CONTINUE WHEN d IS NULL;
        FOR b IN 1 .. ${budgets} LOOP
            place := (d - 1) * ${budgets} + b;
            remains[place] := remains[place] - _cost[b];
            IF remains[place] < 0 AND remains[place] < _balances[place] THEN
                RETURN NULL;
            END IF;
        END LOOP;
    END LOOP;
    RETURN remains;
END $$;

-- Give the charges of running tasks that are about to end back to the quotas; with starts, only those of
-- allocations that began then. The jobs are locked.
CREATE FUNCTION omega.give_back_to_quotas(_jobs bigint[], _tasks integer[], _started_ms bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    freed record;
BEGIN
    FOR freed IN
        WITH ending AS (
            SELECT a.* FROM (SELECT DISTINCT * FROM unnest(_jobs, _tasks, _started_ms)) AS w (job_id, task, started_ms)
              JOIN allocation a USING (job_id, task)
             WHERE _started_ms IS NULL OR w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint
        ), per_job AS (
            SELECT e.job_id, count(*) AS tasks, {{ sum(e.${kind})::bigint AS ${kind} }} FROM ending e GROUP BY e.job_id
        )
        SELECT q.quota, cost({{ sum(p.${kind})::bigint }}) AS cost,
               count(*) FILTER (WHERE j.placed - j.ended = p.tasks) AS jobs
          FROM per_job p JOIN job j ON j.id = p.job_id JOIN quotas_of(_jobs) q ON q.job = j.id
         GROUP BY q.quota ORDER BY q.quota
    LOOP
        freed.cost[${budgets}] := freed.jobs;
        UPDATE quota_shard SET free = ARRAY[ [[ free[${number}] + freed.cost[${number}] ]] ]
         WHERE quota_id = freed.quota AND shard = pg_backend_pid() % ${shards};
    END LOOP;
END $$;
