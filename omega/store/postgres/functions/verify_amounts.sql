-- The running tasks whose allocated amounts differ from their job's request, as rows like those of verify. A commit
-- does not compare the two; this shows schedulers that claim other amounts.
CREATE FUNCTION omega.verify_amounts()
RETURNS TABLE (invariant text, subject text, detail text) LANGUAGE sql STABLE SET search_path = omega, pg_temp AS $$
    WITH asked AS (
        SELECT s.job_id, s.group_starts, g.n, g.it
          FROM job_spec s CROSS JOIN LATERAL jsonb_array_elements(
                   CASE WHEN jsonb_typeof(s.wire -> 'groups') = 'array' THEN s.wire -> 'groups' ELSE '[]' END)
                   WITH ORDINALITY AS g (it, n)
         WHERE s.job_id IN (SELECT a.job_id FROM allocation a)
    ), held AS (
        SELECT a.job_id, a.task, a.machine_id, ARRAY[{{ a.${kind} }}] AS amounts FROM allocation a
    )
    SELECT 'a task holds what its job asks for', 'job ' || h.job_id || ' task ' || h.task,
           format('machine %s, holds %s, asked %s', h.machine_id, h.amounts,
                  g.it - '{tasks,duration_ms,constraints,spread_over,different_machines,preferences,patience_ms}'::text[])
      FROM held h JOIN asked g ON g.job_id = h.job_id AND g.n = width_bucket(h.task, g.group_starts)
     WHERE to_jsonb(h.amounts[1 : ${kinds_without_devices}])
               <> jsonb_build_array(g.it -> 'cpu_milli', g.it -> 'memory_mib', g.it -> 'disk_mib')
        OR to_jsonb((SELECT count(*) FROM unnest(h.amounts[${kinds_without_devices} + 1 :]) AS d WHERE d > 0)) <> g.it -> 'gpus'
        OR EXISTS (SELECT FROM unnest(h.amounts[${kinds_without_devices} + 1 :]) AS d WHERE d > 0 AND to_jsonb(d) <> g.it -> 'gpu_slices')
     ORDER BY h.job_id, h.task
$$;
