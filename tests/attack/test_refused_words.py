"""What logins say of themselves, of rounds and of leases is short, and can be printed and read."""

from collections.abc import Callable

from tests.attack.calls import LEASE_MS, Claim, Lease, ask, do, lease, one, submit
from tests.attack.hostile_names import INVALID, NO_NAMES, UNPRINTABLE
from tests.attack.machine_rows import add_machines, state_of
from tests.attack.sessions import Answer, Session, Stage
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
    return session.ask("SELECT omega.report_process(%s, %s, 1, %s::jsonb)", [kind, replica, facts])


def test_facts_that_a_program_cannot_read_are_refused(stage: Stage, scheduler: Session) -> None:
    long = '{"a": "' + "x" * FACTS_BYTES_MAX + '"}'
    wide = '{"a": "' + "字" * (FACTS_BYTES_MAX // 2) + '"}'
    answers = {
        what: report(scheduler, facts).sqlstate
        for what, facts in {**UNREADABLE, "long": long, "wide": wide}.items()
    }

    assert {INVALID} == set(answers.values()), answers
    assert [] == stage.see("SELECT FROM omega.process")
    assert not report(scheduler, READABLE).sqlstate
    assert not report(scheduler, '{"a": "' + "x" * (FACTS_BYTES_MAX - 100) + '"}').sqlstate


def test_a_memo_that_a_program_cannot_read_is_refused(scheduler: Session) -> None:
    do(scheduler, "begin_round", "k", "me", LONG_MS)
    long = '{"a": "' + "x" * MEMO_BYTES_MAX + '"}'
    note = "SELECT omega.note_round('k', 1, %s::jsonb)"
    answers = {
        what: scheduler.ask(note, [memo]).sqlstate
        for what, memo in {**UNREADABLE, "long": long}.items()
    }

    assert {INVALID} == set(answers.values()), answers
    assert [(True,)] == scheduler.do(note, [READABLE])
    assert [(True,)] == scheduler.do(note, ['{"a": "' + "x" * (MEMO_BYTES_MAX - 100) + '"}'])


def test_a_thousand_processes_report_under_a_login(stage: Stage, scheduler: Session) -> None:
    each = """SELECT omega.report_process('k', n::text, 1, '{}')
                FROM generate_series(%s::int, %s::int) AS n"""
    scheduler.do(each, [1, 1])
    stage.onlooker.execute(
        "INSERT INTO omega.process (kind, replica, pid, facts, login)"
        " SELECT kind, n::text, pid, facts, login FROM omega.process, generate_series(2, 1000) AS n"
    )
    refused = scheduler.ask(each, [1_001, 1_001]).sqlstate
    again = scheduler.ask(each, [1, 1]).sqlstate
    other = stage.session("node", "omega_node").ask(each, [2_001, 2_001]).sqlstate

    assert refused
    assert refused[:2] in {"22", "54", "53", "42"}
    assert ("", "") == (again, other)
    assert [(1_001,)] == stage.see("SELECT count(*) FROM omega.process")


def test_a_login_begins_rounds_of_a_hundred_kinds(stage: Stage, scheduler: Session) -> None:
    each = (
        "SELECT number FROM generate_series(1, %s::int) AS n, omega.begin_round(n::text, 'me', 0)"
    )
    scheduler.do(each, [100])
    refused = scheduler.ask(each, [101]).sqlstate
    again = scheduler.ask(each, [100]).sqlstate

    assert refused
    assert not again
    assert [(100,)] == stage.see("SELECT count(*) FROM omega.round")


def placed_by(scheduler: Session, submitter: Session) -> Lease:
    """Lease a new job."""
    submit(submitter, a_job(a_group(tasks=2)))
    (mine,) = lease(scheduler)
    return mine


Naming = Callable[[Session, str], Answer]
NAMINGS: dict[str, Naming] = {
    "a lease's holder": lambda it, name: ask(it, "lease_jobs", "batch", name, 1, LEASE_MS),
    "a round's kind": lambda it, name: ask(it, "begin_round", name, "me", LONG_MS),
    "a round's holder": lambda it, name: ask(it, "begin_round", "k", name, LONG_MS),
    "a process's kind": lambda it, name: report(it, "{}", kind=name),
    "a process's replica": lambda it, name: report(it, "{}", replica=name),
}


def test_a_name_can_be_printed(stage: Stage, submitter: Session, scheduler: Session) -> None:
    submit(submitter, a_job())
    for where, naming in NAMINGS.items():
        answers = {what: naming(scheduler, name).sqlstate for what, name in NO_NAMES.items()}
        assert dict.fromkeys(NO_NAMES, INVALID) == answers, where
    missing = scheduler.ask("SELECT omega.lease_jobs('batch', NULL, 1, 1)").sqlstate
    assert INVALID == missing
    for table in ("process", "round"):
        assert [] == stage.see(f"SELECT FROM omega.{table}")
    assert [("pending",)] == stage.see("SELECT state FROM omega.job")
    for naming in NAMINGS.values():
        assert not naming(scheduler, "x" * 200).sqlstate


def test_a_commit_is_signed_with_names_that_can_be_printed(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    mine = placed_by(scheduler, submitter)
    answers = {}
    for at in (1, 2):
        for what, name in NO_NAMES.items():
            arguments = one(1, Claim(mine, 0, 1)).arguments
            arguments[at] = name
            answers[at, what] = ask(scheduler, "commit_claims", *arguments).sqlstate

    assert dict.fromkeys(answers, INVALID) == answers
    assert [] == stage.see("SELECT FROM omega.transaction")


def test_a_job_is_parked_with_a_sentence(
    stage: Stage, submitter: Session, scheduler: Session
) -> None:
    mine = placed_by(scheduler, submitter)
    details = {**UNPRINTABLE, "long": "x" * 1_001}
    answers = {
        what: ask(scheduler, "park_jobs", [mine.job], [mine.token], ["no_room"], [detail]).sqlstate
        for what, detail in details.items()
    }

    assert dict.fromkeys(details, INVALID) == answers
    assert "planning" == state_of(stage, mine.job)
    sentence = ["full: " + "x" * 990]
    assert [(1,)] == do(scheduler, "park_jobs", [mine.job], [mine.token], ["no_room"], sentence)


def test_no_lease_lasts_longer_than_a_day(
    stage: Stage, submitter: Session, scheduler: Session
) -> None:
    day, job = 86_400_000, placed_by(scheduler, submitter)
    submit(submitter, a_job())
    do(scheduler, "begin_round", "batch", "me", LONG_MS)
    first: dict[str, list[object]] = {
        "lease_jobs": ["batch", "me", 1],
        "renew_leases": [[job.job], [job.token]],
        "recall_jobs": ["batch", 1, None],
    }
    for function, arguments in first.items():
        refused = [
            ask(scheduler, function, *arguments, length).sqlstate
            for length in (day + 1, 315_576_000_000, 2**63 - 1, -1, None)
        ]
        assert [INVALID] * 5 == refused, function
        assert not ask(scheduler, function, *arguments, day).sqlstate
    ((latest,),) = stage.see(
        "SELECT max(lease_expires_at) <= clock_timestamp() + interval '1 day' FROM omega.job"
    )
    assert latest


def test_facts_cost_no_more_than_what_is_sent(scheduler: Session) -> None:
    """A number of a hundred thousand digits takes ten bytes until it is written as text."""
    digits = '{"a": [' + ", ".join(["1e130000"] * 20_000) + "]}"

    assert INVALID == report(scheduler, digits).sqlstate
    note = scheduler.ask("SELECT omega.note_round('k', 1, %s::jsonb)", [digits])
    assert INVALID == note.sqlstate
