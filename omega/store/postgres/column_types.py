"""Columns that several tables have, and the types that Postgres lacks a name for.

Goal     Declare each kind of column once.
Promise  Nothing is stored here; `tables` uses it.
Source   docs/decisions/0006-tables.md.
"""

from enum import Enum
from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Text, func, text
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.types import UserDefinedType

SCHEMA = "omega"


class TransactionNumber(UserDefinedType[str]):
    """Postgres' `xid8`: the number of the transaction that wrote a row."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Return the type's name in SQL."""
        return "xid8"


def written_by(name: str = "changed_by") -> Column[str]:
    """Return a column with the number of the transaction that wrote the row."""
    return Column(
        name,
        TransactionNumber(),
        nullable=False,
        server_default=text("pg_current_xact_id()"),
    )


def moment(name: str, *, required: bool = True) -> Column[Any]:
    """Return a column with a time; if it is required, the default is the time of the statement."""
    default = func.clock_timestamp() if required else None
    return Column(name, DateTime(timezone=True), nullable=not required, server_default=default)


def known(values: type[Enum], what: str) -> str:
    """Return the SQL condition that something is one of an enumeration's values."""
    listed = ", ".join(f"'{value.value}'" for value in values)
    return f"{what} IN ({listed})"


def one_of(column: str, values: type[Enum]) -> CheckConstraint:
    """Return the constraint that a column has one of an enumeration's values."""
    return CheckConstraint(known(values, column), name=f"{column}_known")


def word(name: str, values: type[Enum]) -> DOMAIN:
    """Return a type of a few words; its list is parsed once a session, a CHECK's each time."""
    return DOMAIN(
        name, Text(), schema=SCHEMA, constraint_name=f"{name}_known", check=known(values, "VALUE")
    )


def packed(*columns: str) -> str:
    """Return SQL that joins the bytes of integer columns, two at a time, to save calls."""
    pairs = zip(columns[::2], columns[1::2], strict=True)
    return " || ".join(f"int8send(({left}::bigint << 32) | {right})" for left, right in pairs)
