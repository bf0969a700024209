"""Evictions: a login that leases jobs of every kind evicts only what yields to its claims."""

import pytest

from tests.attack.audit import violations
from tests.attack.calls import (
    Claim,
    Lease,
    Outcome,
    call,
    commit,
    lease_jobs,
    make_transaction,
    submit_jobs,
)
from tests.attack.machine_rows import add_machines, running_tasks
from tests.attack.sessions import Database, Session
from tests.attack.wires import DEVICES, a_group, a_job

PRECEDENCE = 8
"""The verdict on a claim that may not evict what it names."""
ONE_CORE = (1_000, 0, 0) + (0,) * DEVICES
URGENT = 2**31 - 1


@pytest.fixture
def machine(owner: Session) -> int:
    """The only machine, which one task fills."""
    (machine,) = add_machines(owner, 1, ONE_CORE)
    return machine


def lease_one(
    submitter: Session,
    scheduler: Session,
    kind: str,
    *,
    precedence: int = 0,
    preemptible: bool = True,
) -> Lease:
    """Submit a job of two tasks, and lease it."""
    submit_jobs(
        submitter,
        a_job(a_group(tasks=2), scheduler=kind, precedence=precedence, preemptible=preemptible),
    )
    (lease,) = lease_jobs(scheduler, kind)
    return lease


def evict(
    scheduler: Session, evictor: Lease, victim: Lease, machine: int, *, sent_as: str
) -> Outcome:
    """Claim the place of the victim's first task, with the leases of both jobs."""
    claim = Claim(evictor, 0, machine, evicts=((victim.job, 0),))
    arguments = make_transaction(2, claim).arguments
    arguments[1] = sent_as
    for at, more in ((4, victim.job), (5, victim.token), (6, 0), (7, 1)):
        arguments[at] = [*arguments[at], more]  # type: ignore[misc]
    return Outcome.of(call(scheduler, "commit_claims", *arguments))


def place(scheduler: Session, lease: Lease, machine: int) -> None:
    assert (0,) == commit(scheduler, make_transaction(1, Claim(lease, 0, machine))).verdicts


@pytest.mark.parametrize("sent_as", ["service", "batch"])
def test_a_lease_of_another_kind_evicts_nothing_that_does_not_yield(
    database: Database, submitter: Session, scheduler: Session, machine: int, sent_as: str
) -> None:
    """Neither by precedence nor by the name of the scheduler that the transaction gives."""
    stays = lease_one(submitter, scheduler, "service", preemptible=False)
    place(scheduler, stays, machine)
    evictor = lease_one(submitter, scheduler, "batch", precedence=URGENT)

    outcome = evict(scheduler, evictor, stays, machine, sent_as=sent_as)

    assert ((PRECEDENCE,), ()) == (outcome.verdicts, outcome.evicted)
    assert [(stays.job, 0, machine)] == running_tasks(database)
    assert [] == violations(database)


def test_an_equal_of_another_kind_is_not_evicted_either(
    database: Database, submitter: Session, scheduler: Session, machine: int
) -> None:
    equal = lease_one(submitter, scheduler, "service", precedence=50)
    place(scheduler, equal, machine)
    evictor = lease_one(submitter, scheduler, "batch", precedence=50)

    assert (PRECEDENCE,) == evict(scheduler, evictor, equal, machine, sent_as="service").verdicts
    assert [(equal.job, 0, machine)] == running_tasks(database)


def test_a_scheduler_evicts_what_its_own_kind_holds(
    database: Database, submitter: Session, scheduler: Session, machine: int
) -> None:
    stays = lease_one(submitter, scheduler, "batch", precedence=URGENT, preemptible=False)
    place(scheduler, stays, machine)
    evictor = lease_one(submitter, scheduler, "batch")

    outcome = evict(scheduler, evictor, stays, machine, sent_as="batch")

    assert ((0,), ((stays.job, 0),)) == (outcome.verdicts, outcome.evicted)
    assert [(evictor.job, 0, machine)] == running_tasks(database)
    assert [] == violations(database)
