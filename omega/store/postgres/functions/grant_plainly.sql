-- The common case of a commit: every claim stands on its own machine, whatever the order.

-- Write the grants if all claims stand, and return the fresh rows; else return null, with nothing
-- written and no machine locked. The caller holds the jobs' rows and knows that all is sound but for
-- the machines; `_rest` is what is left of each job. One such function a set of kinds: claims ask for
-- these alone. The CHECKs on machine are the second assertion of a pair.
--
-- One statement locks machines, judges and writes: docs/decisions/0024. It takes them by id since the
-- settings leave no plan but to look up each in the order of `asked`, or all in that of the index.
CREATE FUNCTION omega.grant_${of_kinds}(
    _by_sequence boolean, _jobs bigint[], _rest int4multirange[], _ends integer[],
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[], _amounts integer[]
) RETURNS bytea LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
-- Whoever calls may have set these otherwise.
SET enable_indexscan = on SET enable_nestloop = on SET random_page_cost = 4 SET cpu_tuple_cost = 0.01 SET cpu_index_tuple_cost = 0.005 AS $$
DECLARE
    all_stand boolean;
    fresh bytea;
BEGIN
    BEGIN
        -- Insert before locking machines, so that locks are held briefly.
        INSERT INTO allocation (job_id, task, machine_id, {{ ${kind} }})
        SELECT _jobs[width_bucket((c.n - 1)::integer, _ends) + 1], c.task, c.machine,
               {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }}
          FROM unnest(_tasks, _machines, _shapes) WITH ORDINALITY AS c (task, machine, shape, n);

        WITH asked AS MATERIALIZED (
            SELECT c.machine, {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }},
                   min(c.seen) AS least_seen, max(c.seen) AS most_seen
              FROM unnest(_machines, _seen, _shapes) AS c (machine, seen, shape)
             GROUP BY c.machine ORDER BY c.machine
        ), taken AS (
            UPDATE machine m
               SET {{ ${kind}_used = m.${kind}_used + a.${kind} }},
                   sequence = m.sequence + 1,
                   revision = m.revision + 1,
                   changed_by = pg_current_xact_id()
              FROM asked a
             WHERE m.id = a.machine
               -- Without a notice no kind is overfull, and those that nobody asks for need no look.
               AND m.state = 0 AND m.notice IS NULL
               AND NOT (_by_sequence AND (a.least_seen <> m.sequence OR a.most_seen <> m.sequence))
               AND {{ m.${kind}_used + a.${kind} <= m.${kind}_capacity | AND }}
            RETURNING m.packed_capacity || m.packed_use AS packed
        )
        SELECT string_agg(t.packed, ''::bytea), count(*) = (SELECT count(*) FROM asked) INTO fresh, all_stand FROM taken t;
        IF NOT all_stand THEN
            RAISE EXCEPTION 'some claim does not stand' USING ERRCODE = 'OM001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'OM001' THEN
        RETURN NULL;
    END;

    -- Out here: a row that was locked outside of the block above and changed inside would need a MultiXact.
    UPDATE job j
       SET unplaced = won.unplaced,
           placed = j.placed + won.granted,
           fruitless = 0,
           state = CASE WHEN isempty(won.unplaced) THEN 'running' ELSE j.state END,
           lease_token = CASE WHEN isempty(won.unplaced) THEN NULL ELSE j.lease_token END
      FROM (SELECT w.job, w.unplaced, w.stop - coalesce(_ends[w.n::integer - 1], 0) AS granted
              FROM unnest(_jobs, _rest, _ends) WITH ORDINALITY AS w (job, unplaced, stop, n)) AS won
     WHERE j.id = won.job AND won.granted > 0;
    RETURN fresh;
END $$;
