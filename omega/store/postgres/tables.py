"""The tables, declared once: Alembic compares the database with this; columns follow `Kind`.

Goal     One declaration of what is stored, with every invariant that a row can state as a CHECK.
Promise  A bug raises an error and never oversells a machine. Frequent updates touch no index.
Source   docs/decisions/0006-tables.md.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, INT4MULTIRANGE, JSONB

from omega.lifecycle.states import ParkReason, State
from omega.model.jobs import PRECEDENCE_GAP
from omega.model.machines import MachineState
from omega.model.quotas import BUDGETS, QuotaScope
from omega.model.resources import COLUMNS
from omega.store.postgres.column_types import (
    SCHEMA,
    TransactionNumber,
    moment,
    one_of,
    packed,
    word,
    written_by,
)
from omega.store.postgres.exit_tables import declare_exits
from omega.store.postgres.incarnation_table import declare_incarnation
from omega.store.postgres.lane_tables import declare_lanes
from omega.store.postgres.machine_lease_table import declare_machine_leases
from omega.store.postgres.pipeline_tables import ORDER_KEY, declare_pipelines
from omega.store.postgres.progress_tables import declare_progress

SHARDS = 16
"""Into how many rows a quota is divided: about as many as processes that commit at a time."""
_EMPTY_CATALOGUE = """'{"names": [], "values": []}'"""
_PENDING = text(f"'{State.PENDING.value}'")


metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ck": "%(table_name)s_%(constraint_name)s",
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
    },
)


_PACKED_CAPACITY = packed("id", *(f"{kind}_capacity" for kind in COLUMNS))
_PACKED_USE = " || ".join(
    [
        *("int8send(sequence)", "int8send(revision)"),
        packed("state", *(f"{kind}_used" for kind in COLUMNS)),
    ]
)
"""A machine's row as views read it, in two parts; `MACHINE` in packing.py unpacks them."""

_USED = ", ".join(f"{kind}_used" for kind in COLUMNS)
_FREE = ", ".join(f"{kind}_capacity - {kind}_used" for kind in COLUMNS)

cell = Table(
    "cell",
    metadata,
    Column("single", Boolean, primary_key=True, server_default=text("true")),
    Column("generation", BigInteger, nullable=False, server_default="0"),
    Column("catalogue", JSONB, nullable=False, server_default=text(_EMPTY_CATALOGUE)),
    Column(
        "changes_from",
        TransactionNumber(),
        nullable=False,
        server_default=text("pg_current_xact_id()"),
    ),
    Column("precedence_gap", Integer, nullable=False, server_default=text(str(PRECEDENCE_GAP))),
    Column("incarnation", BigInteger, nullable=False, server_default="0"),
    Column("machines_from", Integer, nullable=False, server_default="0"),
    CheckConstraint("single", name="one_row"),
    CheckConstraint("precedence_gap >= 1", name="gap_is_positive"),
)
"""One row. It is written when machines are added, attributes change or the owner sets the gap; no
commit writes it.

`changes_from`: from this transaction on, every change of a machine is on record. `incarnation`:
the microsecond in which the present one began. Machines get numbers above `machines_from`.
"""

machine = Table(
    "machine",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    # A reader skips all columns before the one that it needs, so those that views read come first.
    # Columns that commits change adjoin, because Postgres does not log unchanged ends of a row.
    Column("packed_capacity", LargeBinary, Computed(_PACKED_CAPACITY, persisted=True)),
    written_by(),
    Column("packed_use", LargeBinary, Computed(_PACKED_USE, persisted=True)),
    Column("sequence", BigInteger, nullable=False, server_default="0"),
    Column("revision", BigInteger, nullable=False, server_default="0"),
    Column("state", SmallInteger, nullable=False, server_default="0"),
    *(Column(f"{kind}_used", Integer, nullable=False, server_default="0") for kind in COLUMNS),
    *(Column(f"{kind}_capacity", Integer, nullable=False) for kind in COLUMNS),
    Column("notice", ARRAY(Integer)),
    moment("notice_ends_at", required=False),
    # Every statement that writes parses all CHECKs again, so they are few and short.
    CheckConstraint(f"least({_USED}) >= 0", name="used_is_positive"),
    CheckConstraint(f"notice IS NOT NULL OR least({_FREE}) >= 0", name="used_within_capacity"),
    CheckConstraint(f"state BETWEEN 0 AND {max(MachineState)}", name="state_known"),
    # Half-empty pages keep the new version of a row on the row's page, and no index covers the
    # columns that a commit changes, so that every commit's update is heap-only.
    postgresql_with={"fillfactor": 50},
)

