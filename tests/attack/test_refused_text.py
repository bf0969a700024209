"""Text and JSON that logins write: functions refuse what is too long or unprintable."""

from collections.abc import Callable

from tests.attack.calls import (
    LEASE_MS,
    Claim,
    Lease,
    call,
    lease_jobs,
    make_transaction,
    submit_jobs,
    try_call,
)
from tests.attack.hostile_names import INVALID, INVALID_NAMES, UNPRINTABLE
from tests.attack.machine_rows import add_machines, job_state
from tests.attack.sessions import Answer, Database, Session
from tests.attack.wires import a_group, a_job

FACTS_BYTES_MAX = 16_384
MEMO_BYTES_MAX = 4 * 2**20
LONG_MS = 86_400_000
UNREADABLE = {
    "deep": '{"a": ' + "[" * 17 + "1" + "]" * 17 + "}",
    "deep objects": '{"a": ' * 20 + "1" + "}" * 20,
    "beyond a double": '{"a": 1e400}',
    "far beyond": '{"a": [0, {"b": -1e130000}]}',
    "no object": "[1]",
    "null": "null",
}
READABLE = '{"a": ' + "[" * 10 + "-1.5e308" + "]" * 10 + ', "b": [1, "x", null, true, 1e-400]}'


def report(session: Session, facts: str, kind: str = "batch", replica: str = "0") -> Answer:
    return session.try_execute(
        "SELECT omega.report_process(%s, %s, 1, %s::jsonb)", [kind, replica, facts]
    )


