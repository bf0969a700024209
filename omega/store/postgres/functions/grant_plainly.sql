-- The common case of a commit: every claim stands on its own machine, whatever the order.

-- Lock the machines by id and look whether all claims stand. If so write the grants, and return the
-- fresh rows; else return null, with the machines locked and nothing written. The caller holds the
-- jobs' rows and says whether all is sound but for the machines; `_rest` is what is left of each job.
-- One such function a set of kinds: claims ask for these alone. The CHECKs on machine are the second
-- assertion of a pair.
CREATE FUNCTION omega.grant_${of_kinds}(
    _sound boolean, _by_sequence boolean, _jobs bigint[], _rest int4multirange[], _ends integer[],
    _tasks integer[], _machines integer[], _seen bigint[], _shapes integer[], _amounts integer[]
) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    plain boolean;
    fresh bytea;
BEGIN
    WITH locked AS MATERIALIZED (
        SELECT id, state, notice, sequence, {{ ${kind}_used, ${kind}_capacity }}
          FROM machine WHERE id = ANY (_machines) ORDER BY id FOR NO KEY UPDATE
    ), asked AS (
        SELECT c.machine,
               {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }},
               min(c.seen) AS least_seen, max(c.seen) AS most_seen
          FROM unnest(_machines, _seen, _shapes) AS c (machine, seen, shape)
         GROUP BY c.machine
    )
    SELECT coalesce(bool_and(
               -- Without a notice no kind is overfull, and those that nobody asks for need no look.
               coalesce(m.state = 0 AND m.notice IS NULL, false)
               AND NOT (_by_sequence AND (a.least_seen <> m.sequence OR a.most_seen <> m.sequence))
               AND {{ m.${kind}_used + a.${kind} <= m.${kind}_capacity | AND }}
           ), false)
      INTO plain
      FROM asked a LEFT JOIN locked m ON m.id = a.machine;
    IF NOT (plain AND _sound) THEN
        RETURN NULL;
    END IF;

    WITH placed AS (
        INSERT INTO allocation (job_id, task, machine_id, {{ ${kind} }})
        SELECT _jobs[width_bucket((c.n - 1)::integer, _ends) + 1], c.task, c.machine,
               {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }}
          FROM unnest(_tasks, _machines, _shapes) WITH ORDINALITY AS c (task, machine, shape, n)
    ), progress AS (
        UPDATE job j
           SET unplaced = won.unplaced,
               placed = j.placed + won.granted,
               fruitless = 0,
               state = CASE WHEN isempty(won.unplaced) THEN 'running' ELSE j.state END,
               lease_token = CASE WHEN isempty(won.unplaced) THEN NULL ELSE j.lease_token END
          FROM (SELECT w.job, w.unplaced, w.stop - coalesce(_ends[w.n::integer - 1], 0) AS granted
                  FROM unnest(_jobs, _rest, _ends) WITH ORDINALITY AS w (job, unplaced, stop, n)) AS won
         WHERE j.id = won.job AND won.granted > 0
    ), taken AS (
        UPDATE machine m
           SET {{ ${kind}_used = m.${kind}_used + won.${kind} }},
               sequence = m.sequence + 1,
               revision = m.revision + 1,
               changed_by = pg_current_xact_id()
          FROM (SELECT c.machine, {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }}
                  FROM unnest(_machines, _shapes) AS c (machine, shape)
                 GROUP BY c.machine) AS won
         WHERE m.id = won.machine
        RETURNING m.packed_capacity || m.packed_use AS packed
    )
    SELECT string_agg(t.packed, ''::bytea) INTO fresh FROM taken t;
    RETURN fresh;
END $$;
