"""Each machine's row, packed for views once when it is written, not with every read.

Goal     Halve the time of a full read.
Promise  Down after up leaves the tables as they were.
Source   docs/decisions/0008-packed-rows.md.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KINDS = ("cpu_milli", "memory_mib", "disk_mib", *(f"gpu_{slot}" for slot in range(8)))
PACKED = " || ".join(
    [
        *("int4send(id)", "int4send(state)", "int8send(sequence)", "int8send(revision)"),
        *(f"int4send({kind}_capacity)" for kind in KINDS),
        *(f"int4send({kind}_used)" for kind in KINDS),
    ]
)


def upgrade() -> None:
    """Add the column; the functions that read it are installed afterwards."""
    op.execute(f"ALTER TABLE omega.machine ADD packed bytea GENERATED ALWAYS AS ({PACKED}) STORED")


def downgrade() -> None:
    """Drop the column."""
    op.execute("ALTER TABLE omega.machine DROP packed CASCADE")
