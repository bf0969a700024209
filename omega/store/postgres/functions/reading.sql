-- Reads for views. Rows and mark come from one snapshot: that of a statement, which all statements in a STABLE function
-- share.

-- The rows of these machines, in any order; the reader sorts them.
CREATE FUNCTION omega.packed_machines(_machines integer[])
RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT coalesce(string_agg(m.packed_capacity || m.packed_use, ''::bytea), ''::bytea)
      FROM omega.machine m WHERE m.id = ANY (_machines)
$$;

-- All machines' rows in pieces, in the order of pages. One piece is sent while the next is read. Pieces are small
-- enough for memory that the server has already: for megabytes at once it would ask the kernel for new pages at
-- every read.
CREATE FUNCTION omega.read_machines()
RETURNS SETOF bytea LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT string_agg(m.packed_capacity || m.packed_use, ''::bytea)
                       FROM omega.machine m
                      WHERE m.ctid >= format('(%s,0)', page)::tid AND m.ctid < format('(%s,0)', page + 64)::tid), ''::bytea)
      FROM generate_series(0, pg_relation_size('omega.machine') / current_setting('block_size')::bigint, 64) AS page
$$;

-- The mark of the calling statement.
CREATE FUNCTION omega.read_mark(OUT mark bigint, OUT generation bigint)
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_incarnation();
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, c.generation INTO mark, generation FROM cell c;
END $$;

-- The names and attributes of all machines, ascending by id; they change only with the generation.
CREATE FUNCTION omega.read_profiles(OUT generation bigint, OUT catalogue jsonb, OUT names text[], OUT codes integer[])
LANGUAGE sql STABLE AS $$
    SELECT c.generation, c.catalogue,
           (SELECT coalesce(array_agg(p.name ORDER BY p.id), '{}') FROM omega.machine_profile p),
           (SELECT coalesce(array_agg(u.code ORDER BY p.id, u.n), '{}')
              FROM omega.machine_profile p, unnest(p.codes) WITH ORDINALITY AS u (code, n))
      FROM omega.cell c
$$;

-- The part of a machine in a cell that is divided into so many parts (omega/cell/partition.py).
CREATE FUNCTION omega.part_of(_machine integer, _of integer)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT ((_machine * 2654435761 & 4294967295) >> 16) % _of
$$;

-- Machines in these parts that were changed by transactions that had not ended at the mark. The records of commits and
-- of other changes name them, some more than once. If the records do not go back to the mark, or name more than about
-- one machine in eight, all rows are scanned instead, which then costs no more.
CREATE FUNCTION omega.read_changes(
    _mark bigint, _of integer, _parts integer[],
    OUT mark bigint, OUT generation bigint, OUT machines bytea
)
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    since xid8 := _mark::text::xid8;
    recorded_from xid8;  -- changes of transactions from this one on are on record
    enough integer;
    named integer[];
