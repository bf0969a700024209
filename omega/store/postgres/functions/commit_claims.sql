-- The commit rule: docs/decisions/0003, 0015 and 0016. omega/cell/judge.py says the same in numpy, and a
-- property test compares.
--
-- Lock order, always: jobs by id, then quotas by id, then machines by id. Two commits that want the same rows queue
-- behind one another and cannot deadlock. Needs READ COMMITTED: a row is judged as it is once
-- its lock is held.
CREATE FUNCTION omega.commit_claims(
    _id uuid, _scheduler text, _replica text, _by_sequence boolean,
    _jobs bigint[], _tokens uuid[], _minimums integer[], _ends integer[],      -- an entry a job
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[],  -- an entry a claim
    _amounts integer[],                               -- all kinds of shape 1, then of shape 2 ...
    -- An entry an alternate, and an eviction; both ascending by claim, from 1.
    _other_claims integer[], _other_machines integer[], _other_seen bigint[], _other_shapes integer[],
    _evict_claims integer[], _evict_jobs bigint[], _evict_tasks integer[],
    OUT verdicts smallint[], OUT landed integer[],
    OUT evicted_jobs bigint[], OUT evicted_tasks integer[], OUT fresh bytea, OUT replayed boolean
) LANGUAGE plpgsql SET search_path = omega, pg_temp
-- For this function and those it calls: planned anew for each call's arrays, small commits take a quarter more.
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    named integer[];       -- all machines named
    touched integer[];     -- and those that the fall of a gang can touch
    held boolean[];        -- an entry a job: is the lease still theirs?
    lacking integer[];     -- an entry a job: grants that its gang still needs
    plain boolean;         -- every claim stands on its own machine, whatever the order
    evicted_machines integer[];
    is_the_same boolean;   -- as the one that has this id, as far as it is recorded
    judged record;
    limited boolean;       -- there are quotas
    draw record;           -- what is held of them
