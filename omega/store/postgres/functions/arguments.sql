-- What an argument must be before a function looks at it: programs of ours send nothing else. An
-- argument that is not is the caller's mistake (invalid_parameter_value), and is said in a sentence.

-- The length of an array such as ours are: from 1, in one dimension, without nulls.
CREATE FUNCTION omega.length_of(_array anyarray)
RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _array IS NULL OR coalesce(array_ndims(_array), 1) <> 1 OR coalesce(array_lower(_array, 1), 1) <> 1
       OR array_position(_array, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'bad array: it is null, holds a null, does not begin at 1, or has several dimensions'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN cardinality(_array);
END $$;

-- A length of time; refuses none, negative ones, and more than ten years, which is a mistake.
CREATE FUNCTION omega.milliseconds(_count bigint)
RETURNS interval LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _count BETWEEN 0 AND 315576000000 THEN
        RETURN _count * interval '1 ms';
    END IF;
    RAISE EXCEPTION 'bad length of time: % ms', coalesce(_count::text, 'null') USING ERRCODE = 'invalid_parameter_value';
END $$;

-- A number of things to be given; refuses none at all and negative ones.
CREATE FUNCTION omega.at_most(_count integer)
RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _count >= 0 THEN
        RETURN _count;
    END IF;
    RAISE EXCEPTION 'bad number: %', coalesce(_count::text, 'null') USING ERRCODE = 'invalid_parameter_value';
END $$;

-- Whether a JSON value is a whole number within bounds, written as one.
CREATE FUNCTION omega.is_whole(_value jsonb, _lowest bigint, _highest bigint)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _value::text ~ '^-?[0-9]{1,18}$' THEN _value::text::bigint BETWEEN _lowest AND _highest ELSE false END
$$;

-- Whether a text can name something: not too long for an index, and without what moves a terminal's
-- cursor or turns the direction of its text.
CREATE FUNCTION omega.can_name(_text text, _length_max integer)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    -- Characters by their numbers: what a backslash means is for whoever calls to set.
    SELECT length(_text) BETWEEN 1 AND _length_max
       AND _text !~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || chr(8203) || '-' || chr(8207)
                     || chr(8232) || '-' || chr(8238) || chr(8288) || '-' || chr(8297) || chr(65279) || ']')
$$;

-- Whether a JSON value is such a text.
CREATE FUNCTION omega.is_name(_value jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_typeof(_value) = 'string' AND omega.can_name(_value #>> '{}', ${name_length_max}), false)
$$;

-- Whether a JSON value is an array of texts.
CREATE FUNCTION omega.are_texts(_value jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_value) = 'array'
                THEN NOT EXISTS (SELECT FROM jsonb_array_elements(_value) AS e (it) WHERE jsonb_typeof(e.it) <> 'string')
                ELSE false END
$$;
