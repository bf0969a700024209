-- Write what was granted: allocations, use of machines, what is left of the jobs. The CHECKs on
-- machine are the second assertion of a pair.
CREATE FUNCTION omega.apply_grants(
    _jobs bigint[], _ends integer[],
    _tasks integer[], _machines integer[], _shapes integer[], _amounts integer[],
    _verdicts smallint[]
) RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    INSERT INTO allocation (job_id, task, machine_id, {{ ${kind} }})
    SELECT c.job, c.task, c.machine, {{ _amounts[(c.shape - 1) * ${kinds} + ${number}] }}
      FROM unnest(claimants(_jobs, _ends), _tasks, _machines, _shapes, _verdicts)
           AS c (job, task, machine, shape, verdict)
     WHERE c.verdict = 0;

    UPDATE machine m
       SET {{ ${kind}_used = m.${kind}_used + won.${kind} }},
           sequence = m.sequence + 1,
           revision = m.revision + 1,
           changed_by = pg_current_xact_id()
      FROM (SELECT c.machine, {{ sum(_amounts[(c.shape - 1) * ${kinds} + ${number}]) AS ${kind} }}
              FROM unnest(_machines, _shapes, _verdicts) AS c (machine, shape, verdict)
             WHERE c.verdict = 0
             GROUP BY c.machine) AS won
     WHERE m.id = won.machine;

    UPDATE job j
       SET unplaced = j.unplaced - won.tasks,
           placed = j.placed + won.granted,
           fruitless = 0,
           state = CASE WHEN isempty(j.unplaced - won.tasks) THEN 'running' ELSE j.state END,
           lease_token = CASE WHEN isempty(j.unplaced - won.tasks) THEN NULL ELSE j.lease_token END
      FROM (SELECT c.job, range_agg(int4range(c.task, c.task + 1)) AS tasks, count(*) AS granted
              FROM unnest(claimants(_jobs, _ends), _tasks, _verdicts) AS c (job, task, verdict)
             WHERE c.verdict = 0
             GROUP BY c.job) AS won
     WHERE j.id = won.job;
END $$;
