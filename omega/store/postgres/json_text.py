"""JSON columns, decoded one value at a time.

Goal     A value that this program cannot read affects its own row and no other.
Promise  Omega's connections return JSON as text; callers that read a column decode it here.
Source   docs/decisions/0029-hostile-logins.md. Python's decoder raises an error at a thousand
         nested levels, and at a whole number of more than 4,300 digits.
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
    """Loads binary jsonb, which is one version byte and then the text."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        assert data[0] == _BINARY_VERSION, "no other version of binary jsonb is known"
        return bytes(data[1:]).decode()


def register(connection: Connection[Any]) -> None:
    """Let a connection return values of type jsonb as text."""
    connection.adapters.register_loader("jsonb", _Text)


def decoded(text: str) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return the value of a JSON text; raise BadInput if it cannot be read."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise BadInput(f"this JSON cannot be read ({type(error).__name__})") from None


def an_object(text: str) -> Mapping[str, Any]:
    """Return the object in a JSON text; an empty one if the text is anything else."""
    try:
        value = decoded(text)
    except BadInput:
        return {}
    return value if isinstance(value, dict) else {}
