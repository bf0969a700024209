-- The commit rule, claim by claim: taken when some claim may not stand. Locks are held by the
-- caller; nothing is written here.
CREATE FUNCTION omega.judge_claims(
    _by_sequence boolean,
    _jobs bigint[], _minimums integer[], _ends integer[],
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[], _amounts integer[],
    held boolean[], lacking integer[]
) RETURNS smallint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    verdicts smallint[] := array_fill(0::smallint, ARRAY[cardinality(_tasks)]);
    at integer[];           -- an entry a claim: its machine's place in the arrays below, or null
    unplaced boolean[];     -- an entry a claim
    states smallint[];      -- an entry a machine
    sequences bigint[];
    free bigint[];          -- all kinds of the first machine, then of the second ...
    tentative bigint[];     -- `free` less what this job has been granted so far
    asked integer[];        -- the kinds, from 1, that some shape asks for
    granted integer;
    placed int4multirange;
    kind integer;
    verdict smallint;
BEGIN
    SELECT array_agg(DISTINCT (n - 1) % ${kinds} + 1) INTO asked
      FROM unnest(_amounts) WITH ORDINALITY AS a (amount, n) WHERE amount > 0;

    WITH rows AS MATERIALIZED (
        SELECT m.*, row_number() OVER (ORDER BY m.id) AS place FROM machine m WHERE m.id = ANY (_machines)
    ), by_machine AS (
        SELECT array_agg(r.state ORDER BY place) AS states,
               array_agg(r.sequence ORDER BY place) AS sequences
          FROM rows r
    ), by_kind AS (
        SELECT array_agg(f.amount ORDER BY r.place, f.n) AS free
          FROM rows r, unnest(ARRAY[{{ (r.${kind}_capacity - r.${kind}_used)::bigint }}])
               WITH ORDINALITY AS f (amount, n)
    ), by_claim AS (
        SELECT array_agg(r.place ORDER BY c.n) AS at
          FROM unnest(_machines) WITH ORDINALITY AS c (machine, n) LEFT JOIN rows r ON r.id = c.machine
    )
    SELECT by_machine.states, by_machine.sequences, by_kind.free, by_claim.at
      INTO states, sequences, free, at FROM by_machine, by_kind, by_claim;

    SELECT array_agg(coalesce(j.unplaced @> c.task, false) ORDER BY c.n) INTO unplaced
      FROM unnest(_tasks, claimants(_jobs, _ends)) WITH ORDINALITY AS c (task, job, n)
      LEFT JOIN job j ON j.id = c.job;

    FOR j IN 1 .. cardinality(_jobs) LOOP
        tentative := free;
        granted := 0;
        placed := '{}';
        FOR c IN coalesce(_ends[j - 1], 0) + 1 .. _ends[j] LOOP
            verdict := CASE
                WHEN NOT held[j] THEN 4
                WHEN NOT unplaced[c] OR placed @> _tasks[c] THEN 5
                WHEN at[c] IS NULL OR states[at[c]] = 3 THEN 6
                WHEN states[at[c]] <> 0 THEN 7
                WHEN _by_sequence AND _seen[c] <> sequences[at[c]] THEN 1
                ELSE 0 END;
            IF verdict = 0 THEN
                FOREACH kind IN ARRAY coalesce(asked, '{}') LOOP
                    IF tentative[(at[c] - 1) * ${kinds} + kind] < _amounts[(_shapes[c] - 1) * ${kinds} + kind] THEN
                        verdict := 2;
                        EXIT;
                    END IF;
                END LOOP;
            END IF;
            IF verdict = 0 THEN
                granted := granted + 1;
                placed := placed + int4multirange(int4range(_tasks[c], _tasks[c] + 1));
                FOREACH kind IN ARRAY coalesce(asked, '{}') LOOP
                    tentative[(at[c] - 1) * ${kinds} + kind] := tentative[(at[c] - 1) * ${kinds} + kind]
                        - _amounts[(_shapes[c] - 1) * ${kinds} + kind];
                END LOOP;
            END IF;
            verdicts[c] := verdict;
        END LOOP;

        IF granted >= greatest(_minimums[j], CASE WHEN held[j] THEN lacking[j] ELSE 0 END) THEN
            free := tentative;
        ELSE    -- `tentative` is dropped: nothing to roll back
            FOR c IN coalesce(_ends[j - 1], 0) + 1 .. _ends[j] LOOP
                IF verdicts[c] = 0 THEN
                    verdicts[c] := 3;
                END IF;
            END LOOP;
        END IF;
    END LOOP;
    RETURN verdicts;
END $$;