BEGIN
    PERFORM check_transaction(_jobs, _tokens, _minimums, _ends, _tasks, _machines, _seen, _shapes, _amounts);
    PERFORM check_choices(cardinality(_tasks), cardinality(_amounts) / ${kinds}, _other_claims, _other_machines,
                          _other_seen, _other_shapes, _evict_claims, _evict_jobs, _evict_tasks);
    named := _machines || _other_machines;
    touched := named;

    -- One who asks twice waits here for the first call to end, and then finds its record.
    WITH locked AS MATERIALIZED (
        SELECT id, state, lease_token, placed, minimum
          FROM job WHERE id = ANY (_jobs || _evict_jobs) ORDER BY id FOR NO KEY UPDATE
    )
    SELECT array_agg(coalesce(l.state = 'planning' AND l.lease_token = j.token, false) ORDER BY j.n),
           array_agg(greatest(l.minimum - l.placed, 0) ORDER BY j.n),
           EXISTS (SELECT FROM quota)
      INTO held, lacking, limited
      FROM unnest(_jobs, _tokens) WITH ORDINALITY AS j (id, token, n) LEFT JOIN locked l USING (id);

    SELECT t.verdicts, t.machines, t.evicted_jobs, t.evicted_tasks, t.evicted_machines,
           t.jobs = _jobs AND t.ends = _ends AND t.tasks = _tasks
      INTO verdicts, landed, evicted_jobs, evicted_tasks, evicted_machines, is_the_same
      FROM transaction t WHERE t.id = _id;
    replayed := FOUND;
    IF replayed THEN
        IF NOT is_the_same THEN
            RAISE EXCEPTION 'bad transaction: another one has this id' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        fresh := packed_machines(named || evicted_machines);
        RETURN;
    END IF;

    IF limited THEN
        draw := hold_quotas(_jobs, _ends, _shapes, _amounts, _other_claims, _other_shapes, _evict_jobs);
    ELSE
        SELECT '{}'::integer[] AS quotas, NULL::bigint[] AS budget, true AS covered INTO draw;
    END IF;
    IF cardinality(_other_claims) + cardinality(_evict_claims) > 0 THEN
        touched := touched || ARRAY(SELECT a.machine_id FROM allocation a JOIN job j ON j.id = a.job_id
                                     WHERE a.job_id = ANY (_evict_jobs) AND j.minimum > 0);
        PERFORM 1 FROM machine WHERE id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
    END IF;
    WITH locked AS MATERIALIZED (
        SELECT id, state, sequence, {{ ${kind}_used, ${kind}_capacity }}
          FROM machine WHERE id = ANY (_machines) ORDER BY id FOR NO KEY UPDATE
    ), asked AS (
        SELECT c.machine,
               {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }},
               min(c.seen) AS least_seen, max(c.seen) AS most_seen
          FROM unnest(_machines, _seen, _shapes) AS c (machine, seen, shape)
         GROUP BY c.machine
    )
    SELECT coalesce(bool_and(
               coalesce(m.state = 0, false)
               AND NOT (_by_sequence AND (a.least_seen <> m.sequence OR a.most_seen <> m.sequence))
               AND {{ m.${kind}_used + a.${kind} <= m.${kind}_capacity | AND }}
           ), false)
      INTO plain
      FROM asked a LEFT JOIN locked m ON m.id = a.machine;

    plain := plain AND draw.covered AND cardinality(_evict_claims) = 0 AND true = ALL (held)
        AND all_unplaced(_jobs, _ends, _tasks)
        AND NOT EXISTS (SELECT FROM generate_subscripts(_jobs, 1) AS j
                         WHERE _ends[j] - coalesce(_ends[j - 1], 0)
                             < greatest(_minimums[j], lacking[j]));
    IF plain THEN
        verdicts := array_fill(0::smallint, ARRAY[cardinality(_tasks)]);
        landed := _machines;
        evicted_jobs := '{}';
        evicted_tasks := '{}';
        evicted_machines := '{}';
        PERFORM apply_grants(_jobs, _ends, _tasks, _machines, _shapes, _amounts, verdicts);
        IF cardinality(draw.quotas) > 0 THEN
            PERFORM settle_quotas(draw.quotas, draw.shards, minus(draw.budget, draw.asked), draw.asked);
        END IF;
    ELSE
        judged := judge_claims(_by_sequence, _jobs, _minimums, _ends, _tasks, _machines, _seen, _shapes, _amounts,
                               _other_claims, _other_machines, _other_seen, _other_shapes,
                               _evict_claims, _evict_jobs, _evict_tasks, touched, held, draw.quotas, draw.budget);
        verdicts := judged.verdicts;
        landed := judged.landed;
        evicted_jobs := judged.evicted_jobs;
        evicted_tasks := judged.evicted_tasks;
        evicted_machines := judged.evicted_machines;
        IF cardinality(evicted_jobs) > 0 THEN
            PERFORM apply_exchange(_jobs, _ends, _tasks, landed, judged.landed_shapes, _amounts, verdicts,
                                   evicted_jobs, evicted_tasks);
        ELSIF 0 = ANY (verdicts) THEN
            PERFORM apply_grants(_jobs, _ends, _tasks, landed, judged.landed_shapes, _amounts, verdicts);
        END IF;
        IF cardinality(draw.quotas) > 0 AND 0 = ANY (verdicts) THEN
            PERFORM settle_quotas(draw.quotas, draw.shards, judged.budget, draw.asked);
        END IF;
    END IF;

    INSERT INTO transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts,
                             evicted_jobs, evicted_tasks, evicted_machines)
    VALUES (_id, _scheduler, _replica, _by_sequence, _jobs, _ends, _tasks, landed, verdicts,
            evicted_jobs, evicted_tasks, evicted_machines)
        ON CONFLICT DO NOTHING;
    -- One with the same id was under way, and naming no job in common, neither waited for the other
    -- above. One that granted nothing is harmless: its twins name jobs that never were.
    IF NOT FOUND AND 0 = ANY (verdicts) THEN
        RAISE EXCEPTION 'bad transaction: another one has this id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    fresh := packed_machines(named || evicted_machines);
END $$;
