"""A machine's columns in the order in which they are read: what views want comes first.

Goal     Have a full read pass over the start of each row, and not over all its amounts.
Promise  Down after up leaves the tables as they were. No row changes: neither its amounts nor its
         counters, so views of before go on.
Source   docs/decisions/0022-views-first.md.
"""

from collections.abc import Iterable

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

KINDS = ("cpu_milli", "memory_mib", "disk_mib", *(f"gpu_{slot}" for slot in range(8)))


def upgrade() -> None:
    """Write the table anew, in the new order."""
    _rebuild(
        "id",
        *("packed_capacity", "changed_by", "packed_use", "sequence", "revision", "state"),
        *(f"{kind}_used" for kind in KINDS),
        *(f"{kind}_capacity" for kind in KINDS),
        *("notice", "notice_ends_at"),
    )


def downgrade() -> None:
    """Write the table anew, in the order of before."""
    _rebuild(
        "id",
        *(f"{kind}_capacity" for kind in KINDS),
        *(f"{kind}_used" for kind in KINDS),
        *("sequence", "revision", "state", "changed_by", "notice", "notice_ends_at"),
        *("packed_use", "packed_capacity"),
    )


def _rebuild(*columns: str) -> None:
    """Make the table again with its columns in this order, and move the rows over."""
    assert sorted(columns) == sorted(_definitions())
    used = ", ".join(f"{kind}_used" for kind in KINDS)
    free = ", ".join(f"{kind}_capacity - {kind}_used" for kind in KINDS)
    kept = _listed(name for name in columns if not name.startswith("packed_"))
    op.execute("ALTER TABLE omega.machine RENAME TO machine_before")
    op.execute("ALTER INDEX omega.machine_pkey RENAME TO machine_before_pkey")
    definitions = _definitions()
    op.execute(
        f"CREATE TABLE omega.machine ({_listed(f'{name} {definitions[name]}' for name in columns)},"
        " CONSTRAINT machine_pkey PRIMARY KEY (id),"
        f" CONSTRAINT machine_used_is_positive CHECK (least({used}) >= 0),"
        " CONSTRAINT machine_used_within_capacity"
        f" CHECK (notice IS NOT NULL OR least({free}) >= 0),"
        " CONSTRAINT machine_state_known CHECK (state BETWEEN 0 AND 3)) WITH (fillfactor = 50)"
    )
    op.execute(
        f"INSERT INTO omega.machine ({kept}) SELECT {kept} FROM omega.machine_before ORDER BY id"
    )
    op.execute("DROP TABLE omega.machine_before")
    op.execute("ANALYZE omega.machine")  # lest plans be guessed until autovacuum comes


def _definitions() -> dict[str, str]:
    packed = "bytea GENERATED ALWAYS AS ({}) STORED"
    used = _pairs("state", *(f"{kind}_used" for kind in KINDS))
    return {
        "id": "integer NOT NULL",
        **{f"{kind}_capacity": "integer NOT NULL" for kind in KINDS},
        **{f"{kind}_used": "integer NOT NULL DEFAULT 0" for kind in KINDS},
        "sequence": "bigint NOT NULL DEFAULT 0",
        "revision": "bigint NOT NULL DEFAULT 0",
        "state": "smallint NOT NULL DEFAULT 0",
        "changed_by": "xid8 NOT NULL DEFAULT pg_current_xact_id()",
        "notice": "integer[]",
        "notice_ends_at": "timestamptz",
        "packed_capacity": packed.format(_pairs("id", *(f"{kind}_capacity" for kind in KINDS))),
        "packed_use": packed.format(f"int8send(sequence) || int8send(revision) || {used}"),
    }


def _pairs(*columns: str) -> str:
    pairs = zip(columns[::2], columns[1::2], strict=True)
    return " || ".join(f"int8send(({left}::bigint << 32) | {right})" for left, right in pairs)


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(columns)
