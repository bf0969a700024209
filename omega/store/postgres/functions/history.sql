-- Removal of old records: changes, commits, ended tasks, exits, outputs, jobs, pipelines, and what was learnt of those.

-- Stop reads of changes from using the records of earlier transactions, so that these may be removed: for a view with
-- an older mark all machines are scanned.
CREATE FUNCTION omega.forget_changes()
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    UPDATE cell SET changes_from = pg_current_xact_id();
END $$;

-- Remove the rows of a table that ended longer ago than that, in so many blocks from the given one on; return how
-- many. No other transaction waits for this: blocks are read in order without an index, so that each is read once, and
-- rows that are locked are left for the next call.
--
-- A commit is kept while a delta of allocations may still return it, and while a job that it granted tasks to is
-- being planned: if such a task became unplaced again, a repeated commit under the same lease would grant it twice.
-- A job is kept while a commit is on record that is not older than the job's end, so that evictions can be checked as
-- long as either is kept. The oldest commit is found by its number, which has an index. No commit is so slow that its
-- time differs by an hour from those of neighbouring numbers.
CREATE FUNCTION omega.prune_history(_table text, _older_than_ms bigint, _block bigint, _blocks bigint)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    before timestamptz;
    first tid;
    last tid;
    pruned integer;
BEGIN
    PERFORM needs_read_committed();
    IF (_block BETWEEN 0 AND 4294967294 AND _blocks BETWEEN 1 AND 4294967294 - _block) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad blocks: % from % on', coalesce(_blocks::text, 'null'), coalesce(_block::text, 'null')
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    before := clock_timestamp() - milliseconds(_older_than_ms);
    first := format('(%s,0)', _block)::tid;
    last := format('(%s,0)', _block + _blocks)::tid;
    CASE _table
    WHEN 'transaction' THEN
        DELETE FROM transaction
         WHERE ctid >= first AND ctid < last AND committed_at < before
           AND changed_by < least(pg_snapshot_xmin(pg_current_snapshot()), (SELECT changes_from FROM cell))
           AND NOT (EXISTS (SELECT FROM job j WHERE j.id = ANY (jobs) AND j.state = 'planning')
                    AND EXISTS (SELECT FROM unnest(claimants(jobs, ends), verdicts) AS c (job, verdict)
                                  JOIN job j ON j.id = c.job WHERE c.verdict = ${accepted} AND j.state = 'planning'));
    WHEN 'machine_change' THEN
        DELETE FROM machine_change
         WHERE ctid >= first AND ctid < last AND changed_by < (SELECT changes_from FROM cell);
    WHEN 'ended_task' THEN
        DELETE FROM ended_task WHERE ctid >= first AND ctid < last AND ended_at < before;
    WHEN 'task_exit' THEN
        DELETE FROM task_exit WHERE ctid >= first AND ctid < last AND ended_at < before;
    WHEN 'task_output' THEN
        -- Outputs go with their jobs; here go those that were reported just as their job went.
        DELETE FROM task_output o
         WHERE o.ctid >= first AND o.ctid < last AND NOT EXISTS (SELECT FROM job j WHERE j.id = o.job_id);
    WHEN 'stage_cost' THEN
        -- What was learnt, and the tokens taken, are of pipelines by a name; they go with the last of these.
        WITH over AS MATERIALIZED (
            SELECT c.tenant, c.template, c.stage FROM stage_cost c
             WHERE c.ctid >= first AND c.ctid < last AND NOT EXISTS (SELECT FROM pipeline p WHERE p.tenant = c.tenant AND p.name = c.template)
             ORDER BY c.tenant, c.template, c.stage FOR UPDATE SKIP LOCKED
        )
        DELETE FROM stage_cost c USING over WHERE (c.tenant, c.template, c.stage) = (over.tenant, over.template, over.stage);
    WHEN 'pipeline_tokens' THEN
        WITH over AS MATERIALIZED (
            SELECT t.tenant, t.template FROM pipeline_tokens t
             WHERE t.ctid >= first AND t.ctid < last AND (t.interval + 1) * t.interval_ms < extract(epoch FROM before) * 1000
               AND NOT EXISTS (SELECT FROM pipeline p WHERE p.tenant = t.tenant AND p.name = t.template)
             ORDER BY t.tenant, t.template FOR UPDATE SKIP LOCKED
        )
        DELETE FROM pipeline_tokens t USING over WHERE (t.tenant, t.template) = (over.tenant, over.template);
    WHEN 'job' THEN
        before := least(before, (SELECT committed_at - interval '1 hour' FROM transaction ORDER BY changed_by LIMIT 1));
        WITH over AS MATERIALIZED (
            SELECT id FROM job
             WHERE ctid >= first AND ctid < last AND state IN (${final_states}) AND finished_at < before
             ORDER BY id FOR UPDATE SKIP LOCKED
        ), undescribed AS (
            DELETE FROM job_spec s USING over WHERE s.job_id = over.id
        ), unreckoned AS (
            DELETE FROM progress p USING over WHERE p.job_id = over.id
        ), of_phases AS (
            DELETE FROM phase_progress p USING over WHERE p.job_id = over.id
        ), exits AS (
            DELETE FROM task_exit e USING over WHERE e.job_id = over.id
        ), outputs AS (
            DELETE FROM task_output o USING over WHERE o.job_id = over.id
        )
        DELETE FROM job j USING over WHERE j.id = over.id;
    WHEN 'pipeline' THEN
        RETURN prune_pipelines(before, first, last);
    ELSE
        RAISE EXCEPTION 'bad table: there is no history in %', coalesce(_table, 'null') USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END $$;