BEGIN
    IF (_of >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad parts: they are parts of %', coalesce(_of::text, 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- As needs_incarnation, whose call would take longer than what it does.
    IF pg_is_in_recovery() THEN
        NULL;
    ELSIF NOT ${incarnation_is_known} THEN
        PERFORM needs_incarnation();
    END IF;
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, c.generation, c.changes_from, n.enough,
           ARRAY(SELECT c.id
                   FROM (SELECT unnest(t.machines || t.evicted_machines) AS id FROM transaction t WHERE t.changed_by >= since
                         UNION ALL
                         SELECT unnest(o.machines) FROM machine_change o WHERE o.changed_by >= since) AS c
                  WHERE _of = 1 OR omega.part_of(c.id, _of) = ANY (_parts)
                  LIMIT n.enough)
      INTO mark, generation, recorded_from, enough, named
      FROM cell c CROSS JOIN (SELECT 100 + max(id) / 8 AS enough FROM machine) AS n;
    -- As subqueries of the statement above, these would cost about 20 us of each read, even of an empty delta.
    IF (since >= recorded_from AND cardinality(named) < enough) IS NOT TRUE THEN
        SELECT string_agg(m.packed_capacity || m.packed_use, ''::bytea) INTO machines FROM machine m
         WHERE m.changed_by >= since AND (_of = 1 OR omega.part_of(m.id, _of) = ANY (_parts));
    ELSIF cardinality(named) > 0 THEN
        SELECT string_agg(m.packed_capacity || m.packed_use, ''::bytea) INTO machines FROM machine m WHERE m.id = ANY (named);
    END IF;
    machines := coalesce(machines, '');
END $$;

-- Allocations: all of them without a mark, otherwise those granted by transactions that had not ended at it. With
-- machines and no mark, those on them; with jobs, theirs; with a caller's own machines, only those on these.
CREATE FUNCTION omega.live_allocations(
    _mark bigint, _on integer[], _own int4multirange, _of bigint[],
    OUT mark bigint, OUT jobs bigint[], OUT tasks integer[], OUT machines integer[],
    OUT started_ms bigint[], OUT durations_ms bigint[], OUT amounts integer[]
) LANGUAGE sql STABLE AS $$
    WITH live AS (
        SELECT a.* FROM omega.allocation a WHERE _mark IS NULL AND _of IS NULL AND (_on IS NULL OR a.machine_id = ANY (_on))
        UNION ALL
        SELECT a.* FROM (SELECT DISTINCT o.job_id FROM unnest(_of) AS o (job_id)) AS o JOIN omega.allocation a USING (job_id)
        UNION ALL
        SELECT a.* FROM (
            SELECT DISTINCT j.id AS job_id, g.task
              FROM omega.transaction t,
                   LATERAL unnest(omega.claimants(t.jobs, t.ends), t.tasks, t.verdicts) AS g (id, task, verdict),
                   LATERAL (SELECT g.id) AS j (id)
             WHERE t.changed_by >= _mark::text::xid8 AND g.verdict = ${accepted}) AS granted
          JOIN omega.allocation a USING (job_id, task)
    )
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
           coalesce(array_agg(l.job_id), '{}'), coalesce(array_agg(l.task), '{}'), coalesce(array_agg(l.machine_id), '{}'),
           coalesce(array_agg((extract(epoch FROM l.started_at) * 1000)::bigint), '{}'),
           coalesce(array_agg(coalesce(s.group_durations_ms[width_bucket(l.task, s.group_starts)], -1)), '{}'),
           coalesce(array_agg(ARRAY[{{ l.${kind} }}]), '{}')
      FROM live l JOIN omega.job_spec s ON s.job_id = l.job_id
     WHERE _own IS NULL OR _own @> l.machine_id
$$;

-- The same for callers that may read every machine ...
CREATE FUNCTION omega.read_allocations(
    _mark bigint, _on integer[],
    OUT mark bigint, OUT jobs bigint[], OUT tasks integer[], OUT machines integer[],
    OUT started_ms bigint[], OUT durations_ms bigint[], OUT amounts integer[]
) LANGUAGE sql STABLE AS $$
    SELECT * FROM omega.live_allocations(_mark, _on, NULL, NULL)
$$;

-- ... for a scheduler, of its jobs ...
CREATE FUNCTION omega.read_allocations_of(
    _jobs bigint[],
    OUT mark bigint, OUT jobs bigint[], OUT tasks integer[], OUT machines integer[],
    OUT started_ms bigint[], OUT durations_ms bigint[], OUT amounts integer[]
) LANGUAGE sql STABLE AS $$
    SELECT * FROM omega.live_allocations(NULL, NULL, NULL, coalesce(_jobs, '{}'))
$$;

-- Who runs on these machines, by job and task; and of each of these jobs, ascending, what decides whether it makes way.
CREATE FUNCTION omega.read_occupants(
    _machines integer[],
    OUT jobs bigint[], OUT tasks integer[], OUT machines integer[], OUT started_ms bigint[], OUT amounts integer[],
    OUT about bigint[], OUT precedences integer[], OUT yields_to bigint[], OUT minimums integer[],
    OUT placed integer[], OUT running integer[], OUT schedulers text[], OUT tenants text[]
) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    IF (cardinality(_machines) <= ${occupied_machines_max}) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad machines: a list of at most ${occupied_machines_max}' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH live AS MATERIALIZED (
        -- A join hashes the machines; a comparison with the array would try one after the other.
        SELECT a.* FROM (SELECT DISTINCT unnest(_machines) AS id) AS m JOIN allocation a ON a.machine_id = m.id
    ), concerned AS MATERIALIZED (
        SELECT j.id, j.scheduler, j.tenant, j.precedence, j.minimum, j.placed, j.placed - j.ended AS running,
               CASE WHEN j.preemptible THEN j.precedence::bigint + c.precedence_gap ELSE ${never_yields} END AS yields_to
          FROM job j CROSS JOIN cell c WHERE j.id IN (SELECT l.job_id FROM live l)
    )
    SELECT coalesce(array_agg(l.job_id ORDER BY l.job_id, l.task), '{}'), coalesce(array_agg(l.task ORDER BY l.job_id, l.task), '{}'),
           coalesce(array_agg(l.machine_id ORDER BY l.job_id, l.task), '{}'),
           coalesce(array_agg((extract(epoch FROM l.started_at) * 1000)::bigint ORDER BY l.job_id, l.task), '{}'),
           coalesce(array_agg(ARRAY[{{ l.${kind} }}] ORDER BY l.job_id, l.task), '{}'),
           (SELECT coalesce(array_agg(c.id ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.precedence ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.yields_to ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.minimum ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.placed ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.running ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.scheduler ORDER BY c.id), '{}') FROM concerned c),
           (SELECT coalesce(array_agg(c.tenant ORDER BY c.id), '{}') FROM concerned c)
      INTO jobs, tasks, machines, started_ms, amounts, about, precedences, yields_to, minimums, placed, running, schedulers, tenants
      FROM live l;
