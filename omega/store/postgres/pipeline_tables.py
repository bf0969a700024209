"""The tables of pipelines: their stages, what stages cost, tokens, and the index of keys.

Goal     Lease the next jobs by start deadlines without reading the queue.
Promise  No commit writes these tables or the index. Jobs without a pipeline have a key, too.
Source   docs/decisions/0059-start-deadlines.md.
"""

from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from omega.store.pipelines import StageEnd
from omega.store.postgres.column_types import moment, one_of

ORDER_KEY: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""The key of a job without a pipeline: when it was submitted, in milliseconds."""


def declare_pipelines(metadata: MetaData, job: Table) -> None:
    """Declare the tables, and the index of pending jobs by their keys."""
    _declare_stages(metadata)
    _declare_costs(metadata)
    Index(
        "job_key",
        job.c.scheduler,
        job.c.precedence.desc(),
        job.c.order_key,
        job.c.id,
        postgresql_where=text("state = 'pending'"),
    )


def _declare_stages(metadata: MetaData) -> None:
    Table(
        "pipeline",
        metadata,
        Column("id", BigInteger, Identity(), primary_key=True),
        Column("name", Text, nullable=False),
        Column("tenant", Text, nullable=False),
        Column("within_ms", BigInteger, nullable=False),
        Column("stamp", BigInteger, nullable=False),
        moment("submitted_at"),
        moment("finished_at", required=False),
        CheckConstraint("within_ms >= 1", name="within_is_positive"),
    )
    Table(
        "pipeline_stage",
        metadata,
        Column("pipeline_id", BigInteger, primary_key=True, autoincrement=False),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("name", Text, nullable=False),
        Column("after", ARRAY(Integer), nullable=False),
        Column("units", BigInteger, nullable=False),
        Column("wire", JSONB, nullable=False),
        Column("job_id", BigInteger),
        Column("ended_as", Text),
        Column("cause", Text, nullable=False, server_default=""),
        Column("cost_ms", BigInteger),
        Column("start_ms", BigInteger),
        CheckConstraint("number > ALL (after)", name="stands_after_others"),
        CheckConstraint("units >= 1", name="units_is_positive"),
        CheckConstraint(
            "(job_id IS NULL) = (cost_ms IS NULL) AND (job_id IS NULL) = (start_ms IS NULL)",
            name="key_iff_job",
        ),
        one_of("ended_as", StageEnd),
    )


def _declare_costs(metadata: MetaData) -> None:
    Table(
        "stage_cost",
        metadata,
        Column("tenant", Text, primary_key=True),
        Column("template", Text, primary_key=True),
        Column("stage", Text, primary_key=True),
        Column("picos", Numeric(30, 0), nullable=False),
        CheckConstraint("picos >= 0", name="picos_is_positive"),
        postgresql_with={"fillfactor": 50},
    )
    Table(
        "pipeline_tokens",
        metadata,
        Column("tenant", Text, primary_key=True),
        Column("template", Text, primary_key=True),
        Column("interval_ms", BigInteger, nullable=False),
        Column("interval", BigInteger, nullable=False),
        Column("taken", Integer, nullable=False),
        postgresql_with={"fillfactor": 50},
    )
