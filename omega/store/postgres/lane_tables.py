"""The order of the queue: the index of lanes, tenants, what they use, and the order of each kind;
and the lease of the process that reclaims.

Goal     Lease the next jobs under a fair order without reading the queue.
Promise  No commit writes these tables. What tenants use can be summed up again, so its table is
         unlogged: it is empty after a crash, and on a standby that was promoted.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    text,
)

from omega.store.postgres.column_types import moment


def declare_lanes(metadata: MetaData, job: Table) -> None:
    """Declare the tables, and the index of the jobs that wait, lane by lane."""
    Index(
        "job_lane",
        job.c.scheduler,
        job.c.state,
        job.c.tenant,
        job.c.lane_class,
        job.c.precedence.desc(),
        job.c.id,
        postgresql_where=text("state IN ('pending', 'parked')"),
    )
    Table(
        "tenant",
        metadata,
        Column("name", Text, primary_key=True),
        Column("weight", Integer, nullable=False),
        Column("parent", Text),
        CheckConstraint("weight >= 1", name="weight_is_positive"),
    )
    Table(
        "tenant_use",
        metadata,
        Column("single", Boolean, primary_key=True, server_default=text("true")),
        moment("summed_at"),
        Column("took_ms", Integer, nullable=False),
        Column("tenants", ARRAY(Text), nullable=False),
        Column("used", ARRAY(BigInteger), nullable=False),
        CheckConstraint("single", name="one_row"),
        prefixes=["UNLOGGED"],
    )
    Table(
        "queue_order",
        metadata,
        Column("scheduler", Text, primary_key=True),
        Column("name", Text, nullable=False),
        Column("replica", Text, nullable=False),
        Column("login", Text, nullable=False, server_default=text("SESSION_USER")),
        moment("expires_at"),
        moment("changed_at"),
        postgresql_with={"fillfactor": 50},
    )
    Table(
        "reclaim_lease",
        metadata,
        Column("single", Boolean, primary_key=True, server_default=text("true")),
        Column("holder", Uuid, nullable=False),
        Column("scheduler", Text, nullable=False),
        Column("replica", Text, nullable=False),
        Column("login", Text, nullable=False, server_default=text("SESSION_USER")),
        moment("expires_at"),
        CheckConstraint("single", name="one_row"),
        postgresql_with={"fillfactor": 50},
        prefixes=["UNLOGGED"],
    )
