-- What the jobs of each quota hold, summed up from the allocations; a quota without use has no row.
CREATE FUNCTION omega.used_of_quotas()
RETURNS TABLE (quota integer, used bigint[]) LANGUAGE sql STABLE AS $$
    SELECT u.quota, u.cost[1 : ${budgets} - 1] || u.jobs
      FROM (SELECT q.id AS quota, omega.cost({{ sum(a.${kind})::bigint }}) AS cost, count(DISTINCT a.job_id) AS jobs
              FROM omega.quota q JOIN omega.job j ON true JOIN omega.job_spec s ON s.job_id = j.id
              JOIN omega.allocation a ON a.job_id = j.id
             WHERE (q.scope = 'tenant' AND q.name = s.tenant) OR (q.scope = 'scheduler' AND q.name = j.scheduler)
             GROUP BY q.id) AS u
$$;
