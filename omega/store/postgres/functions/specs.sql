-- The wire form of a job, which omega/model/wire.py writes and reads. A job in another form, or with other fields, is
-- refused when it is submitted, because a scheduler could only park it.

-- Whether this is a constraint on a machine's attribute in the wire form.
CREATE FUNCTION omega.is_constraint(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{attribute,operator,values}') AND omega.is_name(_it -> 'attribute')
       AND omega.are_names(_it -> 'values', ${values_per_constraint_max})
       AND CASE WHEN _it ->> 'operator' IN ('in', 'not_in') THEN _it -> 'values' <> '[]'
                WHEN _it ->> 'operator' IN ('exists', 'missing') THEN _it -> 'values' = '[]'
                ELSE false END
$$;

-- Whether these are preferences: constraints with weights, or none.
CREATE FUNCTION omega.are_preferences(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_it) IS DISTINCT FROM 'array' THEN false
                WHEN jsonb_array_length(_it) > ${constraints_per_group_max} THEN false
                ELSE NOT EXISTS (SELECT FROM jsonb_array_elements(_it) AS p (it)
                                  WHERE NOT CASE WHEN jsonb_typeof(p.it) = 'object'
                                                 THEN coalesce(omega.is_constraint(p.it - 'weight')
                                                               AND omega.is_whole(p.it -> 'weight', 1, ${preference_weight_max}), false)
                                                 ELSE false END) END
$$;

-- Whether this is null, or a text that can be a name of at most so many characters.
CREATE FUNCTION omega.is_name_or_null(_it jsonb, _length_max integer)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(_it) WHEN 'null' THEN true WHEN 'string' THEN omega.can_name(_it #>> '{}', _length_max) ELSE false END
$$;

-- Whether these are environment variables that a job may set: an object of texts.
CREATE FUNCTION omega.are_variables(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_it) IS DISTINCT FROM 'object' THEN false
                ELSE (SELECT count(*) <= ${variables_max}
                             -- Ranges of letters by number: in other collations they hold letters with accents.
                             AND coalesce(bool_and(v.name COLLATE "C" ~ '^[A-Za-z_][A-Za-z0-9_]*$'
                                                   AND NOT starts_with(v.name, '${reserved}')
                                                   AND jsonb_typeof(v.it) = 'string'), true)
                        FROM jsonb_each(_it) AS v (name, it)) END
$$;

-- Whether these are the words of a command, or none.
CREATE FUNCTION omega.is_command(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN NOT coalesce(omega.are_texts(_it), false) THEN false
                WHEN _it = '[]' THEN true
                ELSE jsonb_array_length(_it) <= ${command_words_max} AND _it ->> 0 <> '' END
$$;

-- Whether this is the check of a program in the wire form.
CREATE FUNCTION omega.is_check(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{port,path,command,interval_ms,timeout_ms,failures}')
       AND omega.is_command(_it -> 'command') AND (_it -> 'command' = '[]') = (_it -> 'port' <> 'null')
       AND (_it -> 'port' = 'null' OR omega.is_whole(_it -> 'port', 1, ${port_max}))
       AND CASE jsonb_typeof(_it -> 'path')
                WHEN 'null' THEN true
                WHEN 'string' THEN _it -> 'port' <> 'null' AND length(_it ->> 'path') <= ${path_length_max}
                                   AND _it ->> 'path' COLLATE "C" ~ '^/[!-~]*$'
                ELSE false END
       AND omega.is_whole(_it -> 'interval_ms', 1, ${duration_ms_max})
       AND omega.is_whole(_it -> 'timeout_ms', 1, ${check_timeout_ms_max})
       AND omega.is_whole(_it -> 'failures', 1, ${check_failures_max})
$$;

-- Whether this is a program in the wire form.
CREATE FUNCTION omega.is_program(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{command,env,env_file,image,user,working_dir,timeout_ms,stop_signal,stop_grace_ms,restart,check}')
       AND omega.are_variables(_it -> 'env')
       AND omega.is_command(_it -> 'command') AND (_it -> 'command' <> '[]' OR _it -> 'image' <> 'null')
       AND omega.is_name_or_null(_it -> 'image', ${name_length_max}) AND omega.is_name_or_null(_it -> 'user', ${name_length_max})
       AND omega.is_name_or_null(_it -> 'env_file', ${path_length_max})
       AND omega.is_name_or_null(_it -> 'working_dir', ${path_length_max})
       AND (_it -> 'working_dir' = 'null' OR starts_with(_it ->> 'working_dir', '/'))
       AND (_it -> 'timeout_ms' = 'null' OR omega.is_whole(_it -> 'timeout_ms', 1, ${duration_ms_max}))
       AND jsonb_typeof(_it -> 'stop_signal') = 'string' AND _it ->> 'stop_signal' = ANY ('{${signals}}')
       AND omega.is_whole(_it -> 'stop_grace_ms', 0, ${stop_grace_ms_max})
       AND omega.has_only(_it -> 'restart', '{attempts,within_ms,delay_ms}')
       AND omega.is_whole(_it #> '{restart,attempts}', 0, ${restarts_max})
       AND omega.is_whole(_it #> '{restart,within_ms}', 1, ${duration_ms_max})
       AND omega.is_whole(_it #> '{restart,delay_ms}', 0, ${duration_ms_max})
       AND (NOT _it ? 'check' OR omega.is_check(_it -> 'check'))
$$;

-- Whether this is a task group in the wire form.
CREATE FUNCTION omega.is_group(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{tasks,cpu_milli,memory_mib,disk_mib,gpus,gpu_slices,duration_ms,constraints,spread_over,different_machines,program,preferences,patience_ms}')
       AND omega.is_whole(_it -> 'tasks', 1, ${tasks_per_job_max})
       AND omega.is_whole(_it -> 'cpu_milli', 0, ${amount_max})
       AND omega.is_whole(_it -> 'memory_mib', 0, ${amount_max})
       AND omega.is_whole(_it -> 'disk_mib', 0, ${amount_max})
       AND omega.is_whole(_it -> 'gpus', 0, ${devices_max})
       AND omega.is_whole(_it -> 'gpu_slices', CASE WHEN _it -> 'gpus' IN ('0', '1') THEN 1 ELSE ${gpu_slices} END, ${gpu_slices})
       AND (_it -> 'duration_ms' = 'null' OR omega.is_whole(_it -> 'duration_ms', 0, ${duration_ms_max}))
       AND (_it -> 'spread_over' = 'null' OR omega.is_name(_it -> 'spread_over'))
       AND jsonb_typeof(_it -> 'different_machines') = 'boolean'
       AND (coalesce(_it -> 'program', 'null') = 'null' OR _it -> 'duration_ms' = 'null' AND omega.is_program(_it -> 'program'))
       AND (NOT _it ? 'preferences' OR omega.are_preferences(_it -> 'preferences'))
       AND (NOT _it ? 'patience_ms'
            OR omega.is_whole(_it -> 'patience_ms', 0, ${duration_ms_max})
               AND CASE WHEN _it -> 'patience_ms' = '0' THEN true
                        WHEN jsonb_typeof(_it -> 'preferences') = 'array' THEN jsonb_array_length(_it -> 'preferences') > 0
                        ELSE false END)
       AND CASE WHEN jsonb_typeof(_it -> 'constraints') IS DISTINCT FROM 'array' THEN false
                WHEN jsonb_array_length(_it -> 'constraints') > ${constraints_per_group_max} THEN false
                ELSE NOT EXISTS (SELECT FROM jsonb_array_elements(_it -> 'constraints') AS c (it)
                                  WHERE NOT coalesce(omega.is_constraint(c.it), false)) END
$$;

-- Whether what a job says of its work in steps is in the wire form.
CREATE FUNCTION omega.is_step_work(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{kind,steps,weight}') AND omega.is_name(_it -> 'kind')
       AND omega.is_whole(_it -> 'steps', 1, ${steps_max})
       AND omega.is_whole(coalesce(_it -> 'weight', '1'), 1, ${work_weight_max})  -- jobs of earlier versions have none
$$;

-- Whether this is a phase of an elastic job in the wire form.
CREATE FUNCTION omega.is_phase(_it jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.has_only(_it, '{name,activities,duration_ms,after}')
       AND (_it -> 'after' = 'null' OR omega.is_name(_it -> 'after')) AND omega.is_name(_it -> 'name')
       AND omega.is_whole(_it -> 'activities', 1, ${activities_max})
       AND omega.is_whole(_it -> 'duration_ms', 1, ${duration_ms_max})
$$;

-- Why a job of so many tasks, with sound groups, may not be elastic; null if it may.
CREATE FUNCTION omega.problem_with_workers(_spec jsonb, _tasks bigint)
RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    workers jsonb := _spec -> 'workers';
    phases jsonb := _spec #> '{workers,phases}';
    only_group jsonb := _spec #> '{groups,0}';
BEGIN
    IF NOT has_only(workers, '{at_most,phases}') OR NOT is_whole(workers -> 'at_most', 1, ${tasks_per_job_max}) THEN
        RETURN 'its workers are no number of at most ${tasks_per_job_max}, with phases';
    ELSIF (workers ->> 'at_most')::integer < _tasks THEN
        RETURN 'it may have fewer workers than it has tasks';
    ELSIF jsonb_array_length(_spec -> 'groups') <> 1 OR only_group -> 'spread_over' <> 'null'
          OR only_group -> 'different_machines' <> 'false' OR coalesce(_spec -> 'work', 'null') <> 'null' THEN
        RETURN 'it has workers and is in steps, or has several task groups, or one that depends on where others run';
    ELSIF jsonb_typeof(phases) IS DISTINCT FROM 'array' THEN
        RETURN 'its workers have no list of phases';
    ELSIF jsonb_array_length(phases) > ${phases_per_job_max}
          OR EXISTS (SELECT FROM jsonb_array_elements(phases) AS p (it) WHERE NOT coalesce(is_phase(p.it), false)) THEN
        RETURN 'it has more than ${phases_per_job_max} phases, or one that is not in the wire form';
    ELSIF phases <> '[]' AND only_group -> 'duration_ms' <> 'null' THEN
        RETURN 'its tasks have durations, but a job with phases ends with the last activity';
    ELSIF phases <> '[]' AND coalesce(only_group -> 'program', 'null') <> 'null' THEN
        RETURN 'its tasks run a program, but a job with phases ends with the last activity';
    ELSIF (SELECT count(DISTINCT p.it ->> 'name') < count(*) FROM jsonb_array_elements(phases) AS p (it)) THEN
        RETURN 'two of its phases have one name';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(phases) AS p (it)
                   WHERE p.it -> 'after' <> 'null'
                     AND NOT EXISTS (SELECT FROM jsonb_array_elements(phases) AS o (it) WHERE o.it -> 'name' = p.it -> 'after')) THEN
        RETURN 'one of its phases comes after one that is not there';
    ELSIF phases <> '[]' AND NOT EXISTS (  -- of two phases at most, which all come after others
              SELECT FROM jsonb_array_elements(phases) AS p (it) WHERE p.it -> 'after' = 'null')
          OR EXISTS (SELECT FROM jsonb_array_elements(phases) AS p (it) WHERE p.it -> 'after' = p.it -> 'name') THEN
        RETURN 'its phases wait for each other';
    END IF;
    RETURN NULL;
END $$;

-- Why a job is not in the wire form; null if it is.
CREATE FUNCTION omega.problem_with_job(_spec jsonb)
RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    tasks bigint;
BEGIN
    IF pg_column_size(_spec) > 4 * ${wire_bytes_max} THEN
        RETURN 'it is longer than ${wire_bytes_max} bytes';
    ELSIF NOT has_only(_spec, '{name,scheduler,tenant,precedence,minimum,groups,work,preemptible,workers}') THEN
        RETURN 'it is no object, or has a field that no job has';
    ELSIF NOT (is_name(_spec -> 'name') AND is_name(_spec -> 'scheduler') AND is_name(_spec -> 'tenant')) THEN
        RETURN 'name, scheduler and tenant are texts of 1 to ${name_length_max} characters that can be printed';
    ELSIF NOT is_whole(_spec -> 'precedence', -2147483648, 2147483647) THEN
        RETURN 'its precedence is no whole number of 32 bits';
    ELSIF jsonb_typeof(coalesce(_spec -> 'preemptible', 'true')) <> 'boolean' THEN
        RETURN 'whether it is preemptible is neither true nor false';
    ELSIF jsonb_typeof(_spec -> 'groups') IS DISTINCT FROM 'array' THEN
        RETURN 'it has no list of task groups';
    ELSIF jsonb_array_length(_spec -> 'groups') NOT BETWEEN 1 AND ${task_groups_per_job_max} THEN
        RETURN 'it does not have 1 to ${task_groups_per_job_max} task groups';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(_spec -> 'groups') AS g (it) WHERE NOT coalesce(is_group(g.it), false)) THEN
        RETURN 'a task group is not in the wire form';
    END IF;
    SELECT sum((g.it ->> 'tasks')::bigint) INTO tasks FROM jsonb_array_elements(_spec -> 'groups') AS g (it);
    IF tasks > ${tasks_per_job_max} THEN
        RETURN format('it has %s tasks, more than ${tasks_per_job_max}', tasks);
    ELSIF NOT is_whole(_spec -> 'minimum', 0, tasks) THEN
        RETURN 'its minimum is no number from 0 to that of its tasks';
    ELSIF coalesce(_spec -> 'work', 'null') <> 'null' THEN
        IF NOT coalesce(is_step_work(_spec -> 'work'), false) THEN
            RETURN 'its work is no kind, number of steps from 1 to ${steps_max} and weight from 1 to ${work_weight_max}';
        ELSIF EXISTS (SELECT FROM jsonb_array_elements(_spec -> 'groups') AS g (it) WHERE g.it -> 'duration_ms' <> 'null') THEN
            RETURN 'its tasks have durations, but a job in steps ends after the last one';
        END IF;
    END IF;
    IF coalesce(_spec -> 'workers', 'null') <> 'null' AND problem_with_workers(_spec, tasks) IS NOT NULL THEN
        RETURN problem_with_workers(_spec, tasks);
    END IF;
    -- Last, because a number that is not known to be short may be thousands of times as long as text.
    RETURN CASE WHEN octet_length(_spec::text) > ${wire_bytes_max} THEN 'it is longer than ${wire_bytes_max} bytes' END;
END $$;

-- What all tasks of a job's groups need together: CPU, memory, disk and GPU slices. omega.model.lanes computes the same.
CREATE FUNCTION omega.job_demand(_groups jsonb)
RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[sum(t.asks * (g.it ->> 'cpu_milli')::bigint), sum(t.asks * (g.it ->> 'memory_mib')::bigint),
                 sum(t.asks * (g.it ->> 'disk_mib')::bigint),
                 sum(t.asks * (g.it ->> 'gpus')::bigint * (g.it ->> 'gpu_slices')::bigint)]::bigint[]
      FROM jsonb_array_elements(_groups) AS g (it), LATERAL (SELECT (g.it ->> 'tasks')::bigint AS asks) AS t
$$;

-- The class of a job's lane, from 0 on: that of its shape without constraints, else one of ${constraint_classes} by a hash of its
-- constraints and its shape. omega.model.lanes computes the same.
CREATE FUNCTION omega.lane_class(_spec jsonb)
RETURNS smallint LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    shape integer := shape_class(_spec);
    texts text;
BEGIN
    SELECT string_agg(c.text, chr(10) || chr(10) ORDER BY c.text COLLATE "C") INTO texts
      FROM (SELECT DISTINCT concat_ws(chr(10), c.it ->> 'attribute', c.it ->> 'operator',
                                      (SELECT string_agg(v.it, chr(10) ORDER BY v.n)
                                         FROM jsonb_array_elements_text(c.it -> 'values') WITH ORDINALITY AS v (it, n))) AS text
              FROM jsonb_array_elements(_spec -> 'groups') AS g (it), jsonb_array_elements(g.it -> 'constraints') AS c (it)) AS c;
    IF texts IS NULL THEN
        RETURN shape;
    END IF;
    RETURN ${shape_classes} + get_byte(sha256(convert_to(texts || chr(10) || chr(10) || shape, 'UTF8')), 0) % ${constraint_classes};
END $$;

-- The class of a job's shape: the resource of which a task needs most, which is GPUs if it needs any; whether it is a gang; and
-- what it needs to begin, in powers of two. omega.model.lanes computes the same.
CREATE FUNCTION omega.shape_class(_spec jsonb)
RETURNS integer LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    units bigint[] := '{${size_units}}';
    demand bigint[] := job_demand(_spec -> 'groups');
    tasks bigint := (SELECT sum((g.it ->> 'tasks')::integer) FROM jsonb_array_elements(_spec -> 'groups') AS g (it));
    tasks_least bigint := greatest(1, (_spec ->> 'minimum')::bigint);
    most bigint := -1;
    resource integer;
BEGIN
    FOR at IN 1 .. ${resources} LOOP
        IF demand[at] / tasks * tasks_least / units[at] > most THEN
            most := demand[at] / tasks * tasks_least / units[at];
            resource := at - 1;
        END IF;
    END LOOP;
    IF demand[${resources}] > 0 THEN
        resource := ${resources} - 1;
    END IF;
    RETURN (2 * resource + (tasks_least > 1)::integer) * ${sizes}
           + least(length(ltrim(most::bit(64)::text, '0')), ${sizes} - 1);  -- how many binary digits it has
END $$;
