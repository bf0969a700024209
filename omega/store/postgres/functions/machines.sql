-- Machines join the cell; their ids, in order, or null if the catalogue was read too long ago. The
-- cell's one row is locked first, so that ids are given one at a time.
CREATE FUNCTION omega.add_machines(
    _generation bigint,                   -- the one that the catalogue was read at
    _names text[], _amounts integer[],    -- all kinds of the first machine, then of the second ...
    _catalogue jsonb, _codes integer[]    -- a code an attribute of the catalogue and machine
) RETURNS integer[] LANGUAGE plpgsql SET search_path = omega, pg_temp AS $$
DECLARE
    first integer;
    taken text;
    width integer := jsonb_array_length(_catalogue -> 'names');
BEGIN
    PERFORM 1 FROM cell WHERE generation = _generation FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT coalesce(max(id), 0) INTO first FROM machine;
    SELECT name INTO taken
      FROM (SELECT unnest(_names) AS name UNION ALL SELECT name FROM machine_profile WHERE name = ANY (_names)) AS n
     GROUP BY name HAVING count(*) > 1 ORDER BY name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is a machine named % already', taken USING ERRCODE = 'unique_violation';
    END IF;

    UPDATE machine_profile    -- machines that came before an attribute lack it
       SET codes = codes || array_fill(0, ARRAY[width - cardinality(codes)])
     WHERE cardinality(codes) < width;
    INSERT INTO machine_profile (id, name, codes)
    SELECT first + n, name, coalesce(_codes[(n - 1) * width + 1 : n * width], '{}')
      FROM unnest(_names) WITH ORDINALITY AS m (name, n);
    INSERT INTO machine (id, {{ ${kind}_capacity }})
    SELECT first + n, {{ _amounts[(n - 1) * ${kinds} + ${number}] }}
      FROM generate_subscripts(_names, 1) AS n;

    UPDATE cell SET generation = generation + 1, catalogue = _catalogue;
    RETURN (SELECT coalesce(array_agg(first + n ORDER BY n), '{}') FROM generate_subscripts(_names, 1) AS n);
END $$;
