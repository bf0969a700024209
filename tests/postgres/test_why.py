"""Eleven ways to be held up, on Postgres under schedulers as processes run them.

Each is planted, `omega why` names it, and what it says to do is done, as it is written. Then the
job is placed.
"""

from dataclasses import replace

import psycopg
import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.jobs import Constraint, Operator, Preference
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.reports.why.reasons import Reason
from omega.store.leases import HandBack
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, claim, places
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega
from tests.fixtures.held_up import said, state_of, typed, why, work_until, working

pytestmark = pytest.mark.usefixtures("kept_sessions")

GIB = 1_024
GROWN_OLD = "UPDATE omega.job SET submitted_at = submitted_at - interval '10 min' WHERE id = %s"


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def test_an_attribute_that_no_machine_has(database_url: str, store: PostgresStore) -> None:
    store.add_machines(a_cell(2, attributes={"zone": ["a", "b"]}))
    wanted = Constraint("zonee", Operator.IN, ("a",))
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec(constraints=(wanted,))])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.UNKNOWN_ATTRIBUTE is report.finding.reason
        assert report.finding.evidence.endswith("; did you mean 'zone'?")
        assert [("machines in all", 2), ("has zonee", 0)] == [
            (step.what, step.left) for step in report.funnel[:2]
        ]
        assert "load machines that have it" in report.finding.next_step
        store.add_machines(a_cell(1, first=3, attributes={"zonee": ["a"]}))
        work_until(batch, store, job, State.RUNNING)


def test_nowhere_is_room_now(database_url: str, store: PostgresStore, omega: Omega) -> None:
    one, two = add_a_cell(store, 2)
    a_running_job(store, a_spec(), [one], cpu_milli=4_000, memory_mib=16 * GIB)
    a_running_job(store, a_spec(), [two], cpu_milli=4_000, memory_mib=16 * GIB)
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec(cpu_milli=1_000, memory_mib=GIB)])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.NO_ROOM is report.finding.reason
        assert "2 open machines could hold one" in report.finding.evidence
        assert 0 == omega(*typed(report, "omega cancel")).code
        work_until(batch, store, job, State.RUNNING)


def test_but_for_one_kind_it_would_fit_on_three_machines(
    database_url: str, store: PostgresStore
) -> None:
    machines = add_a_cell(store, 4)
    for machine in machines[:3]:
        a_running_job(store, a_spec(), [machine], memory_mib=14 * GIB)
    a_running_job(store, a_spec(), [machines[3]], cpu_milli=4_000)
    spec = a_spec(cpu_milli=2_000, memory_mib=8 * GIB)
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([spec])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.ONE_KIND_SHORT is report.finding.reason
        assert "But for memory it would fit on 3 machines now" in report.finding.evidence
        assert ("6 GiB more free (has 2 GiB)",) == report.nearest[0].lacks
        group = replace(spec.groups[0], memory_mib=said(report, "memory"))
        (anew,) = store.submit([replace(spec, groups=(group,))])
        work_until(batch, store, anew, State.RUNNING)
        assert State.PARKED is state_of(store, job)


def test_a_quota_is_used_up(database_url: str, store: PostgresStore, omega: Omega) -> None:
    (machine,) = add_a_cell(store, 1)
    limits = {Budget.CPU_MILLI: 2_000, Budget.JOBS: 9}
    store.set_quota(Quota(QuotaScope.TENANT, "ann", limits))
    a_running_job(store, a_spec(tenant="ann"), [machine])
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec(tenant="ann", cpu_milli=1_500)])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job, machine="machine-1")

        assert Reason.OVER_QUOTA is report.finding.reason
        assert "cpu of tenant ann: needs 1.5, 1 left." == report.finding.evidence
        assert {"cpu of tenant ann": False, "jobs of tenant ann": True} == {
            rule.what: rule.holds for rule in report.rules if rule.stage == "quota"
        }
        assert 0 == omega(*typed(report, "omega quota set")).code
        assert {Budget.CPU_MILLI: 2_500, Budget.JOBS: 9} == store.quotas()[0].quota.limits
        work_until(batch, store, job, State.RUNNING)


def test_a_gang_of_eight_and_room_for_seven(database_url: str, store: PostgresStore) -> None:
    machines = add_a_cell(store, 2)
    a_running_job(store, a_spec(), machines[:1])
    spec = a_spec(8, minimum=8)
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([spec])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.GANG_SHORT is report.finding.reason
        assert "needs 8 tasks placed at once; there is room for 7 now" in report.finding.evidence
        assert 7 == said(report, "minimum")
        store.cancel(job)
        (anew,) = store.submit([replace(spec, minimum=said(report, "minimum"))])
        wait_until(lambda: (batch.step(), store.job(anew))[1].placed == 7, "7 tasks")  # type: ignore[union-attr]


def test_two_hundred_of_a_higher_precedence_come_first(
    database_url: str, store: PostgresStore
) -> None:
    add_a_cell(store, 1, cpu_milli=1_000)
    with working(database_url, BatchScheduler()) as batch:
        store.submit([a_spec(precedence=50)] * 200)
        spec = a_spec()
        (job,) = store.submit([spec])

        report = why(store, job)

        assert Reason.BEHIND_OTHERS is report.finding.reason
        assert (200, 0) == (report.line.higher, report.line.older)
        assert "it is behind 200 jobs of higher precedence" in report.finding.evidence
        (anew,) = store.submit([replace(spec, precedence=said(report, "precedence"))])
        work_until(batch, store, anew, State.RUNNING)
        assert State.RUNNING is not state_of(store, job)


