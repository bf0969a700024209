"""Every invariant that `omega db verify` checks is broken by hand, and found."""

import re
from importlib.resources import files

import psycopg
import pytest

from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.postgres import functions
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.pipeline_contract import a_pipeline
from omega.testing.steps import LONG_MS, a_leased_job, a_running_job, add_a_cell, end

WITHIN = "ALTER TABLE omega.machine DROP CONSTRAINT machine_used_within_capacity;"
LEASE = "ALTER TABLE omega.job DROP CONSTRAINT job_lease_runs_out;"
OPEN_HAS_SOME = "ALTER TABLE omega.quota_shard DROP CONSTRAINT quota_shard_open_has_some;"

BREAKS = {
    "used is the sum of live allocations": """
        UPDATE omega.machine SET memory_mib_used = memory_mib_used + 1 WHERE id = 1""",
    "no machine is oversold": f"""
        {WITHIN} UPDATE omega.machine SET cpu_milli_capacity = cpu_milli_used - 1 WHERE id = 1""",
    "an allocation has a machine": """
        UPDATE omega.allocation SET machine_id = 77 WHERE job_id = 1""",
    "an allocation has a job that goes on": """
        UPDATE omega.job SET state = 'cancelled' WHERE id = 1""",
    "a task has at most one live allocation, and none once it is unplaced": """
        UPDATE omega.job SET state = 'pending', unplaced = '{[0,1)}' WHERE id = 1""",
    "placed tasks run or are over": """
        UPDATE omega.job SET ended = ended + 1 WHERE id = 1""",
    "unplaced tasks are those never placed": """
        UPDATE omega.job SET state = 'pending', unplaced = '{[1,2)}' WHERE id = 1""",
    "a gang is whole, absent, or above its minimum": """
        UPDATE omega.job SET minimum = 3, placed = 2, unplaced = '{[1,2)}', state = 'pending'
         WHERE id = 1;
        DELETE FROM omega.allocation WHERE job_id = 1 AND task = 1""",
    "a task ends once": """
        INSERT INTO omega.ended_task SELECT * FROM omega.ended_task""",
    "a granting transaction raises a machine's sequence by one": """
        UPDATE omega.machine SET sequence = 0 WHERE id = 1""",
    "a change of a machine is on record": """
        UPDATE omega.machine SET revision = revision + 1, changed_by = pg_current_xact_id()""",
    "a machine has a profile as wide as the catalogue": """
        UPDATE omega.machine_profile SET codes = '{1,2,3}' WHERE id = 1""",
    "a job has a description": """
        DELETE FROM omega.job_spec WHERE job_id = 1""",
    "only a higher precedence, or its own scheduler, evicts": """
        UPDATE omega.job SET preemptible = false WHERE id = 2;
        UPDATE omega.job SET scheduler = 'service' WHERE id = 3""",
    "a job was evicted for a higher precedence, or by its own scheduler": """
        UPDATE omega.job SET evicted_by = 1, scheduler = 'service' WHERE id = 2""",
    "what is left of a quota is the limit less what its jobs hold": """
        UPDATE omega.quota_shard SET free[1] = free[1] + 1 WHERE shard = 3""",
    "a quota that is used above its limit is closed": f"""
        {OPEN_HAS_SOME} UPDATE omega.quota_shard SET free[1] = free[1] - 100000 WHERE shard = 3""",
    "helpers never wait": """
        UPDATE omega.job SET parent = 1, state = 'pending', lease_token = NULL
         WHERE state = 'planning'""",
    "helpers end with their parent": """
        UPDATE omega.job SET parent = 77 WHERE state = 'planning'""",
    "a job has the workers that it may have": """
        UPDATE omega.job SET workers_max = tasks WHERE id = 1;
        UPDATE omega.job SET parent = 1 WHERE state = 'planning'""",
    "a job has failed if a task of it has": """
        UPDATE omega.job SET failed = 2 WHERE id = 1""",
    "a machine that its lease declared down is down": """
        INSERT INTO omega.machine_lease
        VALUES (1, gen_random_uuid(), 'ann', clock_timestamp(), 0)""",
    "a stage is queued once all before it have succeeded": """
        UPDATE omega.pipeline_stage SET ended_as = 'succeeded' WHERE number = 0""",
    "a stage ends with its job": """
        UPDATE omega.pipeline_stage SET ended_as = 'failed' WHERE number = 0""",
    "a lease runs out": f"""
        {LEASE} UPDATE omega.job SET lease_expires_at = NULL WHERE state = 'planning'""",
}


@pytest.fixture
def cell(store: PostgresStore) -> PostgresStore:
    """A cell with a bit of everything: a job of which a task is over, one that lost its place to
    another, one that is being planned, a pipeline, and a quota.
    """
    one, _ = add_a_cell(store, 2)
    running = a_running_job(store, a_spec(3, tenant="ann"), [one] * 3)
    end(store, running, 2)
    low = a_running_job(store, a_spec(precedence=10), [one])
    high = a_leased_job(store, a_spec(precedence=20))
    claims = evicting(a_claim(0, machine=one), (0, low.id, 0))
    assert store.commit(a_transaction(claims_of_job(high, claims))).accepted.all()
    store.lease("batch", holder="0", jobs_max=1, lease_ms=LONG_MS)
    store.submit_pipelines([a_pipeline()])
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 5_000}))
    assert [1, low.id] == [running.id, 2]
    assert [] == list(store.verify())
    return store


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("invariant", BREAKS)
def test_what_is_broken_by_hand_is_found(database_url: str, invariant: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(BREAKS[invariant])
        found = connection.execute("SELECT invariant, subject, detail FROM omega.verify()")
        broken = {name: (subject, detail) for name, subject, detail in found}
        connection.rollback()

    assert invariant in broken
    subject, detail = broken[invariant]
    assert subject
    assert detail


EVICTIONS = (
    "only a higher precedence, or its own scheduler, evicts",
    "a job was evicted for a higher precedence, or by its own scheduler",
)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(
    ("change", "is_broken"),
    [
        ("precedence = 19 WHERE id = 2", False),  # the gap may have been 1
        ("precedence = 20 WHERE id = 2", True),
        ("preemptible = false WHERE id = 2", True),
        ("precedence = 9 WHERE id = 3", True),
    ],
)
def test_evictions_are_checked_by_precedence_and_preemptible_whatever_the_gap_was(
    database_url: str, change: str, *, is_broken: bool
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE omega.job SET scheduler = 'service' WHERE id = 3")
        connection.execute(f"UPDATE omega.job SET {change}".encode())
        found = connection.execute("SELECT invariant FROM omega.verify()").fetchall()
        connection.rollback()

    assert sorted(EVICTIONS if is_broken else ()) == sorted(name for (name,) in found)


@pytest.mark.usefixtures("cell")
def test_a_job_without_a_granted_claim_has_evicted_nobody(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE omega.transaction SET verdicts = '{2}' WHERE evicted_jobs <> '{}'"
        )
        found = connection.execute("SELECT invariant FROM omega.verify()").fetchall()
        connection.rollback()

    assert (EVICTIONS[0],) in found


def test_the_table_names_every_invariant() -> None:
    text = (files(functions) / "verify.sql").read_text(encoding="utf-8")
    named = {
        name.replace("''", "'") for name in re.findall(r"^    SELECT '((?:[^']|'')+)'", text, re.M)
    }

    assert named == BREAKS.keys()
