-- Pipelines: stages that become jobs when all stages before them have succeeded, what stages cost, and the keys by which
-- jobs are leased in the orders of start deadlines: docs/decisions/0059-start-deadlines.md. The stages of a pipeline are
-- numbered from 0, each after all that it comes after. Rows are locked in this order: jobs, pipelines, quotas, machines,
-- costs. omega/model/pipelines.py writes the wire form; omega/ordering has the same sums in Python.

-- Whether this is a stage in the wire form that may stand at this place. Its job is checked apart.
CREATE FUNCTION omega.is_stage(_it jsonb, _number integer)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{name,after,units,job}') AND omega.is_name(_it -> 'name')
       AND omega.is_whole(_it -> 'units', 1, ${stage_units_max})
       AND CASE WHEN jsonb_typeof(_it -> 'after') IS DISTINCT FROM 'array' THEN false
                WHEN jsonb_array_length(_it -> 'after') > _number THEN false
                ELSE (SELECT coalesce(bool_and(omega.is_whole(a.it, 0, _number - 1)), true) AND count(DISTINCT a.it) = count(*)
                        FROM jsonb_array_elements(_it -> 'after') AS a (it)) END
$$;

-- Why a pipeline is not in the wire form; null if it is.
CREATE FUNCTION omega.problem_with_pipeline(_it jsonb)
RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    tokens jsonb := coalesce(_it -> 'tokens', 'null');
BEGIN
    IF NOT has_only(_it, '{name,tenant,within_ms,tokens,stages}') THEN
        RETURN 'it is no object, or has a field that no pipeline has';
    ELSIF NOT (is_name(_it -> 'name') AND is_name(_it -> 'tenant')) THEN
        RETURN 'name and tenant are texts of 1 to ${name_length_max} characters that can be printed';
    ELSIF NOT is_whole(_it -> 'within_ms', 1, ${duration_ms_max}) THEN
        RETURN 'the time within which it is to end is no whole number from 1 to ${duration_ms_max}';
    ELSIF tokens <> 'null' AND NOT (has_only(tokens, '{rate,interval_ms}') AND is_whole(tokens -> 'rate', 1, ${token_rate_max})
                                    AND is_whole(tokens -> 'interval_ms', 1, ${duration_ms_max})) THEN
        RETURN 'its tokens are no rate of 1 to ${token_rate_max} and an interval';
    ELSIF jsonb_typeof(_it -> 'stages') IS DISTINCT FROM 'array' THEN
        RETURN 'it has no list of stages';
    ELSIF jsonb_array_length(_it -> 'stages') NOT BETWEEN 1 AND ${stages_per_pipeline_max} THEN
        RETURN 'it does not have 1 to ${stages_per_pipeline_max} stages';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(_it -> 'stages') WITH ORDINALITY AS s (it, n)
                   WHERE NOT coalesce(is_stage(s.it, s.n::integer - 1), false)) THEN
        RETURN 'a stage is not in the wire form, or comes before one that it comes after';
    ELSIF (SELECT count(DISTINCT s.it ->> 'name') < count(*) FROM jsonb_array_elements(_it -> 'stages') AS s (it)) THEN
        RETURN 'two of its stages have one name';
    END IF;
    RETURN (SELECT format('stage %s: %s', s.n, coalesce(p.problem, 'its tenant is not that of the pipeline'))
              FROM jsonb_array_elements(_it -> 'stages') WITH ORDINALITY AS s (it, n), problem_with_job(s.it -> 'job') AS p (problem)
             WHERE p.problem IS NOT NULL OR s.it #> '{job,tenant}' <> _it -> 'tenant' ORDER BY s.n LIMIT 1);
END $$;

-- Take a token of a template; return its stamp, or the largest key if none is left in this interval. The clock is read once
-- the row is locked, unless the caller gives a time, and intervals never go back: who waited for the row takes no token of
-- the past. If the length of intervals changes, what was taken in one that is not over counts in the new one, too.
CREATE FUNCTION omega.take_token(_tenant text, _template text, _tokens jsonb, _now_ms bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    rate bigint := _tokens ->> 'rate';
    lasts bigint := _tokens ->> 'interval_ms';
    had pipeline_tokens%ROWTYPE;
    now_ms bigint;
    this bigint;
    before integer;
BEGIN
    IF coalesce(_tokens, 'null') = 'null' THEN
        RETURN ${last_key};
    END IF;
    LOOP
        SELECT t.* INTO had FROM pipeline_tokens t WHERE t.tenant = _tenant AND t.template = _template FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO pipeline_tokens (tenant, template, interval_ms, interval, taken) VALUES (_tenant, _template, lasts, -1, 0)
            ON CONFLICT DO NOTHING;
    END LOOP;
    now_ms := coalesce(_now_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    this := greatest(div(now_ms, lasts), CASE WHEN had.interval_ms = lasts THEN had.interval END);
    before := CASE WHEN had.interval_ms = lasts AND had.interval = this THEN had.taken
                   WHEN had.interval_ms <> lasts AND (had.interval + 1) * had.interval_ms > now_ms THEN had.taken
                   ELSE 0 END;
    IF before >= rate THEN
        RETURN ${last_key};
    END IF;
    UPDATE pipeline_tokens t SET interval_ms = lasts, interval = this, taken = before + 1
     WHERE t.tenant = _tenant AND t.template = _template;
    RETURN div((this::numeric * rate + before) * lasts, rate)::bigint;
END $$;

-- Add pipelines, all or none, in the wire form of omega/model/pipelines.py, and queue their first stages; return their ids.
-- Tokens are taken template by template in the order of names, so that two calls do not wait for each other.
CREATE FUNCTION omega.submit_pipelines(_specs jsonb)
RETURNS bigint[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    ids bigint[];
    wrong text;
BEGIN
    PERFORM needs_read_committed();
    IF jsonb_typeof(_specs) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'bad pipelines: they are no list' USING ERRCODE = 'invalid_parameter_value';
    ELSIF jsonb_array_length(_specs) > ${pipelines_per_submission_max} OR pg_column_size(_specs) > ${submission_bytes_max} THEN
        RAISE EXCEPTION 'bad pipelines: they are more than ${pipelines_per_submission_max}, or longer than ${submission_bytes_max} bytes'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT format('%s: %s', s.n, p.problem) INTO wrong
      FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (it, n), problem_with_pipeline(s.it) AS p (problem)
     WHERE p.problem IS NOT NULL ORDER BY s.n LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'bad pipeline %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF (SELECT sum(jsonb_array_length(s.it -> 'stages')) FROM jsonb_array_elements(_specs) AS s (it)) > ${jobs_per_submission_max} THEN
        RAISE EXCEPTION 'bad pipelines: they have more than ${jobs_per_submission_max} stages' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH submitted AS MATERIALIZED (
        SELECT nextval(pg_get_serial_sequence('omega.pipeline', 'id')) AS id, s.it, s.n, clock_timestamp() AS now
          FROM jsonb_array_elements(_specs) WITH ORDINALITY AS s (it, n) ORDER BY s.n
    ), stamped AS MATERIALIZED (
        SELECT s.id, take_token(s.it ->> 'tenant', s.it ->> 'name', s.it -> 'tokens') AS stamp
          FROM (SELECT * FROM submitted ORDER BY it ->> 'tenant', it ->> 'name', n) AS s
    ), described AS (
        INSERT INTO pipeline (id, name, tenant, within_ms, stamp, submitted_at) OVERRIDING SYSTEM VALUE
        SELECT s.id, s.it ->> 'name', s.it ->> 'tenant', (s.it ->> 'within_ms')::bigint, t.stamp, s.now
          FROM submitted s JOIN stamped t ON t.id = s.id
    ), staged AS (
        INSERT INTO pipeline_stage (pipeline_id, number, name, after, units, wire)
        SELECT s.id, e.n - 1, e.it ->> 'name',
               ARRAY(SELECT a.it::integer FROM jsonb_array_elements_text(e.it -> 'after') WITH ORDINALITY AS a (it, n) ORDER BY a.n),
               (e.it ->> 'units')::bigint, e.it -> 'job'
          FROM submitted s, jsonb_array_elements(s.it -> 'stages') WITH ORDINALITY AS e (it, n)
    )
    SELECT coalesce(array_agg(s.id ORDER BY s.n), '{}') INTO ids FROM submitted s;
    PERFORM queue_stages(ids);
    RETURN ids;
END $$;

-- The key of a stage under an order of the queue.
CREATE FUNCTION omega.key_in_order(_order text, _start_ms bigint, _cost_ms bigint, _stamp bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE _order WHEN 'deadline-edf' THEN _start_ms + _cost_ms
                       WHEN 'deadline-sjf' THEN _cost_ms
                       WHEN 'deadline-tokens' THEN _stamp
                       ELSE _start_ms END
$$;

-- How long each stage of a pipeline is expected to take, and its start deadline, in the order of the stages. Deadlines are
-- computed from the last stage back: the longest path below a stage is a maximum over the stages after it.
CREATE FUNCTION omega.stage_deadlines(_pipeline bigint, OUT cost_ms bigint[], OUT start_ms bigint[])
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
DECLARE
    of pipeline%ROWTYPE;
    stage record;
    target_ms bigint;
    longest integer[] := '{}';  -- the stages on the longest path that ends with each
    below_ms bigint[];
    mean numeric;
BEGIN
    SELECT * INTO of FROM pipeline WHERE id = _pipeline;
    SELECT div(sum(c.picos), count(*)) INTO mean FROM stage_cost c WHERE c.tenant = of.tenant AND c.template = of.name;
    IF mean IS NULL THEN
        FOR stage IN SELECT s.number, s.after FROM pipeline_stage s WHERE s.pipeline_id = _pipeline ORDER BY s.number LOOP
            longest[stage.number + 1] := 1 + coalesce((SELECT max(longest[a.it + 1]) FROM unnest(stage.after) AS a (it)), 0);
        END LOOP;
        cost_ms := array_fill(of.within_ms / (SELECT max(l.it) FROM unnest(longest) AS l (it)), ARRAY[cardinality(longest)]);
    ELSE
        cost_ms := ARRAY(
            SELECT least(div(coalesce(c.picos, mean) * s.units, ${picos_per_ms}), ${duration_ms_max})::bigint
              FROM pipeline_stage s
              LEFT JOIN stage_cost c ON c.tenant = of.tenant AND c.template = of.name AND c.stage = s.name
             WHERE s.pipeline_id = _pipeline ORDER BY s.number);
    END IF;
    target_ms := (extract(epoch FROM of.submitted_at) * 1000)::bigint + of.within_ms;
    below_ms := array_fill(0::bigint, ARRAY[cardinality(cost_ms)]);
    start_ms := below_ms;
    FOR stage IN SELECT s.number + 1 AS at, s.after FROM pipeline_stage s WHERE s.pipeline_id = _pipeline ORDER BY s.number DESC LOOP
        start_ms[stage.at] := target_ms - cost_ms[stage.at] - below_ms[stage.at];
        FOR parent IN 1 .. cardinality(stage.after) LOOP
            below_ms[stage.after[parent] + 1] := greatest(below_ms[stage.after[parent] + 1], cost_ms[stage.at] + below_ms[stage.at]);
        END LOOP;
    END LOOP;
END $$;

-- Make jobs of the stages of these pipelines that have none and whose parents have all succeeded.
CREATE FUNCTION omega.queue_stages(_pipelines bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    it bigint;
    its_stamp bigint;
    costs bigint[];
    starts bigint[];
    wires jsonb;
    numbers integer[];
    keys bigint[];
    ids bigint[];
BEGIN
    FOREACH it IN ARRAY _pipelines LOOP
        SELECT array_agg(s.number ORDER BY s.number), jsonb_agg(s.wire ORDER BY s.number) INTO numbers, wires
          FROM pipeline_stage s
         WHERE s.pipeline_id = it AND s.job_id IS NULL AND s.ended_as IS NULL
           AND NOT EXISTS (SELECT FROM pipeline_stage p
                            WHERE p.pipeline_id = it AND p.number = ANY (s.after) AND p.ended_as IS DISTINCT FROM 'succeeded');
        CONTINUE WHEN numbers IS NULL;
        SELECT d.cost_ms, d.start_ms INTO costs, starts FROM stage_deadlines(it) AS d;
        SELECT p.stamp INTO its_stamp FROM pipeline p WHERE p.id = it;
        keys := ARRAY(
            SELECT key_in_order((SELECT o.name FROM queue_order o WHERE o.scheduler = w.it ->> 'scheduler'),
                                starts[n.at + 1], costs[n.at + 1], its_stamp)
              FROM unnest(numbers) WITH ORDINALITY AS n (at, place)
              JOIN jsonb_array_elements(wires) WITH ORDINALITY AS w (it, place) USING (place) ORDER BY place);
        ids := queue_jobs(wires, it, keys);
        UPDATE pipeline_stage s
           SET job_id = n.id, cost_ms = costs[n.at + 1], start_ms = starts[n.at + 1]
          FROM unnest(numbers, ids) AS n (at, id) WHERE s.pipeline_id = it AND s.number = n.at;
    END LOOP;
END $$;

-- Lock the pipelines of these jobs, so that of two stages that end at once one sees the other.
CREATE FUNCTION omega.lock_pipelines(_jobs bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM 1 FROM pipeline WHERE id IN (SELECT j.pipeline FROM job j WHERE j.id = ANY (_jobs)) ORDER BY id FOR NO KEY UPDATE;
END $$;

-- Note how the stages ended whose jobs these are: all in one way, or, without one, those that have ended as their jobs did.
-- Then the stages that come after are queued, or are skipped. A stage that was noted before stays as it is. How long a stage
-- took, if it is given, is learnt of those that succeeded. The jobs and their pipelines are locked.
CREATE FUNCTION omega.end_stages(_jobs bigint[], _took_ms bigint[], _state text)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    ended record;
    sample record;
    pipelines bigint[] := '{}';
BEGIN
    FOR ended IN
        SELECT s.pipeline_id, s.number, s.name, s.job_id, coalesce(_state, j.state) AS state
          FROM job j JOIN pipeline_stage s ON s.pipeline_id = j.pipeline AND s.job_id = j.id
         WHERE j.id = ANY (_jobs) AND s.ended_as IS NULL AND (_state IS NOT NULL OR j.finished_at IS NOT NULL)
         ORDER BY s.pipeline_id, s.number
    LOOP
        UPDATE pipeline_stage s SET ended_as = ended.state WHERE s.pipeline_id = ended.pipeline_id AND s.number = ended.number;
        IF ended.state <> 'succeeded' THEN
            WITH RECURSIVE below AS (
                SELECT ended.number AS number
                 UNION
                SELECT s.number FROM below b JOIN pipeline_stage s ON s.pipeline_id = ended.pipeline_id AND s.after @> ARRAY[b.number]
            )
            UPDATE pipeline_stage s SET ended_as = 'skipped', cause = format('job %s of an earlier stage: %s', ended.job_id, ended.state)
             WHERE s.pipeline_id = ended.pipeline_id AND s.number IN (SELECT b.number FROM below b) AND s.ended_as IS NULL;
        END IF;
        pipelines := pipelines || ended.pipeline_id;
    END LOOP;
    IF pipelines = '{}' THEN
        RETURN;
    END IF;
    FOR sample IN
        SELECT p.tenant, p.name AS template, s.name AS stage,
               least(div(greatest(w.took_ms, 0) * ${picos_per_ms}::numeric, s.units), ${duration_ms_max} * ${picos_per_ms}::numeric) AS picos
          FROM unnest(_jobs, _took_ms) AS w (id, took_ms)
          JOIN job j ON j.id = w.id
          JOIN pipeline_stage s ON s.pipeline_id = j.pipeline AND s.job_id = j.id
          JOIN pipeline p ON p.id = s.pipeline_id
         WHERE s.pipeline_id = ANY (pipelines) AND s.ended_as = 'succeeded' AND w.took_ms IS NOT NULL
         ORDER BY p.tenant, p.name, s.name, s.pipeline_id
    LOOP
        INSERT INTO stage_cost AS c (tenant, template, stage, picos) VALUES (sample.tenant, sample.template, sample.stage, sample.picos)
            ON CONFLICT (tenant, template, stage) DO UPDATE SET picos = div(${old_parts} * c.picos + excluded.picos, ${old_parts} + 1);
    END LOOP;
    PERFORM queue_stages(ARRAY(SELECT DISTINCT p.id FROM unnest(pipelines) AS p (id) ORDER BY p.id));
    UPDATE pipeline p SET finished_at = clock_timestamp()
     WHERE p.id = ANY (pipelines) AND p.finished_at IS NULL
       AND NOT EXISTS (SELECT FROM pipeline_stage s WHERE s.pipeline_id = p.id AND s.ended_as IS NULL);
END $$;

-- Give the stages of a kind that have not ended the keys of an order: those that run may be pending again. Those that are
-- locked are left for the next call.
CREATE FUNCTION omega.renew_keys(_scheduler text, _order text)
RETURNS void LANGUAGE sql SET search_path = omega, pg_temp AS $$
    WITH stale AS MATERIALIZED (
        SELECT j.id, key_in_order(_order, s.start_ms, s.cost_ms, p.stamp) AS key
          FROM pipeline p JOIN pipeline_stage s ON s.pipeline_id = p.id JOIN job j ON j.id = s.job_id
         WHERE p.finished_at IS NULL AND s.ended_as IS NULL AND j.scheduler = _scheduler AND j.state NOT IN (${final_states})
           AND j.order_key <> key_in_order(_order, s.start_ms, s.cost_ms, p.stamp)
         ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
    )
    UPDATE job j SET order_key = stale.key FROM stale WHERE j.id = stale.id
$$;

-- Remove pipelines that ended before that time, in these blocks, with their stages; return how many.
CREATE FUNCTION omega.prune_pipelines(_before timestamptz, _first tid, _last tid)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    pruned integer;
BEGIN
    WITH over AS MATERIALIZED (
        SELECT id FROM pipeline WHERE ctid >= _first AND ctid < _last AND finished_at < _before ORDER BY id FOR UPDATE SKIP LOCKED
    ), stages AS (
        DELETE FROM pipeline_stage s USING over WHERE s.pipeline_id = over.id
    )
    DELETE FROM pipeline p USING over WHERE p.id = over.id;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END $$;
