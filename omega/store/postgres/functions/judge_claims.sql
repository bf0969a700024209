-- The commit rule, claim by claim: taken unless all claims are known to stand, that is, if a lease is not
-- held, if some claim may not stand on its task, its machine or within its quotas, if a job would get too
-- few, or if something is to be evicted. Locks are held by the caller; nothing is written here.
CREATE FUNCTION omega.judge_claims(
    _by_sequence boolean,
    _jobs bigint[], _grants_min integer[], _ends integer[],
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[], _amounts integer[],
    _other_claims integer[], _other_machines integer[], _other_seen bigint[], _other_shapes integer[],
    _evict_claims integer[], _evict_jobs bigint[], _evict_tasks integer[],
    _touched integer[], held boolean[], _quotas integer[], INOUT balances bigint[],
    OUT verdicts smallint[], OUT landed integer[], OUT landed_shapes integer[],
    OUT evicted_jobs bigint[], OUT evicted_tasks integer[], OUT evicted_machines integer[], OUT evicted_for bigint[]
) LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    unplaced boolean[];     -- an entry per claim, as the commit began
    moves boolean[];        -- an entry per claim: it evicts its own task
    own integer[];          -- an entry per claim: the victim that is its own task, or null
    at integer[];           -- an entry per claim: its machine's place in the arrays below, or null
    other_at integer[];     -- an entry per alternate, likewise
    ids integer[];          -- an entry per machine
    states smallint[];
    sequences bigint[];
    free bigint[];          -- all kinds of the first machine, then of the second ...
    asked integer[];        -- the kinds, from 1, in which a claim can fail
    party bigint[];         -- the jobs of the transaction, in order, then those that may lose tasks
    schedulers text[];      -- an entry per party
    precedence integer[];   -- an entry per party
    yields_to bigint[];     -- the least precedence that may evict its tasks, or null
    minimum integer[];
    placed integer[];
    running integer[];      -- live allocations
    drawn integer[] := '{}';  -- two entries per party: which quotas it is charged to, or null
    victim_party integer[]; -- an entry per live allocation of a job named in evictions
    victim_task integer[];
    victim_at integer[];
    victim_amounts bigint[];
    live boolean[];
    evict_victim integer[]; -- an entry per eviction: its victim, or null
    evicted integer[] := '{}';  -- victims, in order of eviction
    evictors bigint[] := '{}';  -- the job of the claim for which each was evicted
    evicts integer[];          -- victims of the claim that is being judged
    before record;             -- what a broken gang goes back to
    granted_tasks int4multirange;  -- tasks granted to the job under judgement
    granted integer;
    has_grants boolean[];      -- an entry per job judged so far: does it keep a granted claim?
    needed integer;
    verdict smallint;
    balances_after bigint[];   -- the balances of the quotas if the claim is accepted
    e integer := 1;            -- the next eviction, and alternate, to be judged
    o integer := 1;
    victim integer;
    kind integer;
    place integer;
    is_placed boolean;         -- the claim's task runs: it can only move
