-- Registration of machines by the agents that stand for them.

-- What the codes of attributes mean, and the generation at which they mean it.
CREATE FUNCTION omega.read_catalogue(OUT generation bigint, OUT catalogue jsonb)
LANGUAGE plpgsql STABLE SET search_path = omega, pg_temp AS $$
BEGIN
    PERFORM needs_incarnation();
    SELECT c.generation, c.catalogue INTO generation, catalogue FROM cell c;
END $$;

-- The reason why a login of a node may not add these attributes to the catalogue; null if there is none.
CREATE FUNCTION omega.problem_with_additions(_before jsonb, _after jsonb)
RETURNS text LANGUAGE sql IMMUTABLE SET search_path = omega, pg_temp AS $$
    SELECT CASE
        WHEN octet_length(_after::text) > ${catalogue_bytes_max} THEN 'the attributes of all machines are more than ${catalogue_bytes_max} bytes'
        WHEN EXISTS (SELECT FROM jsonb_path_query(_after, 'strict $.**{2 to 3} ? (@.type() == "string")') AS t (it)
                      WHERE NOT is_name(t.it)
                        AND NOT jsonb_path_exists(_before, 'strict $.**{2 to 3} ? (@ == $it)', jsonb_build_object('it', t.it)))
        THEN 'an attribute or its value is empty, too long, or cannot be printed' END
$$;

-- Whether others may read this as the name or number of a host: it goes into environments and lists of hosts.
CREATE FUNCTION omega.is_address(_text text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(_text ~ '^[A-Za-z0-9._:-]{1,${address_length_max}}$', false)
$$;

-- Add a machine to the cell, or bring its capacity, attributes and address up to date if it is there and the caller's own;
-- return its id, or null if the catalogue has changed since it was read. Its state is left: an operator may have taken it
-- down. So is its address if none is given. The caller stands for what it adds. One call at a time: the cell's one row is
-- locked first.
CREATE FUNCTION omega.register_machine(
    _generation bigint,      -- the generation at which the catalogue was read
    _name text, _amounts integer[], _catalogue jsonb, _codes integer[], _address text
) RETURNS integer LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    wrong text;
    before jsonb;
    added integer;
    known record;
BEGIN
    PERFORM needs_read_committed();
    wrong := problem_with_machines(ARRAY[_name], _amounts, _catalogue, _codes);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'bad machines: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF _address IS NOT NULL AND NOT is_address(_address) THEN
        RAISE EXCEPTION 'bad address: it is 1 to ${address_length_max} letters, digits and . : _ -' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT catalogue INTO before FROM cell WHERE generation = _generation FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF NOT follows(before, _catalogue) THEN
        RAISE EXCEPTION 'bad machines: the catalogue does not go on from the one before' USING ERRCODE = 'invalid_parameter_value';
    ELSIF before <> _catalogue AND NOT is_owner() THEN
        wrong := problem_with_additions(before, _catalogue);
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION 'bad machines: %', wrong USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    SELECT m.id, m.state, ARRAY[{{ m.${kind}_capacity }}] AS capacity,
           p.address, p.codes || array_fill(0, ARRAY[cardinality(_codes) - cardinality(p.codes)]) AS codes
      INTO known FROM machine_profile p JOIN machine m ON m.id = p.id WHERE p.name = _name;
    IF NOT FOUND THEN
        added := (add_machines(_generation, ARRAY[_name], _amounts, _catalogue, _codes))[1];
        IF NOT stands_for(added) THEN
            PERFORM assign_more(added);
        END IF;
        UPDATE machine_profile SET address = _address WHERE id = added AND _address IS NOT NULL;
        RETURN added;
    ELSIF NOT stands_for(known.id) THEN
        RAISE EXCEPTION 'there is a machine named % already, for which % does not stand', _name, session_user
            USING ERRCODE = 'insufficient_privilege';
    ELSIF known.state = 3 THEN
        RAISE EXCEPTION 'machine % has left the cell', known.id USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF known.capacity <> _amounts THEN
        PERFORM resize_machine(known.id, _amounts, 0);
    END IF;
    IF known.codes <> _codes THEN
        PERFORM set_catalogue(_catalogue);
        UPDATE machine_profile SET codes = _codes WHERE id = known.id;
    END IF;
    IF known.address IS DISTINCT FROM coalesce(_address, known.address) THEN
        UPDATE machine_profile SET address = _address WHERE id = known.id;
    END IF;
    RETURN known.id;
END $$;

-- Let the caller stand for a machine that this transaction adds. Nothing has run there, so that the login need not read
-- all its machines again, as after an assignment: `changed_by` is left as it is.
CREATE FUNCTION omega.assign_more(_machine integer)
RETURNS void LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
BEGIN
    IF (SELECT count(*) FROM node n JOIN machine m ON n.machines @> m.id
         WHERE n.role_name = session_user::text AND m.state <> 3) >= ${machines_per_login_max} THEN
        RAISE EXCEPTION '% stands for ${machines_per_login_max} machines, and may add no more', session_user
              USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO node AS n (role_name, machines) VALUES (session_user, int4multirange(int4range(_machine, _machine + 1)))
        ON CONFLICT (role_name) DO UPDATE SET machines = n.machines + excluded.machines;
END $$;