machine_profile = Table(
    "machine_profile",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("codes", ARRAY(Integer), nullable=False),
    Column("address", Text),
)
"""What claims do not change of machines, apart from the rows that they do change."""

machine_change = Table(
    "machine_change",
    metadata,
    Column("machines", ARRAY(Integer), nullable=False),
    written_by(),
    Index("machine_change_changed_by", "changed_by"),
)
"""Machines that were changed without a commit; commits name theirs in their own records."""

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("scheduler", Text, nullable=False),
    Column("precedence", Integer, nullable=False, server_default="0"),
    Column("state", word("job_state", State), nullable=False, server_default=_PENDING),
    Column("tasks", Integer, nullable=False),
    Column("minimum", Integer, nullable=False, server_default="0"),
    Column("placed", Integer, nullable=False, server_default="0"),
    Column("ended", Integer, nullable=False, server_default="0"),
    Column("unplaced", INT4MULTIRANGE, nullable=False),
    Column("lease_token", Uuid),
    Column("lease_holder", Text),
    Column("lease_login", Text),
    moment("lease_expires_at", required=False),
    moment("not_before"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("fruitless", Integer, nullable=False, server_default="0"),
    Column("park_reason", word("park_reason", ParkReason)),
    Column("park_detail", Text),
    Column("park_generation", BigInteger),
    moment("submitted_at"),
    moment("first_leased_at", required=False),
    moment("finished_at", required=False),
    Column("preemptible", Boolean, nullable=False, server_default=text("true")),
    Column("evicted_by", BigInteger),
    moment("evicted_at", required=False),
    Column("workers_max", Integer),
    Column("parent", BigInteger),
    Column("failed", Integer, nullable=False, server_default="0"),
    moment("precedence_set_at", required=False),
    Column("tenant", Text, nullable=False),
    Column("lane_class", SmallInteger, nullable=False, server_default="0"),
    Column("order_key", BigInteger, nullable=False, server_default=text(ORDER_KEY)),
    Column("pipeline", BigInteger),
    CheckConstraint("state <> 'planning' OR lease_expires_at IS NOT NULL", name="lease_runs_out"),
    CheckConstraint("minimum BETWEEN 0 AND tasks", name="minimum_within"),
    CheckConstraint(
        "0 <= ended AND ended <= placed AND placed <= tasks AND tasks BETWEEN 1 AND 100000"
        # Tasks that fail are counted while they still run, just before they end.
        " AND failed BETWEEN 0 AND placed",
        name="counts_within",
    ),
    CheckConstraint("(state = 'planning') = (lease_token IS NOT NULL)", name="lease_iff_planning"),
    CheckConstraint("(state = 'parked') = (park_reason IS NOT NULL)", name="reason_iff_parked"),
    CheckConstraint(
        "state NOT IN ('running', 'succeeded') OR isempty(unplaced)", name="running_iff_placed"
    ),
    # The default, a fifth of all jobs ever, would leave too many dead rows for the queue's scans.
    postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
)

Index(
    "job_pending",
    job.c.scheduler,
    job.c.precedence.desc(),
    job.c.id,
    postgresql_where=text("state = 'pending'"),
)
Index(
    "job_parked",
    job.c.scheduler,
    job.c.precedence.desc(),
    job.c.id,
    postgresql_where=text("state = 'parked'"),
)
Index("job_parent", job.c.parent, postgresql_where=text("parent IS NOT NULL"))
Index(
    "job_elastic",
    job.c.scheduler,
    job.c.id,
    postgresql_where=text("workers_max IS NOT NULL AND finished_at IS NULL"),
)
Index("job_planning", job.c.id, postgresql_where=text("state = 'planning'"))

job_spec = Table(
    "job_spec",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("needs_sibling_machines", Boolean, nullable=False),
    Column("group_starts", ARRAY(Integer), nullable=False),
    Column("group_durations_ms", ARRAY(BigInteger), nullable=False),
    Column("wire", JSONB, nullable=False),
    Column("wire_bytes", Integer, Computed("octet_length(wire::text)", persisted=True)),
    Column("demand", ARRAY(BigInteger), nullable=False),
    Index("job_spec_name", "name", "job_id"),
)
"""What was submitted. `needs_sibling_machines`: where some tasks run decides where others may.

`demand`: what all its tasks need together, of each resource (omega.store.holdings.RESOURCES).
"""

allocation = Table(
    "allocation",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("task", Integer, primary_key=True, autoincrement=False),
    Column("machine_id", Integer, nullable=False),
    *(Column(kind, Integer, nullable=False, server_default="0") for kind in COLUMNS),
    moment("started_at"),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.05},
)
"""Running tasks. The primary key ensures that a task has at most one allocation."""

