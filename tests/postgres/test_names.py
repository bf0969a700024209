"""The characters that no name has are the same in Python and in the database."""

import psycopg

from omega.model.names import UNPRINTABLE

SURROGATES = range(0xD800, 0xE000)


def test_the_database_refuses_the_characters_that_python_refuses(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        ((refused,),) = connection.execute(
            "SELECT array_agg(code ORDER BY code) FROM generate_series(1, 1114111) AS code"
            " WHERE code NOT BETWEEN %s AND %s AND NOT omega.can_name(chr(code), 1)",
            (SURROGATES.start, SURROGATES.stop - 1),
        ).fetchall()

    # Postgres knows neither NUL nor surrogates.
    assert refused == [
        code
        for code in range(1, 0x110000)
        if code not in SURROGATES and UNPRINTABLE.match(chr(code))
    ]
