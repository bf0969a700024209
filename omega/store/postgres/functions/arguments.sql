-- Checks of arguments. Omega's own programs send only valid ones. A bad argument is the caller's
-- mistake (invalid_parameter_value), and the message is a sentence.

-- The length of an array in the form that Omega sends: one dimension, from 1, without nulls.
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

-- How far back a call asks, or how old an answer may be; null, a negative one and more than ten years are refused.
CREATE FUNCTION omega.milliseconds(_count bigint)
RETURNS interval LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _count BETWEEN 0 AND ${window_ms_max} THEN
        RETURN _count * interval '1 ms';
    END IF;
    RAISE EXCEPTION 'bad length of time: % ms', coalesce(_count::text, 'null') USING ERRCODE = 'invalid_parameter_value';
END $$;

-- How long a lease lasts until it must be renewed.
CREATE FUNCTION omega.lease_length(_count bigint)
RETURNS interval LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _count BETWEEN 0 AND ${lease_ms_max} THEN
        RETURN _count * interval '1 ms';
    END IF;
    RAISE EXCEPTION 'bad length of a lease: % ms, of at most ${lease_ms_max}', coalesce(_count::text, 'null')
          USING ERRCODE = 'invalid_parameter_value';
END $$;

-- How many bytes of a job's wire form count against the most that one answer may hold. Small jobs count nothing, so
-- that large jobs, however many there are, never hide them.
CREATE FUNCTION omega.counted_bytes(_wire_bytes integer)
RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _wire_bytes > ${wire_bytes_small} THEN _wire_bytes ELSE 0 END
$$;

-- Refuse every isolation level but READ COMMITTED, which all functions that write need: after waiting for a row they
-- see it, and everything else that was committed, as it is then.
CREATE FUNCTION omega.needs_read_committed()
RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'bad isolation level: this needs a transaction of READ COMMITTED, not of %',
            upper(current_setting('transaction_isolation')) USING ERRCODE = 'feature_not_supported';
    END IF;
END $$;

-- A number of items to return; null and negative numbers are refused.
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
    -- Never compared as text: the text of 1e130000 is 13,000 times as long as the number.
    SELECT CASE WHEN jsonb_typeof(_value) = 'number'
                THEN scale(_value::numeric) = 0 AND _value::numeric BETWEEN _lowest AND _highest ELSE false END
$$;

-- Whether a text can be a name: not too long for an index, and without characters that move a terminal's
-- cursor or turn the direction of text.
CREATE FUNCTION omega.can_name(_text text, _length_max integer)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    -- Characters by number, because the meaning of a backslash depends on a setting of the caller.
    -- Controls and soft hyphens, marks of direction, letters without a width, separators of lines, tags.
    SELECT length(_text) BETWEEN 1 AND _length_max
       AND _text !~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || chr(173) || chr(1564)
                     || chr(4447) || chr(4448) || chr(6158) || chr(8203) || '-' || chr(8207)
                     || chr(8232) || '-' || chr(8238) || chr(8288) || '-' || chr(8303) || chr(12644) || chr(65279)
                     || chr(65440) || chr(65529) || '-' || chr(65531) || chr(917504) || '-' || chr(917631) || ']')
$$;

-- Whether a JSON value is such a name.
CREATE FUNCTION omega.is_name(_value jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_typeof(_value) = 'string' AND omega.can_name(_value #>> '{}', ${name_length_max}), false)
$$;

-- Whether a text is such a name; false for null.
CREATE FUNCTION omega.is_name(_value text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(omega.can_name(_value, ${name_length_max}), false)
$$;

-- Whether a JSON value is an object with no other keys than these.
CREATE FUNCTION omega.has_only(_value jsonb, _keys text[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_value) = 'object' THEN _value - _keys = '{}' ELSE false END
$$;

-- Whether a JSON value is an object that every program of Omega can read: not too long, not nested too deeply, and
-- without numbers of more digits than a double has. The text is made last: before its numbers are known to be
-- short, it may be thousands of times as long as the value. The numbers are collected into an array, because
-- jsonb_path_query takes time by the square of how many it returns.
CREATE FUNCTION omega.is_readable(_value jsonb, _bytes_max integer)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF jsonb_typeof(_value) IS DISTINCT FROM 'object' OR pg_column_size(_value) > 4 * _bytes_max THEN
        RETURN false;
    ELSIF jsonb_path_exists(_value, 'strict $.**{${json_depth_max}} ? (@.type() == "array" || @.type() == "object")') THEN
        RETURN false;
    ELSIF (SELECT sum(CASE WHEN abs(n.it::numeric) > 1.7976931348623158e308 OR scale(n.it::numeric) > 400
                           THEN _bytes_max + 1 ELSE octet_length(n.it::text) END)
             FROM jsonb_array_elements(jsonb_path_query_array(_value, 'strict $.** ? (@.type() == "number")')) AS n (it)) > _bytes_max THEN
        RETURN false;
    END IF;
    RETURN octet_length(_value::text) <= _bytes_max;
END $$;

-- Whether a JSON value is an array of at most so many such names.
CREATE FUNCTION omega.are_names(_value jsonb, _length_max integer)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_value) IS DISTINCT FROM 'array' THEN false
                WHEN jsonb_array_length(_value) > _length_max THEN false
                ELSE NOT EXISTS (SELECT FROM jsonb_array_elements(_value) AS e (it) WHERE NOT omega.is_name(e.it)) END
$$;

-- Whether a JSON value is an array of texts.
CREATE FUNCTION omega.are_texts(_value jsonb)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(_value) = 'array'
                THEN NOT EXISTS (SELECT FROM jsonb_array_elements(_value) AS e (it) WHERE jsonb_typeof(e.it) <> 'string')
                ELSE false END
$$;
