-- Add machines to the cell; return their ids, in order, or null if the catalogue has changed since it was read.
-- The cell's one row is locked first, so that ids are assigned one call after the other.
CREATE FUNCTION omega.add_machines(
    _generation bigint,                   -- the generation at which the catalogue was read
    _names text[], _amounts integer[],    -- all kinds of the first machine, then of the second ...
    _catalogue jsonb, _codes integer[]    -- one code for each machine and attribute of the catalogue
) RETURNS integer[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    first integer;
    taken text;
    wrong text;
    width integer;
BEGIN
    PERFORM needs_read_committed();
    wrong := problem_with_machines(_names, _amounts, _catalogue, _codes);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'bad machines: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    width := jsonb_array_length(_catalogue -> 'names');
    PERFORM 1 FROM cell WHERE generation = _generation FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF NOT follows((SELECT catalogue FROM cell), _catalogue) THEN
        RAISE EXCEPTION 'bad machines: the catalogue does not go on from the one before' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT greatest(coalesce(max(m.id), 0), (SELECT machines_from FROM cell)) INTO first FROM machine m;
    SELECT name INTO taken
      FROM (SELECT unnest(_names) AS name UNION ALL SELECT name FROM machine_profile WHERE name = ANY (_names)) AS n
     GROUP BY name HAVING count(*) > 1 ORDER BY name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is a machine named % already', taken USING ERRCODE = 'unique_violation';
    END IF;

    PERFORM set_catalogue(_catalogue);
    INSERT INTO machine_profile (id, name, codes)
    SELECT first + n, name, coalesce(_codes[(n - 1) * width + 1 : n * width], '{}')
      FROM unnest(_names) WITH ORDINALITY AS m (name, n);
    INSERT INTO machine (id, {{ ${kind}_capacity }})
    SELECT first + n, {{ _amounts[(n - 1) * ${kinds} + ${number}] }}
      FROM generate_subscripts(_names, 1) AS n;

    RETURN (SELECT coalesce(array_agg(first + n ORDER BY n), '{}') FROM generate_subscripts(_names, 1) AS n);
END $$;

-- Change what the codes of attributes mean, by additions alone; older machines lack new attributes.
CREATE FUNCTION omega.set_catalogue(_catalogue jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    width integer := jsonb_array_length(_catalogue -> 'names');
BEGIN
    UPDATE machine_profile
       SET codes = codes || array_fill(0, ARRAY[width - cardinality(codes)])
     WHERE cardinality(codes) < width;
    UPDATE cell SET generation = generation + 1, catalogue = _catalogue;
END $$;

-- Open, drain, take down or remove machines; return how many changed. Gone is final.
CREATE FUNCTION omega.set_state(_machines integer[], _state smallint)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF coalesce(_state NOT BETWEEN 0 AND 3, true) THEN
        RAISE EXCEPTION 'bad state: %', coalesce(_state::text, 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- What the owner says replaces what a machine's lease has done to it. Leases are locked before machines.
    PERFORM 1 FROM machine_lease WHERE machine_id = ANY (_machines) ORDER BY machine_id FOR UPDATE;
    PERFORM known_machines(_machines);
    UPDATE machine_lease SET state_before = NULL WHERE machine_id = ANY (_machines) AND state_before IS NOT NULL;
    RETURN move_machines(_machines, _state);
END $$;

-- Change the state of machines whose rows are locked, except those that are gone; return how many changed.
CREATE FUNCTION omega.move_machines(_machines integer[], _state smallint)
RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    changed integer;
BEGIN
    WITH moved AS (
        UPDATE machine SET state = _state, sequence = sequence + 1, revision = revision + 1, changed_by = pg_current_xact_id()
         WHERE id = ANY (_machines) AND state NOT IN (3, _state)
        RETURNING id
    ), told AS (
        INSERT INTO machine_change (machines) SELECT array_agg(id) FROM moved HAVING count(*) > 0
    )
    SELECT count(*) INTO changed FROM moved;
    RETURN changed;
END $$;

-- Change a machine's capacity; claims are judged by it at once. Use above it is tolerated until the notice ends.
CREATE FUNCTION omega.resize_machine(_machine integer, _capacity integer[], _notice_ms bigint)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    tolerated interval;
BEGIN
    PERFORM needs_read_committed();
    tolerated := milliseconds(_notice_ms);
    IF length_of(_capacity) <> ${kinds} OR 0 > ANY (_capacity) THEN
        RAISE EXCEPTION 'bad capacity: it is not ${kinds} amounts, none of them negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM known_machines(ARRAY[_machine]);
    UPDATE machine m
       SET {{ ${kind}_capacity = _capacity[${number}] }},
           notice = CASE WHEN {{ m.${kind}_used > _capacity[${number}] | OR }}
                         THEN ARRAY[{{ greatest(m.${kind}_used - _capacity[${number}], 0) }}] END,
           notice_ends_at = CASE WHEN {{ m.${kind}_used > _capacity[${number}] | OR }}
                                 THEN clock_timestamp() + tolerated END,
           sequence = m.sequence + 1, revision = m.revision + 1, changed_by = pg_current_xact_id()
     WHERE m.id = _machine AND m.state <> 3;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'machine % has left the cell', _machine USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO machine_change (machines) VALUES (ARRAY[_machine]);
END $$;

-- Lock machines in id order; refuse ids that never existed.
CREATE FUNCTION omega.known_machines(_machines integer[])
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    unknown integer;
BEGIN
    PERFORM 1 FROM machine WHERE id = ANY (_machines) ORDER BY id FOR NO KEY UPDATE;
    SELECT u.id INTO unknown FROM unnest(_machines) AS u (id) WHERE NOT EXISTS (SELECT FROM machine m WHERE m.id = u.id);
    IF FOUND THEN
        RAISE EXCEPTION 'there is no machine %', unknown USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- Set by how much a job's precedence must be higher for it to evict tasks of other schedulers. A change raises the
-- generation, so that schedulers look at parked jobs again.
CREATE FUNCTION omega.set_precedence_gap(_gap integer)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_read_committed();
    IF (_gap >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'bad gap: it is 1 or more' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE cell SET precedence_gap = _gap, generation = generation + 1 WHERE precedence_gap <> _gap;
END $$;
