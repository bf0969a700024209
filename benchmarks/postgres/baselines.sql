-- Other ways to commit. They write the rows that omega.commit_claims writes, and use generic plans
-- as it does. Except for commit_promising, none of them handles gangs, alternates, evictions or
-- quotas, looks for the same transaction id, or checks its arguments. Like Omega's own functions
-- they are rendered for the kinds without devices, because no claim here asks for a device.
CREATE SCHEMA baseline;

-- One transaction's rows, in one statement that judges nothing and locks in no order.
CREATE FUNCTION baseline.write_claims(
    _id uuid, _replica text, _job bigint, _tasks integer[], _machines integer[], _shapes integer[], _amounts integer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    WITH claims AS MATERIALIZED (
        SELECT * FROM unnest(_tasks, _machines, _shapes) AS c (task, machine, shape)
    ), placed AS (
        INSERT INTO omega.allocation (job_id, task, machine_id, {{ ${kind} }})
        SELECT _job, c.task, c.machine, {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }} FROM claims c
    ), taken AS (
        UPDATE omega.machine m
           SET {{ ${kind}_used = m.${kind}_used + w.${kind} }},
               sequence = m.sequence + 1, revision = m.revision + 1, changed_by = pg_current_xact_id()
          FROM (SELECT c.machine, {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }}
                  FROM claims c GROUP BY c.machine) AS w
         WHERE m.id = w.machine
    ), progress AS (
        UPDATE omega.job j
           SET unplaced = j.unplaced - w.tasks, placed = j.placed + w.granted, fruitless = 0,
               state = CASE WHEN isempty(j.unplaced - w.tasks) THEN 'running' ELSE j.state END,
               lease_token = CASE WHEN isempty(j.unplaced - w.tasks) THEN NULL ELSE j.lease_token END
          FROM (SELECT range_agg(int4range(c.task, c.task + 1)) AS tasks, count(*) AS granted FROM claims c) AS w
         WHERE j.id = _job
    )
    INSERT INTO omega.transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts)
    VALUES (_id, 'benchmark', _replica, false, ARRAY[_job], ARRAY[cardinality(_tasks)], _tasks, _machines,
            array_fill(0::smallint, ARRAY[cardinality(_tasks)]));
END $$;

-- The rows of several transactions, each of a different job, in one statement.
CREATE FUNCTION baseline.write_transactions(
    _ids uuid[], _jobs bigint[], _ends integer[], _tasks integer[], _machines integer[], _shapes integer[], _amounts integer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    WITH claims AS MATERIALIZED (
        SELECT _jobs[width_bucket((c.n - 1)::integer, _ends) + 1] AS job, c.task, c.machine, c.shape
          FROM unnest(_tasks, _machines, _shapes) WITH ORDINALITY AS c (task, machine, shape, n)
    ), placed AS (
        INSERT INTO omega.allocation (job_id, task, machine_id, {{ ${kind} }})
        SELECT c.job, c.task, c.machine, {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }} FROM claims c
    ), taken AS (
        UPDATE omega.machine m
           SET {{ ${kind}_used = m.${kind}_used + w.${kind} }},
               sequence = m.sequence + w.grants, revision = m.revision + w.grants, changed_by = pg_current_xact_id()
          FROM (SELECT c.machine, count(DISTINCT c.job) AS grants,
                       {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }}
                  FROM claims c GROUP BY c.machine) AS w
         WHERE m.id = w.machine
    ), progress AS (
        UPDATE omega.job j
           SET unplaced = j.unplaced - w.tasks, placed = j.placed + w.granted, fruitless = 0,
               state = CASE WHEN isempty(j.unplaced - w.tasks) THEN 'running' ELSE j.state END,
               lease_token = CASE WHEN isempty(j.unplaced - w.tasks) THEN NULL ELSE j.lease_token END
          FROM (SELECT c.job, range_agg(int4range(c.task, c.task + 1)) AS tasks, count(*) AS granted
                  FROM claims c GROUP BY c.job) AS w
         WHERE j.id = w.job
    )
    INSERT INTO omega.transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts)
    SELECT t.id, 'benchmark', 'batch', false, ARRAY[t.job], ARRAY[t.last - t.first],
           _tasks[t.first + 1 : t.last], _machines[t.first + 1 : t.last],
           array_fill(0::smallint, ARRAY[t.last - t.first])
      FROM (SELECT _ids[n] AS id, _jobs[n] AS job, coalesce(_ends[n - 1], 0) AS first, _ends[n] AS last
              FROM generate_subscripts(_ids, 1) AS n) AS t;
