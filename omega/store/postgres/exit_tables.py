"""The tables of what became of programs: exits, and the ends of outputs.

Goal     Keep what agents report of programs apart from the rows that commits change.
Promise  Whatever a login reports, a row holds no more than the limits say.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

from omega.limits import LIMITS
from omega.model.exits import CODE_MAX, SIGNAL_MAX, STREAMS, ExitCause
from omega.store.postgres.column_types import moment, one_of


def declare_exits(metadata: MetaData) -> None:
    """Declare how programs ended, and the end of what each wrote when it ran last."""
    Table(
        "task_exit",
        metadata,
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("task", Integer, primary_key=True, autoincrement=False),
        Column("started_at", DateTime(timezone=True), primary_key=True),
        moment("ended_at"),
        Column("machine_id", Integer, nullable=False),
        Column("cause", Text, nullable=False),
        Column("code", SmallInteger),
        Column("signal", SmallInteger),
        Column("restarts", Integer, nullable=False, server_default="0"),
        Column("detail", Text, nullable=False, server_default=""),
        one_of("cause", ExitCause),
        CheckConstraint("(cause = 'exited') = (code IS NOT NULL)", name="code_iff_exited"),
        CheckConstraint(f"code BETWEEN 0 AND {CODE_MAX}", name="code_within"),
        CheckConstraint(f"signal BETWEEN 1 AND {SIGNAL_MAX}", name="signal_within"),
        CheckConstraint("restarts >= 0", name="restarts_is_positive"),
        CheckConstraint(f"length(detail) <= {LIMITS.detail_length_max}", name="detail_within"),
    )
    Table(
        "task_output",
        metadata,
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("task", Integer, primary_key=True, autoincrement=False),
        Column("stream", Text, primary_key=True),
        Column("started_at", DateTime(timezone=True), nullable=False),
        Column("bytes_total", BigInteger, nullable=False),
        Column("tail", LargeBinary, nullable=False),
        CheckConstraint(" OR ".join(f"stream = '{name}'" for name in STREAMS), name="stream_known"),
        CheckConstraint(
            f"octet_length(tail) <= least(bytes_total, {LIMITS.output_bytes_kept})",
            name="tail_within",
        ),
    )