BEGIN
    SELECT m.ids, m.states, m.sequences, m.free, m.at, m.other_at INTO ids, states, sequences, free, at, other_at
      FROM machines_named(_touched, _machines, _other_machines) AS m;
    SELECT coalesce(array_agg(DISTINCT k.kind), '{}') INTO asked
      FROM (SELECT (n - 1) % ${kinds} + 1 FROM unnest(_amounts) WITH ORDINALITY AS a (amount, n) WHERE amount > 0
             UNION SELECT (n - 1) % ${kinds} + 1 FROM unnest(free) WITH ORDINALITY AS f (amount, n) WHERE amount < 0
           ) AS k (kind);
    SELECT p.party, p.scheduler, p.precedence, p.yields_to, p.minimum, p.placed, p.running
      INTO party, schedulers, precedence, yields_to, minimum, placed, running
      FROM parties(_jobs, _evict_jobs) AS p;
    IF cardinality(_quotas) > 0 THEN
        drawn := draws(party, _quotas);
    END IF;
    SELECT v.party, v.task, v.at, v.amounts, v.live, v.evict_victim
      INTO victim_party, victim_task, victim_at, victim_amounts, live, evict_victim
      FROM victims(party, ids, _evict_jobs, _evict_tasks) AS v;
    SELECT array_agg(coalesce(j.unplaced @> c.task, false) ORDER BY c.n), array_agg(w.claim IS NOT NULL ORDER BY c.n),
           array_agg(v.n ORDER BY c.n)
      INTO unplaced, moves, own
      FROM unnest(_tasks, claimants(_jobs, _ends)) WITH ORDINALITY AS c (task, job, n)
      LEFT JOIN job j ON j.id = c.job
      LEFT JOIN (SELECT DISTINCT * FROM unnest(_evict_claims, _evict_jobs, _evict_tasks)) AS w (claim, job, task)
             ON w.claim = c.n AND w.job = c.job AND w.task = c.task
      LEFT JOIN (SELECT party[u.of_party], u.task, u.n FROM unnest(victim_party, victim_task) WITH ORDINALITY AS u (of_party, task, n)
                ) AS v (job, task, n) ON v.job = c.job AND v.task = c.task;
    verdicts := array_fill(${accepted}::smallint, ARRAY[cardinality(_tasks)]);
    landed := _machines;
    landed_shapes := _shapes;

    FOR j IN 1 .. cardinality(_jobs) LOOP
        SELECT free AS free, placed AS placed, live AS live, evicted AS evicted, evictors AS evictors,
               running AS running, balances AS balances INTO before;
        granted := 0;
        granted_tasks := '{}';
        FOR c IN coalesce(_ends[j - 1], 0) + 1 .. _ends[j] LOOP
            evicts := '{}';
            place := at[c];
            is_placed := NOT unplaced[c] AND coalesce(live[own[c]], true);
            verdict := CASE
                WHEN NOT held[j] THEN ${lease_lost}
                WHEN granted_tasks @> _tasks[c] THEN ${already_placed}
                WHEN is_placed AND NOT moves[c] THEN ${already_placed}
                ELSE of_machine(states[place], _by_sequence AND _seen[c] <> sequences[place]) END;

            WHILE _evict_claims[e] = c LOOP
                victim := evict_victim[e];
                IF verdict = ${accepted} THEN
                    IF victim IS NOT NULL AND live[victim] AND NOT victim = ANY (evicts)
                       AND (victim_at[victim] = place OR victim_party[victim] = j)
                       AND (yields_to[victim_party[victim]] <= precedence[j]
                            OR held[victim_party[victim]] AND schedulers[victim_party[victim]] = schedulers[j])
                       -- Nothing is evicted from a gang that this transaction has granted tasks to: that could break it.
                       AND NOT (minimum[victim_party[victim]] > 0 AND coalesce(has_grants[victim_party[victim]], false)) THEN
                        evicts := evicts || victim;
                    ELSE
                        verdict := ${precedence};
                    END IF;
                END IF;
                e := e + 1;
            END LOOP;
            IF verdict = ${accepted} AND cardinality(evicts) > 0 THEN
                evicts := with_their_gangs(evicts, victim_party, live, minimum, placed);
            END IF;
            IF verdict = ${accepted} AND NOT fits(free, place, asked, _amounts, _shapes[c], evicts, victim_at, victim_amounts) THEN
                verdict := ${overcommit};
            END IF;
            IF verdict = ${accepted} AND cardinality(_quotas) > 0 THEN
                balances_after := charged(balances, drawn, running, j, cost({{ _amounts[(_shapes[c] - 1) * ${kinds} + ${number}] }}),
                                  evicts, victim_party, victim_amounts);
                verdict := CASE WHEN balances_after IS NULL THEN ${quota} ELSE ${accepted} END;
            END IF;

            IF verdict NOT IN (${accepted}, ${lease_lost}, ${already_placed}) THEN
                evicts := '{}';
            END IF;
            WHILE _other_claims[o] = c LOOP
                -- An alternate evicts nobody, so that a task that runs cannot move to one.
                IF verdict NOT IN (${accepted}, ${lease_lost}, ${already_placed}) AND NOT is_placed
                   AND of_machine(states[other_at[o]], _by_sequence AND _other_seen[o] <> sequences[other_at[o]]) = ${accepted}
                   AND fits(free, other_at[o], asked, _amounts, _other_shapes[o], '{}', '{}', '{}') THEN
                    IF cardinality(_quotas) > 0 THEN
                        balances_after := charged(balances, drawn, running, j,
                                          cost({{ _amounts[(_other_shapes[o] - 1) * ${kinds} + ${number}] }}), '{}', '{}', '{}');
                    END IF;
                    IF cardinality(_quotas) = 0 OR balances_after IS NOT NULL THEN
                        verdict := ${accepted};
                        place := other_at[o];
                        landed[c] := _other_machines[o];
                        landed_shapes[c] := _other_shapes[o];
                    END IF;
                END IF;
                o := o + 1;
            END LOOP;

            verdicts[c] := verdict;
            IF verdict = ${accepted} THEN
                granted := granted + 1;
                running[j] := running[j] + 1;
                balances := balances_after;
                granted_tasks := granted_tasks + int4multirange(int4range(_tasks[c], _tasks[c] + 1));
                FOREACH victim IN ARRAY evicts LOOP
                    live[victim] := false;
                    placed[victim_party[victim]] := placed[victim_party[victim]] - 1;
                    running[victim_party[victim]] := running[victim_party[victim]] - 1;
                    FOR kind IN 1 .. ${kinds} LOOP
                        free[(victim_at[victim] - 1) * ${kinds} + kind] := free[(victim_at[victim] - 1) * ${kinds} + kind]
                            + victim_amounts[(victim - 1) * ${kinds} + kind];
                    END LOOP;
                END LOOP;
                evicted := evicted || evicts;
                evictors := evictors || array_fill(_jobs[j], ARRAY[cardinality(evicts)]);
                FOREACH kind IN ARRAY asked LOOP
                    free[(place - 1) * ${kinds} + kind] := free[(place - 1) * ${kinds} + kind]
                        - _amounts[(landed_shapes[c] - 1) * ${kinds} + kind];
                END LOOP;
            END IF;
        END LOOP;

        needed := greatest(_grants_min[j], minimum[j] - placed[j]);
        has_grants[j] := granted > 0 AND granted >= needed;
        IF granted > 0 AND granted < needed THEN
            free := before.free;
            placed := before.placed;
            live := before.live;
            evicted := before.evicted;
            evictors := before.evictors;
            running := before.running;
            balances := before.balances;
            FOR c IN coalesce(_ends[j - 1], 0) + 1 .. _ends[j] LOOP
                IF verdicts[c] = ${accepted} THEN
                    verdicts[c] := ${gang_broken};
                    landed[c] := _machines[c];
                END IF;
            END LOOP;
        END IF;
    END LOOP;

    SELECT coalesce(array_agg(party[victim_party[f]] ORDER BY n), '{}'), coalesce(array_agg(victim_task[f] ORDER BY n), '{}'),
           coalesce(array_agg(ids[victim_at[f]] ORDER BY n), '{}'), evictors
      INTO evicted_jobs, evicted_tasks, evicted_machines, evicted_for
      FROM unnest(evicted) WITH ORDINALITY AS u (f, n);
END $$;