END $$;

-- For SERIALIZABLE: read, judge, write. Postgres aborts a transaction whose reads are outdated, and
-- the client retries it. Returns the fresh rows; null if the claims are refused.
CREATE FUNCTION baseline.commit_serializable(
    _id uuid, _replica text, _job bigint, _token uuid, _tasks integer[], _machines integer[], _shapes integer[], _amounts integer[]
) RETURNS bytea LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    stands boolean;
BEGIN
    SELECT bool_and(coalesce(m.state = 0 AND {{ m.${kind}_used + a.${kind} <= m.${kind}_capacity | AND }}, false))
           AND EXISTS (SELECT FROM omega.job WHERE id = _job AND state = 'planning' AND lease_token = _token)
      INTO stands
      FROM (SELECT c.machine, {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }}
              FROM unnest(_machines, _shapes) AS c (machine, shape) GROUP BY c.machine) AS a
      LEFT JOIN omega.machine m ON m.id = a.machine;
    IF NOT stands THEN
        RETURN NULL;
    END IF;
    PERFORM baseline.write_claims(_id, _replica, _job, _tasks, _machines, _shapes, _amounts);
    RETURN omega.packed_machines(_machines);
END $$;

-- The same, with the other guarantees of an ordinary commit of Omega's: checked arguments, the same
-- answer to a repeated transaction, one place per task, and quotas, of which there are none here.
CREATE FUNCTION baseline.commit_promising(
    _id uuid, _replica text, _job bigint, _token uuid, _tasks integer[], _machines integer[], _shapes integer[], _amounts integer[]
) RETURNS bytea LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    is_the_same boolean;
    open boolean;
BEGIN
    PERFORM omega.check_transaction(ARRAY[_job], ARRAY[_token], '{0}', ARRAY[cardinality(_tasks)], _tasks, _machines,
                                    array_fill(0::bigint, ARRAY[cardinality(_tasks)]), _shapes, _amounts);
    SELECT t.jobs = ARRAY[_job] AND t.tasks = _tasks INTO is_the_same FROM omega.transaction t WHERE t.id = _id;
    IF FOUND THEN
        RETURN CASE WHEN is_the_same THEN omega.packed_machines(_machines) END;
    END IF;
    SELECT c.tasks <@ j.unplaced AND c.claims = c.different AND c.claims >= j.minimum - j.placed
           AND NOT EXISTS (SELECT FROM omega.quota)
      INTO open
      FROM omega.job j, (SELECT range_agg(int4range(u.task, u.task + 1)) AS tasks, count(*) AS claims,
                                count(DISTINCT u.task) AS different FROM unnest(_tasks) AS u (task)) AS c
     WHERE j.id = _job;
    IF open THEN
        RETURN baseline.commit_serializable(_id, _replica, _job, _token, _tasks, _machines, _shapes, _amounts);
    END IF;
    RETURN NULL;
END $$;

-- For the pessimistic way: locks the machines in the order of their ids, as Omega does, and returns
-- their rows. Null if the lease is lost.
CREATE FUNCTION baseline.lock_machines(_job bigint, _token uuid, _machines integer[])
RETURNS bytea LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM 1 FROM omega.job WHERE id = _job AND state = 'planning' AND lease_token = _token FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT string_agg(l.packed, ''::bytea)
              FROM (SELECT packed_capacity || packed_use AS packed FROM omega.machine WHERE id = ANY (_machines) ORDER BY id FOR UPDATE) AS l);
END $$;
