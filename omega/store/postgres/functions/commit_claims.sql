-- The commit rule. omega/cell/judge.py says the same in numpy; a property test compares them.
--
-- Lock order, always: jobs by id, then machines by id. Two commits that want the same rows queue
-- behind one another and cannot deadlock. Needs READ COMMITTED: a row is judged as it is once
-- its lock is held.
--
-- Verdicts: 0 accepted, 1 stale, 2 overcommit, 3 gang broken, 4 lease lost, 5 already placed,
-- 6 gone, 7 closed.
CREATE FUNCTION omega.commit_claims(
    _id uuid, _scheduler text, _replica text, _by_sequence boolean,
    _jobs bigint[], _tokens uuid[], _minimums integer[], _ends integer[],      -- an entry a job
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[],  -- an entry a claim
    _amounts integer[],                               -- all kinds of shape 1, then of shape 2 ...
    OUT verdicts smallint[], OUT fresh bytea, OUT replayed boolean
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    claims integer := cardinality(_tasks);
    held boolean[];        -- an entry a job: is the lease still theirs?
    lacking integer[];     -- an entry a job: grants that its gang still needs
    plain boolean;         -- every claim stands whatever the order
BEGIN
    PERFORM check_transaction(_jobs, _tokens, _minimums, _ends, _tasks, _machines, _seen, _shapes, _amounts);

    -- One who asks twice waits here for the first call to end, and then finds its record.
    WITH locked AS MATERIALIZED (
        SELECT id, state, lease_token, placed, minimum
          FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE
    )
    SELECT array_agg(coalesce(l.state = 'planning' AND l.lease_token = j.token, false) ORDER BY j.n),
           array_agg(greatest(l.minimum - l.placed, 0) ORDER BY j.n)
      INTO held, lacking
      FROM unnest(_jobs, _tokens) WITH ORDINALITY AS j (id, token, n) LEFT JOIN locked l USING (id);

    SELECT t.verdicts INTO verdicts FROM transaction t WHERE t.id = _id;
    replayed := FOUND;
    IF replayed THEN
        fresh := packed_machines(_machines);
        RETURN;
    END IF;

    WITH locked AS MATERIALIZED (
        SELECT * FROM machine WHERE id = ANY (_machines) ORDER BY id FOR NO KEY UPDATE
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

    plain := plain AND true = ALL (held) AND all_unplaced(_jobs, _ends, _tasks)
        AND NOT EXISTS (SELECT FROM generate_subscripts(_jobs, 1) AS j
                         WHERE _ends[j] - coalesce(_ends[j - 1], 0)
                             < greatest(_minimums[j], lacking[j]));
    IF plain THEN
        verdicts := array_fill(0::smallint, ARRAY[claims]);
    ELSE
        verdicts := judge_claims(_by_sequence, _jobs, _minimums, _ends, _tasks, _machines, _seen,
                                 _shapes, _amounts, held, lacking);
    END IF;

    IF 0 = ANY (verdicts) THEN
        PERFORM apply_grants(_jobs, _ends, _tasks, _machines, _shapes, _amounts, verdicts);
    END IF;
    INSERT INTO transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts)
    VALUES (_id, _scheduler, _replica, _by_sequence, _jobs, _ends, _tasks, _machines, commit_claims.verdicts)
        ON CONFLICT DO NOTHING;    -- twins of which neither named a job that exists: both granted nothing
    fresh := packed_machines(_machines);
END $$;
