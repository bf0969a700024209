-- The commit rule: docs/decisions/0003, 0015 and 0016. omega/cell/judge.py and judge_sequential.py have the same rule in
-- numpy. Property tests compare both with omega/testing/twin.py.
--
-- __init__.py says what the placeholders in this folder stand for. The functions grant_any_kind and grant_no_device are made
-- from grant_plainly.sql. What refuses claims is in judge_claims.sql.
--
-- Locks are always taken in this order: jobs by id, then quotas by id, then machines by id. So two commits on the
-- same rows queue behind one another and cannot deadlock. The function needs READ COMMITTED: a row is judged as it
-- is when its lock has been taken.
CREATE FUNCTION omega.commit_claims(
    _id uuid, _scheduler text, _replica text, _by_sequence boolean,
    -- For each job: if fewer than grants_min of its claims would be granted, none is. Its end is its last claim, counted
    -- from 1.
    _jobs bigint[], _tokens uuid[], _grants_min integer[], _ends integer[],
    -- For each claim: its task, its machine, that machine's sequence in the view, and its shape, counted from 1.
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[],
    _amounts integer[],                               -- all kinds of shape 1, then of shape 2 ...
    -- For each alternate (another machine for a claim), and for each eviction; both ascend by claim, counted from 1. Most
    -- transactions have none, and do not send these.
    _other_claims integer[] DEFAULT '{}', _other_machines integer[] DEFAULT '{}',
    _other_seen bigint[] DEFAULT '{}', _other_shapes integer[] DEFAULT '{}',
    _evict_claims integer[] DEFAULT '{}', _evict_jobs bigint[] DEFAULT '{}', _evict_tasks integer[] DEFAULT '{}',
    OUT verdicts smallint[], OUT landed integer[],  -- for each claim; landed: where it was granted, its own machine if refused
    OUT evicted_jobs bigint[], OUT evicted_tasks integer[], OUT fresh bytea,
    OUT repeated boolean  -- the answer is the recorded one: a transaction with this id was judged before
) LANGUAGE plpgsql SET search_path = omega, pg_temp
-- For this function and those it calls: planning anew for each call makes small commits a quarter slower.
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    named integer[];       -- all machines named in claims and alternates
    -- Machines to lock: those named, and for two kinds of evicted job all machines on which it runs: a gang, because all
    -- of its tasks are evicted if it falls below its minimum; and a job of this transaction, which may lose tasks anywhere.
    touched integer[];
    held boolean[];        -- an entry for each job: is its lease held under the token?
    some_held boolean;     -- if no lease is held, nothing is granted, and no quota or machine is locked
    rest int4multirange[];  -- an entry for each job: the tasks that stay unplaced if all claims are accepted
    sound boolean;         -- jobs and leases allow all claims to be accepted
    with_devices boolean;  -- some claim asks for a GPU
    limited boolean;       -- there are quotas
    -- By hold_quotas: the quotas and shards that are locked, their balances, what the claims ask of them, and whether the
    -- balances cover that. If all shards are locked, settle_quotas divides their sum among them anew, and needs
    -- what the claims ask to choose the part of this connection's shard.
    draw record;
    evicted_machines integer[];
    is_the_same boolean;   -- as the recorded transaction with this id
    judged record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM needs_read_committed();
    ELSIF _id IS NULL OR _by_sequence IS NULL OR NOT is_name(_scheduler) OR NOT is_name(_replica) THEN
        RAISE EXCEPTION 'bad transaction: it takes an id, a rule, and the names of a scheduler and a replica'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM check_transaction(_jobs, _tokens, _grants_min, _ends, _tasks, _machines, _seen, _shapes, _amounts);
    -- The sum is null if one of these arrays is; check_choices refuses that.
    IF (cardinality(_other_claims) + cardinality(_other_machines) + cardinality(_other_seen) + cardinality(_other_shapes)
        + cardinality(_evict_claims) + cardinality(_evict_jobs) + cardinality(_evict_tasks) = 0) IS NOT TRUE THEN
        PERFORM check_choices(cardinality(_tasks), cardinality(_amounts) / ${kinds}, _other_claims, _other_machines,
                              _other_seen, _other_shapes, _evict_claims, _evict_jobs, _evict_tasks);
    END IF;
    named := _machines || _other_machines;

    -- A repeated call waits here if it locks a job that the first call has locked, and then finds its record below. What
    -- happens if the two calls lock no job in common is said at the end of this function.
    WITH locked AS MATERIALIZED (
        SELECT id, state, lease_token, placed, minimum, unplaced
          FROM job
         WHERE id = ANY (_jobs || _evict_jobs)
           -- A job is locked only if its lease is held, or if it may lose tasks to a job whose lease is.
           AND (lease_token = ANY (_tokens)
                OR id = ANY (_evict_jobs)
                   AND EXISTS (SELECT FROM job h WHERE h.id = ANY (_jobs) AND h.lease_token = ANY (_tokens)))
         ORDER BY id FOR NO KEY UPDATE
    ), claimed AS (
        -- A claim's job is the first whose end is at least the claim's number.
        SELECT width_bucket((c.n - 1)::integer, _ends) + 1 AS n, range_agg(int4range(c.task, c.task + 1)) AS tasks,
               count(*) AS claims, count(DISTINCT c.task) AS different
          FROM unnest(_tasks) WITH ORDINALITY AS c (task, n)
         GROUP BY 1
    ), facts AS (
        SELECT j.n, coalesce(l.state = 'planning' AND l.lease_token = j.token, false) AS held,
               -- Whether its claims name unplaced tasks only, each once; true without claims.
               coalesce(c.tasks <@ l.unplaced AND c.claims = c.different, c.n IS NULL) AS placeable,
               coalesce(c.claims, 0) >= greatest(j.grants_min, l.minimum - l.placed) AS enough,
               l.unplaced - coalesce(c.tasks, '{}') AS rest
          FROM unnest(_jobs, _tokens, _grants_min) WITH ORDINALITY AS j (id, token, grants_min, n)
          LEFT JOIN locked l USING (id) LEFT JOIN claimed c USING (n)
    )
    SELECT array_agg(f.held ORDER BY f.n), array_agg(f.rest ORDER BY f.n), bool_and(f.held AND f.placeable AND f.enough),
           EXISTS (SELECT FROM unnest(_amounts) WITH ORDINALITY AS a (amount, n)
                    WHERE a.amount > 0 AND (a.n - 1) % ${kinds} >= ${kinds_without_devices})
      INTO held, rest, sound, with_devices
      FROM facts f;
    some_held := true = ANY (held);

    -- Is there a record of this id, and are there quotas? In a statement of its own, after the locks: docs/decisions/0029.
    SELECT q.there, t.id IS NOT NULL, t.verdicts, t.machines, t.evicted_jobs, t.evicted_tasks, t.evicted_machines,
           t.jobs = _jobs AND t.ends = _ends AND t.tasks = _tasks
      INTO limited, repeated, verdicts, landed, evicted_jobs, evicted_tasks, evicted_machines, is_the_same
      FROM (SELECT EXISTS (SELECT FROM quota) AS there) AS q LEFT JOIN transaction t ON t.id = _id;
    IF repeated THEN
        IF NOT is_the_same THEN
            RAISE EXCEPTION 'bad transaction: another one has this id' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        fresh := packed_machines(named || evicted_machines);
        RETURN;
    END IF;

    IF limited AND some_held THEN
        draw := hold_quotas(_jobs, _ends, _shapes, _amounts, _other_claims, _other_shapes, _evict_jobs);
    ELSE
        SELECT '{}'::integer[] AS quotas, NULL::bigint[] AS balances, true AS covered INTO draw;
    END IF;
    -- The common case: grant_any_kind or grant_no_device grants all claims and returns their rows. If not all can be
    -- granted, it returns null and has written nothing; the claims are then judged one by one below.
    IF sound AND draw.covered AND cardinality(_evict_claims) = 0 THEN
        IF cardinality(_other_machines) > 0 THEN
            -- The rows of alternates are returned too; without locks they could be of another moment.
            PERFORM 1 FROM machine WHERE id = ANY (named) ORDER BY id FOR NO KEY UPDATE;
        END IF;
        IF with_devices THEN
            fresh := grant_any_kind(_by_sequence, _jobs, rest, _ends, _tasks, _machines, _seen, _shapes, _amounts);
        ELSE
            fresh := grant_no_device(_by_sequence, _jobs, rest, _ends, _tasks, _machines, _seen, _shapes, _amounts);
        END IF;
    END IF;
    IF fresh IS NOT NULL THEN
        verdicts := array_fill(${accepted}::smallint, ARRAY[cardinality(_tasks)]);
        landed := _machines;
        evicted_jobs := '{}';
        evicted_tasks := '{}';
        evicted_machines := '{}';
        IF cardinality(draw.quotas) > 0 THEN
            PERFORM settle_quotas(draw.quotas, draw.shards, minus(draw.balances, draw.asked), draw.asked);
        END IF;
        IF cardinality(_other_machines) > 0 THEN
            fresh := packed_machines(named);
        END IF;
    ELSE
        touched := CASE WHEN some_held
                        THEN named || ARRAY(SELECT a.machine_id FROM allocation a JOIN job j ON j.id = a.job_id
                                             WHERE a.job_id = ANY (_evict_jobs)
                                               AND (j.minimum > 0 OR a.job_id = ANY (_jobs)))
                        ELSE '{}' END;
        PERFORM 1 FROM machine WHERE id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
        judged := judge_claims(_by_sequence, _jobs, _grants_min, _ends, _tasks, _machines, _seen, _shapes, _amounts,
                               _other_claims, _other_machines, _other_seen, _other_shapes,
                               _evict_claims, _evict_jobs, _evict_tasks, touched, held, draw.quotas, draw.balances);
        verdicts := judged.verdicts;
        landed := judged.landed;
        evicted_jobs := judged.evicted_jobs;
        evicted_tasks := judged.evicted_tasks;
        evicted_machines := judged.evicted_machines;
        IF ${accepted} = ANY (verdicts) THEN
            PERFORM apply_verdicts(_jobs, _ends, _tasks, landed, judged.landed_shapes, _amounts, verdicts,
                                   evicted_jobs, evicted_tasks, judged.evicted_for);
            IF cardinality(draw.quotas) > 0 THEN
                PERFORM settle_quotas(draw.quotas, draw.shards, judged.balances, draw.asked);
            END IF;
        END IF;
        fresh := packed_machines(named || evicted_machines);
    END IF;

    INSERT INTO transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts,
                             evicted_jobs, evicted_tasks, evicted_machines)
    VALUES (_id, _scheduler, _replica, _by_sequence, _jobs, _ends, _tasks, landed, verdicts,
            evicted_jobs, evicted_tasks, evicted_machines)
        ON CONFLICT DO NOTHING;
    -- Another call with this id ran at the same time, and neither waited for the other above: they locked no job in
    -- common. If this call granted nothing, it wrote nothing, and its answer may stand.
    IF NOT FOUND AND ${accepted} = ANY (verdicts) THEN
        RAISE EXCEPTION 'bad transaction: another one has this id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