def test_report_process_refuses_unreadable_facts(database: Database, scheduler: Session) -> None:
    long = '{"a": "' + "x" * FACTS_BYTES_MAX + '"}'
    wide = '{"a": "' + "字" * (FACTS_BYTES_MAX // 2) + '"}'
    answers = {
        what: report(scheduler, facts).sqlstate
        for what, facts in {**UNREADABLE, "long": long, "wide": wide}.items()
    }

    assert {INVALID} == set(answers.values()), answers
    assert [] == database.query("SELECT FROM omega.process")
    assert not report(scheduler, READABLE).sqlstate
    assert not report(scheduler, '{"a": "' + "x" * (FACTS_BYTES_MAX - 100) + '"}').sqlstate


def test_note_round_refuses_unreadable_memos(scheduler: Session) -> None:
    call(scheduler, "begin_round", "k", "me", LONG_MS)
    long = '{"a": "' + "x" * MEMO_BYTES_MAX + '"}'
    note = "SELECT omega.note_round('k', 1, %s::jsonb)"
    answers = {
        what: scheduler.try_execute(note, [memo]).sqlstate
        for what, memo in {**UNREADABLE, "long": long}.items()
    }

    assert {INVALID} == set(answers.values()), answers
    assert [(True,)] == scheduler.execute(note, [READABLE])
    assert [(True,)] == scheduler.execute(note, ['{"a": "' + "x" * (MEMO_BYTES_MAX - 100) + '"}'])


def test_a_login_reports_a_thousand_processes_at_most(
    database: Database, scheduler: Session
) -> None:
    report_each = """SELECT omega.report_process('k', n::text, 1, '{}')
                FROM generate_series(%s::int, %s::int) AS n"""
    scheduler.execute(report_each, [1, 1])
    database.observer.execute(
        "INSERT INTO omega.process (kind, replica, pid, facts, login)"
        " SELECT kind, n::text, pid, facts, login FROM omega.process, generate_series(2, 1000) AS n"
    )
    refused = scheduler.try_execute(report_each, [1_001, 1_001]).sqlstate
    again = scheduler.try_execute(report_each, [1, 1]).sqlstate
    other = database.session("node", "omega_node").try_execute(report_each, [2_001, 2_001]).sqlstate

    assert refused
    assert refused[:2] in {"22", "54", "53", "42"}
    assert ("", "") == (again, other)
    assert [(1_001,)] == database.query("SELECT count(*) FROM omega.process")


def test_a_login_begins_rounds_of_a_hundred_kinds_at_most(
    database: Database, scheduler: Session
) -> None:
    begin_each = (
        "SELECT number FROM generate_series(1, %s::int) AS n, omega.begin_round(n::text, 'me', 0)"
    )
    scheduler.execute(begin_each, [100])
    refused = scheduler.try_execute(begin_each, [101]).sqlstate
    again = scheduler.try_execute(begin_each, [100]).sqlstate

    assert refused
    assert not again
    assert [(100,)] == database.query("SELECT count(*) FROM omega.round")


def new_lease(scheduler: Session, submitter: Session) -> Lease:
    """Submit a job and lease it."""
    submit_jobs(submitter, a_job(a_group(tasks=2)))
    (lease,) = lease_jobs(scheduler)
    return lease


CallWithName = Callable[[Session, str], Answer]
CALLS_WITH_NAMES: dict[str, CallWithName] = {
    "a lease's holder": lambda it, name: try_call(it, "lease_jobs", "batch", name, 1, LEASE_MS),
    "a round's kind": lambda it, name: try_call(it, "begin_round", name, "me", LONG_MS),
    "a round's holder": lambda it, name: try_call(it, "begin_round", "k", name, LONG_MS),
    "a process's kind": lambda it, name: report(it, "{}", kind=name),
    "a process's replica": lambda it, name: report(it, "{}", replica=name),
}


def test_invalid_names_are_refused(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    submit_jobs(submitter, a_job())
    for where, call_with in CALLS_WITH_NAMES.items():
        answers = {
            what: call_with(scheduler, name).sqlstate for what, name in INVALID_NAMES.items()
        }
        assert dict.fromkeys(INVALID_NAMES, INVALID) == answers, where
    missing = scheduler.try_execute("SELECT omega.lease_jobs('batch', NULL, 1, 1)").sqlstate
    assert INVALID == missing
    for table in ("process", "round"):
        assert [] == database.query(f"SELECT FROM omega.{table}")
    assert [("pending",)] == database.query("SELECT state FROM omega.job")
    for call_with in CALLS_WITH_NAMES.values():
        assert not call_with(scheduler, "x" * 200).sqlstate


def test_commit_claims_refuses_invalid_names_of_its_caller(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    lease = new_lease(scheduler, submitter)
    answers = {}
    for at in (1, 2):
        for what, name in INVALID_NAMES.items():
            arguments = make_transaction(1, Claim(lease, 0, 1)).arguments
            arguments[at] = name
            answers[at, what] = try_call(scheduler, "commit_claims", *arguments).sqlstate

    assert dict.fromkeys(answers, INVALID) == answers
    assert [] == database.query("SELECT FROM omega.transaction")


def test_park_jobs_refuses_details_that_are_unprintable_or_long(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    lease = new_lease(scheduler, submitter)
    details = {**UNPRINTABLE, "long": "x" * 1_001}
    answers = {
        what: try_call(
            scheduler, "park_jobs", [lease.job], [lease.token], ["no_room"], [detail]
        ).sqlstate
        for what, detail in details.items()
    }

    assert dict.fromkeys(details, INVALID) == answers
    assert "planning" == job_state(database, lease.job)
    longest = ["full: " + "x" * 990]
    assert [(1,)] == call(scheduler, "park_jobs", [lease.job], [lease.token], ["no_room"], longest)


def test_a_lease_lasts_a_day_at_most(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    day, lease = 86_400_000, new_lease(scheduler, submitter)
    submit_jobs(submitter, a_job())
    call(scheduler, "begin_round", "batch", "me", LONG_MS)
    other_arguments: dict[str, list[object]] = {
        "lease_jobs": ["batch", "me", 1],
        "renew_leases": [[lease.job], [lease.token]],
        "recall_jobs": ["batch", 1, None],
    }
    for function, arguments in other_arguments.items():
        refused = [
            try_call(scheduler, function, *arguments, length).sqlstate
            for length in (day + 1, 315_576_000_000, 2**63 - 1, -1, None)
        ]
        assert [INVALID] * 5 == refused, function
        assert not try_call(scheduler, function, *arguments, day).sqlstate
    ((is_within_a_day,),) = database.query(
        "SELECT max(lease_expires_at) <= clock_timestamp() + interval '1 day' FROM omega.job"
    )
    assert is_within_a_day


def test_short_facts_with_huge_numbers_are_refused(scheduler: Session) -> None:
    """A number such as 1e130000 is short in JSON, but long once jsonb is converted to text."""
    digits = '{"a": [' + ", ".join(["1e130000"] * 20_000) + "]}"

    assert INVALID == report(scheduler, digits).sqlstate
    note = scheduler.try_execute("SELECT omega.note_round('k', 1, %s::jsonb)", [digits])
    assert INVALID == note.sqlstate