def test_another_scheduler_is_always_faster(database_url: str, store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1, cpu_milli=10_000)
    job = a_leased_job(store)
    rivals = []
    for sequence in range(3):
        (rival,) = store.submit([a_spec(scheduler="service", cpu_milli=1)])
        (leased,) = store.lease("service", holder="service/1", jobs_max=1, lease_ms=60_000)
        claims = some_claims([0], [machine], cpu_milli=1, seen=sequence)
        store.commit(a_transaction(claims_of_job(leased, claims), scheduler="service", replica="1"))
        rivals.append(rival)
        claim(store, job, [0], [machine], rule=ConflictRule.SEQUENCE, seen=sequence)
    store.hand_back([HandBack(job.id, job.token, 0, progressed=False)])
    with working(database_url, BatchScheduler()) as batch:
        # It has planned the job already: what `why` is asked of is the time before.
        work_until(batch, store, job.id, State.RUNNING)
    (late,) = store.submit([a_spec()])
    (leased,) = store.lease("batch", holder="batch/0", jobs_max=1, lease_ms=60_000)
    claim(store, leased, [0], [machine], rule=ConflictRule.SEQUENCE, seen=0)
    store.hand_back([HandBack(late, leased.token, 0, progressed=False)])
    store.report("batch", "0", pid=1, facts={})

    report = why(store, late)

    assert Reason.CONFLICTS is report.finding.reason
    assert [("stale", "batch 0", job.id)] == [
        (it.verdict, it.taken_by, it.taken_for) for it in report.transactions[0].claims
    ]
    assert "batch 0 took the machines" in report.finding.evidence
    words = typed(report, "omega scheduler run")
    assert ["scheduler", "run", "batch", "--rule", "fit"] == words
    with working(database_url, BatchScheduler()) as batch:
        work_until(batch, store, late, State.RUNNING)
    story = store.transactions_of(job.id, transactions_max=9)
    assert rivals[::-1] == [it.claims[0].taken_by and it.claims[0].taken_by.job for it in story[1:]]


def test_every_machine_that_could_take_it_is_drained(
    database_url: str, store: PostgresStore, omega: Omega
) -> None:
    _, large = (
        store.add_machines(a_cell(1)).tolist()
        + store.add_machines(a_cell(1, first=2, cpu_milli=32_000)).tolist()
    )
    store.set_state(integers([large]), MachineState.DRAINING)
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec(cpu_milli=8_000)])
        work_until(batch, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.MACHINES_CLOSED is report.finding.reason
        assert "draining: 1 machine, machine-2" in report.finding.evidence
        assert ("draining (asked: is open)",) == report.nearest[0].lacks
        assert 0 == omega(*typed(report, "omega cell open")).code
        work_until(batch, store, job, State.RUNNING)


def test_a_machine_shrank_and_its_notice_runs(database_url: str, store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1)
    a_running_job(store, a_spec(precedence=-1, cpu_milli=3_000), [machine], cpu_milli=3_000)
    a_running_job(store, a_spec(), [machine])
    with working(database_url, BatchScheduler()) as batch:
        store.resize(machine, machine_capacity(3_000, 16_384, 100_000), notice_ms=1_500)
        (job,) = store.submit([a_spec(cpu_milli=2_000)])

        report = why(store, job)

        assert Reason.OVER_NOTICE is report.finding.reason
        assert "Wait: tasks of the lowest precedence end" in report.finding.next_step
        assert ("used above its capacity (asked: is open)",) == report.nearest[0].lacks[:1]
        work_until(batch, store, job, State.RUNNING)


def test_what_is_in_the_way_is_not_preemptible(
    database_url: str, store: PostgresStore, omega: Omega
) -> None:
    (machine,) = add_a_cell(store, 1)
    stays = replace(a_spec(), preemptible=False)
    a_running_job(store, stays, [machine], cpu_milli=3_000)
    with working(database_url, ServiceScheduler()) as service:
        spec = a_spec(scheduler="service", precedence=100, cpu_milli=2_000)
        (job,) = store.submit([spec])
        work_until(service, store, job, State.PARKED)

        report = why(store, job)

        assert Reason.NOT_PREEMPTIBLE is report.finding.reason
        assert report.evictions is not None
        assert report.evictions.is_complete
        assert 0 == omega(*typed(report, "omega cancel")).code
        work_until(service, store, job, State.RUNNING)


def test_it_is_patient_and_runs_elsewhere_once_its_patience_is_over(
    database_url: str, store: PostgresStore
) -> None:
    preferred, other = store.add_machines(a_cell(2, attributes={"zone": ["a", "b"]})).tolist()
    a_running_job(store, a_spec(), [preferred], cpu_milli=4_000)
    in_a = Preference(Constraint("zone", Operator.IN, ("a",)))
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec(preferences=(in_a,), patience_ms=600_000)])
        wait_until(lambda: (batch.step(), store.job(job))[1].fruitless >= 2, "two tries")  # type: ignore[union-attr]

        report = why(store, job)

        assert Reason.PATIENT is report.finding.reason
        assert (State.PENDING, set()) == (state_of(store, job), set(report.placements))
        with psycopg.connect(database_url) as connection:
            connection.execute(GROWN_OLD, [job])
        work_until(batch, store, job, State.RUNNING)
    assert other == places(store)[job, 0]
