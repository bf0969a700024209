-- Checks of new machines and of the catalogue that their attributes' codes refer to. A machine that a view cannot
-- read, or a code whose meaning has changed, would break every scheduler of the cell.

-- The reason why machines cannot be added; null if there is none.
CREATE FUNCTION omega.problem_with_machines(_names text[], _amounts integer[], _catalogue jsonb, _codes integer[])
RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = omega, pg_temp AS $$
DECLARE
    width integer;
    sizes integer[];    -- an entry for each attribute: how many values it has
BEGIN
    IF length_of(_names) * ${kinds} <> length_of(_amounts) OR 0 > ANY (_amounts) THEN
        RETURN 'each has ${kinds} amounts, none of them negative';
    ELSIF EXISTS (SELECT FROM unnest(_names) AS name WHERE NOT can_name(name, 2 * ${name_length_max})) THEN
        RETURN 'a name is empty, longer than any, or cannot be printed';
    ELSIF NOT are_texts(_catalogue -> 'names') OR jsonb_typeof(_catalogue -> 'values') IS DISTINCT FROM 'array' THEN
        RETURN 'the catalogue has no names, or no values';
    END IF;
    width := jsonb_array_length(_catalogue -> 'names');
    IF jsonb_array_length(_catalogue -> 'values') <> width
       OR EXISTS (SELECT FROM jsonb_array_elements(_catalogue -> 'values') AS v (it) WHERE NOT are_texts(v.it)) THEN
        RETURN 'the catalogue has no list of values for each name';
    END IF;
    sizes := ARRAY(SELECT jsonb_array_length(v.it) FROM jsonb_array_elements(_catalogue -> 'values') WITH ORDINALITY AS v (it, n)
                    ORDER BY v.n);
    IF length_of(_codes) <> cardinality(_names) * width
       OR EXISTS (SELECT FROM unnest(_codes) WITH ORDINALITY AS c (code, n)
                   WHERE c.code NOT BETWEEN 0 AND sizes[(c.n - 1) % width + 1]) THEN
        RETURN 'the codes are not one an attribute, each of a value';
    END IF;
    RETURN NULL;
END $$;

-- Whether a list of texts begins with another list, and has no text twice.
CREATE FUNCTION omega.extends(_before jsonb, _after jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT a.texts[1 : cardinality(b.texts)] = b.texts
       AND cardinality(a.texts) = (SELECT count(DISTINCT t) FROM unnest(a.texts) AS t)
      FROM (SELECT ARRAY(SELECT jsonb_array_elements_text(_before)) AS texts) AS b,
           (SELECT ARRAY(SELECT jsonb_array_elements_text(_after)) AS texts) AS a
$$;

-- Whether all codes of a catalogue have the same meaning in another.
CREATE FUNCTION omega.follows(_before jsonb, _after jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT omega.extends(_before -> 'names', _after -> 'names')
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(_after -> 'values') WITH ORDINALITY AS v (it, n)
                        WHERE NOT omega.extends(coalesce(_before -> 'values' -> (v.n - 1)::integer, '[]'), v.it))
$$;
