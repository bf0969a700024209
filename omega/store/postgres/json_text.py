"""JSON columns, decoded one value at a time.

Goal     Let a value that this program cannot read spoil its own row and no other.
Promise  A connection of ours returns JSON as text; whoever reads a column decodes it here.
Source   docs/decisions/0029-hostile-logins.md. Python's decoder raises for what is nested by a
         thousand levels, and for a whole number of more than 4,300 digits.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from psycopg import Connection
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format

from omega.errors import BadInput

_BINARY_VERSION: Final = 1


class _Text(Loader):
    """Binary jsonb is one version byte, then the text."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        assert data[0] == _BINARY_VERSION, "no other version of binary jsonb is known"
        return bytes(data[1:]).decode()


def register(connection: Connection[Any]) -> None:
    """Have this connection return values of type jsonb as their text."""
    connection.adapters.register_loader("jsonb", _Text)


def decoded(text: str) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return the value of a JSON text; raise BadInput if it cannot be read."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise BadInput(f"this JSON cannot be read ({type(error).__name__})") from None


def an_object(text: str) -> Mapping[str, Any]:
    """Return the object of a JSON text, or an empty one for any other text."""
    try:
        value = decoded(text)
    except BadInput:
        return {}
    return value if isinstance(value, dict) else {}
