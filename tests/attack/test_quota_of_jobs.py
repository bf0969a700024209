"""The quota of running jobs counts jobs with tasks, whatever a transaction names."""

from tests.attack.audit import violations
from tests.attack.calls import Claim, Outcome, call, lease_jobs, make_transaction, submit_jobs
from tests.attack.machine_rows import add_machines
from tests.attack.quota_scenario import ANN
from tests.attack.sessions import Database, Session
from tests.attack.wires import UNLIMITED, a_group, a_job


def test_a_job_without_claims_draws_nothing_from_its_quota(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    (machine,) = add_machines(owner, 1)
    call(owner, "set_quota", *ANN, [UNLIMITED] * 4 + [2])
    call(owner, "count_quota", *ANN)
    submit_jobs(submitter, *(a_job(a_group(), tenant="ann") for _ in range(2)))
    with_claim, without = lease_jobs(scheduler)
    arguments = make_transaction(1, Claim(with_claim, 0, machine)).arguments
    arguments[4:8] = [
        [with_claim.job, without.job],
        [with_claim.token, without.token],
        [0, 0],
        [1, 1],
    ]

    assert (0,) == Outcome.of(call(scheduler, "commit_claims", *arguments)).verdicts
    ((left,),) = database.query("SELECT sum(free[5]) FROM omega.quota_shard")
    assert 1 == left
    assert [] == violations(database)
