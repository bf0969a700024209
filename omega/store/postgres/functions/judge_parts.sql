-- What omega.judge_claims reads, as arrays, and the functions that it calls on them.

-- The machines by id; free is all kinds of the first, then of the second; and the position among them of each
-- claim's machine and of each alternate's, null for an id that never existed.
CREATE FUNCTION omega.machines_named(
    _touched integer[], _machines integer[], _other_machines integer[],
    OUT ids integer[], OUT states smallint[], OUT sequences bigint[], OUT free bigint[],
    OUT at integer[], OUT other_at integer[]
) LANGUAGE sql STABLE AS $$
    WITH rows AS MATERIALIZED (
        SELECT m.*, row_number() OVER (ORDER BY m.id)::integer AS place FROM omega.machine m WHERE m.id = ANY (_touched)
    )
    SELECT (SELECT coalesce(array_agg(r.id ORDER BY r.place), '{}') FROM rows r),
           (SELECT array_agg(r.state ORDER BY r.place) FROM rows r),
           (SELECT array_agg(r.sequence ORDER BY r.place) FROM rows r),
           (SELECT array_agg(f.amount ORDER BY r.place, f.n)
              FROM rows r, unnest(ARRAY[{{ (r.${kind}_capacity - r.${kind}_used)::bigint }}])
                   WITH ORDINALITY AS f (amount, n)),
           (SELECT array_agg(r.place ORDER BY c.n)
              FROM unnest(_machines) WITH ORDINALITY AS c (machine, n) LEFT JOIN rows r ON r.id = c.machine),
           (SELECT array_agg(r.place ORDER BY c.n)
              FROM unnest(_other_machines) WITH ORDINALITY AS c (machine, n) LEFT JOIN rows r ON r.id = c.machine)
$$;

-- The jobs concerned: those of the transaction, in its order, then others that may lose tasks. A job yields to a
-- precedence that is higher by the cell's gap; never (null) if it is not preemptible.
CREATE FUNCTION omega.parties(
    _jobs bigint[], _evict_jobs bigint[],
    OUT party bigint[], OUT scheduler text[], OUT precedence integer[], OUT yields_to bigint[], OUT minimum integer[], OUT placed integer[],
    OUT running integer[]
) LANGUAGE sql STABLE AS $$
    SELECT array_agg(p.id ORDER BY p.n), array_agg(j.scheduler ORDER BY p.n), array_agg(j.precedence ORDER BY p.n),
           array_agg(CASE WHEN j.preemptible THEN j.precedence::bigint + c.precedence_gap END ORDER BY p.n),
           array_agg(j.minimum ORDER BY p.n), array_agg(j.placed ORDER BY p.n), array_agg(j.placed - j.ended ORDER BY p.n)
      FROM (SELECT id, min(n) AS n FROM unnest(_jobs || _evict_jobs) WITH ORDINALITY AS u (id, n) GROUP BY id) AS p
      LEFT JOIN omega.job j ON j.id = p.id CROSS JOIN omega.cell c
$$;

-- The running tasks of the jobs that evictions name, by job and task; and the position among them of the task that each
-- eviction names.
CREATE FUNCTION omega.victims(
    _party bigint[], _ids integer[], _evict_jobs bigint[], _evict_tasks integer[],
    OUT party integer[], OUT task integer[], OUT at integer[], OUT amounts bigint[], OUT live boolean[],
    OUT evict_victim integer[]
) LANGUAGE sql STABLE AS $$
    WITH found AS MATERIALIZED (
        SELECT a.*, row_number() OVER (ORDER BY a.job_id, a.task)::integer AS n
          FROM omega.allocation a WHERE a.job_id = ANY (_evict_jobs)
    )
    SELECT coalesce(array_agg(array_position(_party, f.job_id) ORDER BY f.n), '{}'),
           coalesce(array_agg(f.task ORDER BY f.n), '{}'),
           coalesce(array_agg(array_position(_ids, f.machine_id) ORDER BY f.n), '{}'),
           (SELECT array_agg(x.amount ORDER BY g.n, x.k)
              FROM found g, unnest(ARRAY[{{ g.${kind}::bigint }}]) WITH ORDINALITY AS x (amount, k)),
           coalesce(array_agg(true), '{}'),
           (SELECT array_agg(h.n ORDER BY w.n)
              FROM unnest(_evict_jobs, _evict_tasks) WITH ORDINALITY AS w (job, task, n)
              LEFT JOIN found h ON h.job_id = w.job AND h.task = w.task)
      FROM found f
$$;

-- The verdict for which a machine alone is the reason; its state is null if it never was.
CREATE FUNCTION omega.of_machine(_state smallint, _is_stale boolean)
RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _state IS NULL OR _state = 3 THEN ${gone} WHEN _state <> 0 THEN ${closed} WHEN _is_stale THEN ${stale} ELSE ${accepted} END::smallint
$$;

-- Whether a shape fits into a machine once its victims there have been evicted.
CREATE FUNCTION omega.fits(
    _free bigint[], _place integer, _asked integer[], _amounts integer[], _shape integer,
    _evicts integer[], _victim_at integer[], _victim_amounts bigint[]
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    kind integer;
    victim integer;
    room bigint;
BEGIN
    FOREACH kind IN ARRAY _asked LOOP
        room := _free[(_place - 1) * ${kinds} + kind] - _amounts[(_shape - 1) * ${kinds} + kind];
        FOREACH victim IN ARRAY _evicts LOOP
            IF _victim_at[victim] = _place THEN
                room := room + _victim_amounts[(victim - 1) * ${kinds} + kind];
            END IF;
        END LOOP;
        IF room < 0 THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- The victims of a claim, and the rest of each gang that falls below its minimum. The victims of one job adjoin, by
-- task: only those of gangs that break are searched.
CREATE FUNCTION omega.with_their_gangs(
    _evicts integer[], _party integer[], _live boolean[], _minimum integer[], _placed integer[]
) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    broken integer;
    victim integer;
    evicts integer[] := _evicts;
BEGIN
    FOR broken IN
        SELECT named.party
          FROM (SELECT _party[f] AS party, min(n) AS first, count(*) AS tasks
                  FROM unnest(_evicts) WITH ORDINALITY AS u (f, n) GROUP BY 1) AS named
         WHERE _minimum[named.party] > 0 AND _placed[named.party] - named.tasks < _minimum[named.party]
         ORDER BY named.first
    LOOP
        victim := array_position(_party, broken);
        WHILE _party[victim] = broken LOOP
            IF _live[victim] AND NOT victim = ANY (_evicts) THEN
                evicts := evicts || victim;
            END IF;
            victim := victim + 1;
        END LOOP;
    END LOOP;
    RETURN evicts;
END $$;