END $$;

-- How much of each machine is held by tasks of jobs that yield to a precedence, ascending by machine.
CREATE FUNCTION omega.read_yielding(_precedence integer, OUT machines integer[], OUT amounts integer[])
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
DECLARE
    highest bigint;  -- the highest precedence that yields
BEGIN
    IF _precedence IS NULL THEN
        RAISE EXCEPTION 'bad precedence: null' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT _precedence::bigint - c.precedence_gap INTO highest FROM cell c;
    SELECT coalesce(array_agg(y.machine_id ORDER BY y.machine_id), '{}'),
           coalesce(array_agg(ARRAY[{{ y.${kind} }}] ORDER BY y.machine_id), '{}')
      INTO machines, amounts
      FROM (SELECT a.machine_id, {{ sum(a.${kind})::integer AS ${kind} }}
              FROM job j JOIN allocation a ON a.job_id = j.id
             WHERE j.precedence <= highest AND j.preemptible AND j.placed > j.ended
             GROUP BY a.machine_id) AS y;
END $$;

-- ... and for a node, on its own machines: all of them if some were assigned to it since the mark, or if the mark is of
-- another incarnation.
CREATE FUNCTION omega.own_allocations(
    _mark bigint, _incarnation bigint,
    OUT mark bigint, OUT jobs bigint[], OUT tasks integer[], OUT machines integer[],
    OUT started_ms bigint[], OUT durations_ms bigint[], OUT amounts integer[], OUT incarnation bigint
) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_incarnation();
    SELECT l.*, c.incarnation INTO mark, jobs, tasks, machines, started_ms, durations_ms, amounts, incarnation
      FROM cell c, own_machines(_mark) AS o,
           LATERAL live_allocations(CASE WHEN NOT o.are_new AND c.incarnation = _incarnation THEN _mark END, NULL,
                                    nullif(o.machines, '{(,)}'), NULL) AS l;
END $$;

-- Machines used above their capacity: by how much, and for how much longer that is tolerated.
CREATE FUNCTION omega.read_notices(OUT machine integer, OUT excess integer[], OUT ends_in_ms bigint)
RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT m.id, ARRAY[{{ greatest(m.${kind}_used - m.${kind}_capacity, 0) }}],
           (extract(epoch FROM m.notice_ends_at - clock_timestamp()) * 1000)::bigint
      FROM omega.machine m
     WHERE m.notice IS NOT NULL AND ({{ m.${kind}_used > m.${kind}_capacity | OR }})
     ORDER BY m.id
$$;
