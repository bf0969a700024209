"""Evictions, landed alternates, and notices of machines that shrink.

Goal     Give the rest of the commit rule its columns.
Promise  Down after up leaves the tables as they were; what only this revision can hold (use above
         a capacity that shrank, history of tasks that were ended by force) is gone then.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REASONS = (
    "never_fits",
    "unknown_attribute",
    "no_machine_matches",
    "gang_too_large",
    "no_room",
    "conflicts",
)
KINDS = ("cpu_milli", "memory_mib", "disk_mib", *(f"gpu_{slot}" for slot in range(8)))


def upgrade() -> None:
    """Add the columns; use may exceed capacity by what a notice tolerates."""
    op.execute("ALTER TABLE omega.machine ADD notice integer[], ADD notice_ends_at timestamptz")
    for number, kind in enumerate(KINDS, start=1):
        _bound(kind, f"{kind}_capacity + coalesce(notice[{number}], 0)")
    op.execute(
        "ALTER TABLE omega.job DROP CONSTRAINT job_tasks_positive,"
        " ADD CONSTRAINT job_tasks_within CHECK (tasks BETWEEN 1 AND 100000),"
        " ADD CONSTRAINT job_lease_runs_out"
        " CHECK (state <> 'planning' OR lease_expires_at IS NOT NULL)"
    )
    _park_reasons(*REASONS, "unreadable")
    op.execute("ALTER TABLE omega.ended_task ADD cause text NOT NULL DEFAULT 'ended'")
    op.execute(
        "ALTER TABLE omega.transaction ADD evicted_jobs bigint[] NOT NULL DEFAULT '{}',"
        " ADD evicted_tasks integer[] NOT NULL DEFAULT '{}',"
        " ADD evicted_machines integer[] NOT NULL DEFAULT '{}'"
    )


def downgrade() -> None:
    """Drop the columns. Fails, and changes nothing, while a machine is used above its capacity."""
    op.execute(
        "ALTER TABLE omega.transaction DROP evicted_jobs, DROP evicted_tasks, DROP evicted_machines"
    )
    op.execute("UPDATE omega.job SET park_reason = 'never_fits' WHERE park_reason = 'unreadable'")
    _park_reasons(*REASONS)
    op.execute(
        "ALTER TABLE omega.job DROP CONSTRAINT job_lease_runs_out,"
        " DROP CONSTRAINT job_tasks_within,"
        " ADD CONSTRAINT job_tasks_positive CHECK (tasks > 0)"
    )
    op.execute("DELETE FROM omega.ended_task WHERE cause <> 'ended'")
    op.execute("ALTER TABLE omega.ended_task DROP cause")
    for kind in KINDS:
        _bound(kind, f"{kind}_capacity")
    op.execute("ALTER TABLE omega.machine DROP notice, DROP notice_ends_at")


def _park_reasons(*reasons: str) -> None:
    listed = ", ".join(f"'{reason}'" for reason in reasons)
    op.execute(
        "ALTER TABLE omega.job DROP CONSTRAINT job_park_reason_known,"
        f" ADD CONSTRAINT job_park_reason_known CHECK (park_reason IN ({listed}))"
    )


def _bound(kind: str, most: str) -> None:
    op.execute(f"ALTER TABLE omega.machine DROP CONSTRAINT machine_{kind}_within")
    op.execute(
        f"ALTER TABLE omega.machine ADD CONSTRAINT machine_{kind}_within"
        f" CHECK ({kind}_used BETWEEN 0 AND {most})"
    )
