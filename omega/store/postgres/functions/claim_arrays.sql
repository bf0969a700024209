-- Functions that the functions of a commit share.

-- The job of each claim.
CREATE FUNCTION omega.claimants(_jobs bigint[], _ends integer[])
RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(_jobs[j] ORDER BY j, c), '{}')
      FROM generate_subscripts(_jobs, 1) AS j,
           generate_series(coalesce(_ends[j - 1], 0) + 1, _ends[j]) AS c
$$;

-- Whether no entry is smaller than the one before it.
CREATE FUNCTION omega.ascends(_entries integer[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT NOT EXISTS (SELECT FROM generate_subscripts(_entries, 1) AS n WHERE _entries[n] < _entries[n - 1])
$$;

-- Whether no entry occurs twice.
CREATE FUNCTION omega.are_distinct(_entries bigint[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT count(DISTINCT entry) = count(*) FROM unnest(_entries) AS entry
$$;

-- Refuse arguments that Omega's own schedulers never send, before anything is locked. There is no subquery here:
-- PL/pgSQL evaluates a plain expression without starting an executor.
CREATE FUNCTION omega.check_transaction(
    _jobs bigint[], _tokens uuid[], _grants_min integer[], _ends integer[],
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[], _amounts integer[]
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    claims integer := cardinality(_tasks);
    wrong text;
BEGIN
    wrong := CASE
        WHEN _jobs IS NULL OR _tokens IS NULL OR _grants_min IS NULL OR _ends IS NULL OR _tasks IS NULL
          OR _machines IS NULL OR _seen IS NULL OR _shapes IS NULL OR _amounts IS NULL
            THEN 'an array is null'
        WHEN 1 <> ANY (ARRAY[array_ndims(_jobs), array_ndims(_tokens), array_ndims(_grants_min), array_ndims(_ends),
                             array_ndims(_tasks), array_ndims(_machines), array_ndims(_seen), array_ndims(_shapes),
                             array_ndims(_amounts)])
            THEN 'an array has several dimensions'
        WHEN 1 <> ANY (ARRAY[array_lower(_jobs, 1), array_lower(_tokens, 1), array_lower(_grants_min, 1), array_lower(_ends, 1),
                             array_lower(_tasks, 1), array_lower(_machines, 1), array_lower(_seen, 1), array_lower(_shapes, 1),
                             array_lower(_amounts, 1)])
            THEN 'an array does not begin at 1'
        WHEN NOT (cardinality(_jobs) = ALL (ARRAY[cardinality(_tokens), cardinality(_grants_min), cardinality(_ends)]))
            THEN 'the arrays with an entry per job differ in length'
        WHEN NOT (claims = ALL (ARRAY[cardinality(_machines), cardinality(_seen), cardinality(_shapes)]))
            THEN 'the arrays with an entry per claim differ in length'
        WHEN cardinality(_jobs) = 0 THEN 'there is no job'
        WHEN claims > ${claims_per_transaction_max} OR cardinality(_jobs) > ${jobs_per_transaction_max}
            THEN 'it has more than ${claims_per_transaction_max} claims, or ${jobs_per_transaction_max} jobs'
        WHEN cardinality(_amounts) % ${kinds} <> 0 THEN 'the amounts are not whole shapes'
        WHEN array_position(_jobs, NULL) IS NOT NULL OR array_position(_tokens, NULL) IS NOT NULL
          OR array_position(_grants_min, NULL) IS NOT NULL OR array_position(_ends, NULL) IS NOT NULL
          OR array_position(_tasks, NULL) IS NOT NULL OR array_position(_machines, NULL) IS NOT NULL
          OR array_position(_seen, NULL) IS NOT NULL OR array_position(_shapes, NULL) IS NOT NULL
          OR array_position(_amounts, NULL) IS NOT NULL
            THEN 'an entry is null'
        WHEN 2147483647 = ANY (_tasks) THEN 'a task number is too large'
        WHEN 0 > ANY (_amounts) THEN 'an amount is negative'
        WHEN 0 > ANY (_grants_min) THEN 'a minimum is negative'
        WHEN 1 > ANY (_shapes) OR cardinality(_amounts) / ${kinds} < ANY (_shapes)
            THEN 'a claim names a shape that is not there'
        WHEN _ends[cardinality(_ends)] <> claims THEN 'the last job does not end at the last claim'
        WHEN cardinality(_jobs) > 1 AND (_ends[1] < 0 OR NOT ascends(_ends)) THEN 'the jobs'' ends are not ascending'
        WHEN cardinality(_jobs) > 1 AND NOT are_distinct(_jobs) THEN 'a job occurs twice'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'bad transaction: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- The same for alternates and evictions.
CREATE FUNCTION omega.check_choices(
    _claims integer, _shapes integer,
    _other_claims integer[], _other_machines integer[], _other_seen bigint[], _other_shapes integer[],
    _evict_claims integer[], _evict_jobs bigint[], _evict_tasks integer[]
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    wrong text;
BEGIN
    wrong := CASE
        WHEN _other_claims IS NULL OR _other_machines IS NULL OR _other_seen IS NULL OR _other_shapes IS NULL
          OR _evict_claims IS NULL OR _evict_jobs IS NULL OR _evict_tasks IS NULL
            THEN 'an array is null'
        WHEN 1 <> ANY (ARRAY[array_ndims(_other_claims), array_ndims(_other_machines), array_ndims(_other_seen),
                             array_ndims(_other_shapes), array_ndims(_evict_claims), array_ndims(_evict_jobs),
                             array_ndims(_evict_tasks)])
            THEN 'an array has several dimensions'
        WHEN 1 <> ANY (ARRAY[array_lower(_other_claims, 1), array_lower(_other_machines, 1), array_lower(_other_seen, 1),
                             array_lower(_other_shapes, 1), array_lower(_evict_claims, 1), array_lower(_evict_jobs, 1),
                             array_lower(_evict_tasks, 1)])
            THEN 'an array does not begin at 1'
        WHEN NOT (cardinality(_other_claims) = ALL (ARRAY[cardinality(_other_machines), cardinality(_other_seen), cardinality(_other_shapes)]))
            THEN 'the arrays with an entry per alternate differ in length'
        WHEN NOT (cardinality(_evict_claims) = ALL (ARRAY[cardinality(_evict_jobs), cardinality(_evict_tasks)]))
            THEN 'the arrays with an entry per eviction differ in length'
        WHEN cardinality(_other_claims) > ${claims_per_transaction_max} OR cardinality(_evict_claims) > ${claims_per_transaction_max}
            THEN 'it has more than ${claims_per_transaction_max} alternates, or evictions'
        WHEN array_position(_other_claims, NULL) IS NOT NULL OR array_position(_other_machines, NULL) IS NOT NULL
          OR array_position(_other_seen, NULL) IS NOT NULL OR array_position(_other_shapes, NULL) IS NOT NULL
          OR array_position(_evict_claims, NULL) IS NOT NULL OR array_position(_evict_jobs, NULL) IS NOT NULL
          OR array_position(_evict_tasks, NULL) IS NOT NULL
            THEN 'an entry is null'
        WHEN 1 > ANY (_other_claims || _evict_claims) OR _claims < ANY (_other_claims || _evict_claims)
            THEN 'an alternate or eviction names a claim that is not there'
        WHEN 1 > ANY (_other_shapes) OR _shapes < ANY (_other_shapes)
            THEN 'an alternate names a shape that is not there'
        WHEN cardinality(_other_claims) > 1 AND NOT ascends(_other_claims)
          OR cardinality(_evict_claims) > 1 AND NOT ascends(_evict_claims)
            THEN 'alternates and evictions must ascend by claim'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'bad transaction: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
