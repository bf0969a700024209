"""The tables of how far jobs have come: steps, and the activities of phases.

Goal     Keep what nodes report every few seconds apart from the rows of the queue.
Promise  A row holds sums since the job was submitted, none negative.
Source   docs/decisions/0027-jobs-in-steps.md, 0043-elastic-jobs.md.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, MetaData, Table


def declare_progress(metadata: MetaData) -> None:
    """Declare the progress of jobs in steps, and of each phase, from 0, of elastic jobs.

    No row: not yet reported.
    """
    Table(
        "progress",
        metadata,
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("steps", BigInteger, nullable=False),
        Column("run_ms", BigInteger, nullable=False),
        CheckConstraint("steps >= 0", name="steps_is_positive"),
        CheckConstraint("run_ms >= 0", name="run_is_positive"),
        postgresql_with={"fillfactor": 50},
    )
    Table(
        "phase_progress",
        metadata,
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("phase", Integer, primary_key=True, autoincrement=False),
        Column("done", BigInteger, nullable=False),
        Column("busy_ms", BigInteger, nullable=False),
        CheckConstraint("least(done, busy_ms) >= 0", name="counts_are_positive"),
        postgresql_with={"fillfactor": 50},
    )
