-- What those who watch a cell read each second. A late reader gets the latest records, and is told that there are older
-- ones: none has to be caught up with.

CREATE FUNCTION omega.read_judged(
    _mark bigint,
    OUT mark bigint, OUT are_all boolean, OUT ids uuid[], OUT schedulers text[], OUT replicas text[],
    OUT ends bigint[], OUT machines integer[], OUT verdicts smallint[]
) LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    IF (_mark >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad mark: a number from 0' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM needs_incarnation();
    WITH latest AS MATERIALIZED (
        SELECT t.* FROM transaction t WHERE t.changed_by >= _mark::text::xid8
         ORDER BY t.changed_by DESC LIMIT ${judged_per_read_max} + 1
    ), counted AS (
        SELECT l.*, row_number() OVER latest_first AS n,
               sum(cardinality(l.tasks)) OVER latest_first - cardinality(l.tasks) AS claims_after
          FROM latest l WINDOW latest_first AS (ORDER BY l.changed_by DESC, l.committed_at DESC, l.id)
    ), kept AS MATERIALIZED (
        SELECT k.*, sum(cardinality(k.tasks)) OVER (ORDER BY k.committed_at, k.id) AS ends_at
          FROM counted k WHERE k.n <= ${judged_per_read_max} AND k.claims_after < ${judged_claims_max}
    )
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
           (SELECT count(*) FROM kept) = (SELECT count(*) FROM latest),
           coalesce(array_agg(k.id ORDER BY k.ends_at, k.committed_at, k.id), '{}'),
           coalesce(array_agg(k.scheduler ORDER BY k.ends_at, k.committed_at, k.id), '{}'),
           coalesce(array_agg(k.replica ORDER BY k.ends_at, k.committed_at, k.id), '{}'),
           coalesce(array_agg(k.ends_at::bigint ORDER BY k.ends_at, k.committed_at, k.id), '{}'),
           (SELECT coalesce(array_agg(c.machine ORDER BY o.committed_at, o.id, c.n), '{}')
              FROM kept o, unnest(o.machines) WITH ORDINALITY AS c (machine, n)),
           (SELECT coalesce(array_agg(c.verdict ORDER BY o.committed_at, o.id, c.n), '{}')
              FROM kept o, unnest(o.verdicts) WITH ORDINALITY AS c (verdict, n))
      INTO mark, are_all, ids, schedulers, replicas, ends, machines, verdicts
      FROM kept k;
END $$;