ended_task = Table(
    "ended_task",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    Column("task", Integer, nullable=False),
    Column("machine_id", Integer, nullable=False),
    moment("started_at"),
    moment("ended_at"),
    Column("cause", Text, nullable=False, server_default="ended"),
)
"""The history of ended tasks: rows are only added, apart from the rows that commits change."""

declare_progress(metadata)
declare_exits(metadata)
declare_lanes(metadata, job)
declare_pipelines(metadata, job)
declare_machine_leases(metadata)
declare_incarnation(metadata)

transaction = Table(
    "transaction",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("scheduler", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("by_sequence", Boolean, nullable=False),
    Column("jobs", ARRAY(BigInteger), nullable=False),
    Column("ends", ARRAY(Integer), nullable=False),
    Column("tasks", ARRAY(Integer), nullable=False),
    Column("machines", ARRAY(Integer), nullable=False),
    Column("verdicts", ARRAY(SmallInteger), nullable=False),
    Column("evicted_jobs", ARRAY(BigInteger), nullable=False, server_default="{}"),
    Column("evicted_tasks", ARRAY(Integer), nullable=False, server_default="{}"),
    Column("evicted_machines", ARRAY(Integer), nullable=False, server_default="{}"),
    moment("committed_at"),
    written_by(),
    Index("transaction_changed_by", "changed_by"),
)

quota = Table(
    "quota",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("scope", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("limits", ARRAY(BigInteger), nullable=False),
    Column("counted", Boolean, nullable=False, server_default=text("false")),
    written_by("set_by"),
    UniqueConstraint("scope", "name", name="quota_scope_name_key"),
    one_of("scope", QuotaScope),
    CheckConstraint(f"cardinality(limits) = {BUDGETS}", name="limits_whole"),
)
"""What a tenant or a kind of scheduler may hold. It is written by hand, never by a commit.

`counted`: the use of its jobs has been summed up; until then the quota grants nothing.
"""

quota_shard = Table(
    "quota_shard",
    metadata,
    Column("quota_id", Integer, primary_key=True, autoincrement=False),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("free", ARRAY(BigInteger), nullable=False),
    Column("closed", Boolean, nullable=False),
    CheckConstraint(f"cardinality(free) = {BUDGETS}", name="free_whole"),
    CheckConstraint("closed OR 0 <= ALL (free)", name="open_has_some"),
    postgresql_with={"fillfactor": 20},
)
"""The balance of a quota, divided into rows so that commits on different rows run in parallel.

While any budget is overdrawn all rows are closed: no commit draws on one row alone.
"""

Table(
    "round",
    metadata,
    Column("scheduler", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    moment("began_at"),
    moment("ends_at"),
    Column("memo", JSONB, nullable=False, server_default=text("'{}'")),
    Column("login", Text, nullable=False, server_default=text("SESSION_USER")),
    Column("holder_before", Text, nullable=False, server_default=text("''")),
    Column("login_before", Text, nullable=False, server_default=text("''")),
    postgresql_with={"fillfactor": 50},
)
"""The last round of each kind of scheduler that plans by rounds, and its memo for the next one."""

turn = Table(
    "turn",
    metadata,
    Column("login", Text, primary_key=True, server_default=text("SESSION_USER")),
    Column("holder", Uuid, primary_key=True),
    Column("asked", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("gap_ms", BigInteger, nullable=False),
    Column("parts", Integer, nullable=False),
    Column("number", Integer),
    Column("schedulers", Integer),
    moment("joined_at"),
    moment("expires_at"),
    UniqueConstraint("gap_ms", "parts", "schedulers", "number", name="turn_held_once"),
    CheckConstraint(
        "(number IS NULL) = (schedulers IS NULL)"
        " AND (number IS NULL OR 0 <= number AND number < schedulers)",
        name="whole",
    ),
    postgresql_with={"fillfactor": 50},
)
"""Replicas that divide their reading; each has the turn of scheduler `number`, from 0, or null."""

process = Table(
    "process",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("replica", Text, primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("facts", JSONB, nullable=False),
    moment("started_at"),
    moment("seen_at"),
    Column("login", Text, primary_key=True, server_default=text("SESSION_USER")),
    postgresql_with={"fillfactor": 50},
)

node = Table(
    "node",
    metadata,
    Column("role_name", Text, primary_key=True),
    Column("machines", INT4MULTIRANGE, nullable=False),
    written_by(),
)
"""The machines that a role stands for: its logins may end the tasks on these."""
