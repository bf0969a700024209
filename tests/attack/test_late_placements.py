"""A node's report that waits for a lock ends no task that is placed elsewhere meanwhile."""

from tests.attack.calls import Claim, call, lease_jobs, make_transaction, submit_jobs
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_group, a_job

REPORT = (
    "SELECT omega.report_exits(%s::bigint[], %s::int[], %s::bigint[],"
    " %s::text[], %s::int[], %s::int[], %s::int[], %s::text[])"
)
LATER_MS = 4_000_000_000_000
"""The moment at which a task begins that the report names before it runs."""


def test_a_report_that_waits_ends_nothing_on_machines_of_others(
    database: Database, owner: Session
) -> None:
    theirs, own = add_machines(owner, 2)
    first = database.session_of("first", "attack_hostile_node", "omega_node")
    second = database.session_of("second", "attack_hostile_node", "omega_node")
    assign = "SELECT omega.assign_machines(%s, %s)"
    owner.execute(assign, [first.connection.info.user, [f"machine-{own}"]])
    scheduler = database.session("scheduler", "omega_scheduler")
    submitter = database.session("submitter", "omega_submitter")
    submit_jobs(submitter, a_job(a_group(tasks=1)), a_job(a_group(tasks=1)))
    here, there = lease_jobs(scheduler)
    call(scheduler, "commit_claims", *make_transaction(1, Claim(here, 0, own)).arguments)
    ((began_ms,),) = database.query(
        "SELECT (extract(epoch FROM started_at) * 1000)::bigint FROM omega.allocation"
    )

    first.execute("BEGIN")
    call(first, "end_tasks", [here.job], [0], None)
    jobs, begins_ms = [here.job, there.job], [began_ms, LATER_MS]
    exits = (["exited", "exited"], [1, 1], [0, 0], [0, 0], ["", ""])
    assert not database.step(second, REPORT, [jobs, [0, 0], begins_ms, *exits])
    call(scheduler, "commit_claims", *make_transaction(2, Claim(there, 0, theirs)).arguments)
    owner.execute(
        "UPDATE omega.allocation SET started_at = to_timestamp(%s / 1000) WHERE job_id = %s",
        [LATER_MS, there.job],
    )
    first.execute("ROLLBACK")

    assert [(1,)] == second.answer.rows
    running = database.query("SELECT job_id, machine_id FROM omega.allocation")
    assert [(there.job, theirs)] == running
    assert [(here.job,)] == database.query("SELECT job_id FROM omega.task_exit")
