"""Nobody writes on what the cell was: only READ COMMITTED sees what it has waited for."""

import pytest

from tests.attack.books import wrongs
from tests.attack.calls import Claim, ask, calling, commit, do, lease, one, start, submit
from tests.attack.machine_rows import add_machines, places
from tests.attack.sessions import Session, Stage
from tests.attack.wires import UNLIMITED, a_group, a_job

UNSUPPORTED = "0A000"
LEVELS = ("REPEATABLE READ", "SERIALIZABLE")
WRITERS = """
    SELECT p.proname, r.rolname,
           array_to_string(ARRAY(SELECT 'NULL::' || format_type(t, NULL)
                                   FROM unnest(p.proargtypes) AS t), ', ')
      FROM pg_proc p JOIN pg_roles r
        ON r.rolname LIKE 'omega\\_%' AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
     WHERE p.pronamespace = 'omega'::regnamespace AND p.provolatile = 'v'
       AND r.rolname IN ('omega_scheduler', 'omega_node', 'omega_submitter', 'omega_reader')
     ORDER BY 1, 2
"""
"""Each function that writes and that a role may call, with nothing but nulls as arguments."""
OWNERS = (
    "set_state",
    "resize_machine",
    "set_quota",
    "count_quota",
    "remove_quota",
    "assign_machines",
    "forget_changes",
    "prune_history",
)


def test_each_function_of_a_role_refuses_every_other_level(stage: Stage) -> None:
    writers = stage.see(WRITERS)
    sessions = {role: stage.session(role, role) for role in {role for _, role, _ in writers}}
    answers = []
    for level in LEVELS:
        for name, role, nulls in writers:
            session = sessions[role]
            session.do(f"BEGIN ISOLATION LEVEL {level}")
            answers.append((name, session.ask(f"SELECT omega.{name}({nulls})").sqlstate))
            session.do("ROLLBACK")

    assert len({name for name, _ in answers}) > 15
    assert {(name, UNSUPPORTED) for name, _ in answers} == set(answers)


@pytest.mark.parametrize("level", LEVELS)
def test_each_verb_of_the_owner_refuses_every_other_level(
    owner: Session, stage: Stage, level: str
) -> None:
    ((every,),) = stage.see(
        "SELECT array_agg(proname::text) FROM pg_proc WHERE pronamespace = 'omega'::regnamespace"
    )
    owner.do(f"SET default_transaction_isolation = '{level}'")
    answers = {
        name: ask(owner, name, *[None] * calling(name).count("%s")).sqlstate for name in OWNERS
    }
    added = owner.ask("SELECT omega.add_machines(0, '{}', '{}', '{}', '{}')").sqlstate

    assert set(every).issuperset(OWNERS)
    assert dict.fromkeys(OWNERS, UNSUPPORTED) == answers
    assert UNSUPPORTED == added


@pytest.mark.parametrize(
    "settings",
    [
        ["SET default_transaction_isolation = 'repeatable read'", "BEGIN"],
        ["BEGIN", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
        ["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN"],
        ["BEGIN ISOLATION LEVEL REPEATABLE READ"],
        ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SAVEPOINT one"],
    ],
)
def test_a_commit_on_an_old_snapshot_grants_nothing(
    stage: Stage,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    settings: list[str],
) -> None:
    add_machines(owner, 1)
    submit(submitter, a_job())
    (mine,) = lease(scheduler)
    for setting in settings:
        scheduler.do(setting)
    do(scheduler, "read_mark")
    # The quota is new to everybody: it is counted as soon as nobody can grant past it.
    do(owner, "set_quota", "tenant", "ann", [0] * 5)

    refused = ask(scheduler, "commit_claims", *one(1, Claim(mine, 0, 1)).arguments)
    scheduler.do("ROLLBACK")

    assert UNSUPPORTED == refused.sqlstate
    assert [] == places(stage)
    assert [] == wrongs(stage)


def test_read_uncommitted_sees_as_much_or_is_refused(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    submit(submitter, a_job())
    (mine,) = lease(scheduler)
    scheduler.do("BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    do(scheduler, "read_mark")
    do(owner, "set_quota", "tenant", "ann", [0] * 5)

    answer = ask(scheduler, "commit_claims", *one(1, Claim(mine, 0, 1)).arguments)
    scheduler.do("ROLLBACK" if answer.sqlstate else "COMMIT")

    assert answer.sqlstate in {"", UNSUPPORTED}
    assert [] == places(stage)


def test_two_who_wait_for_one_machine_oversell_nothing(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    (machine,) = add_machines(owner, 1, (1_500,) + (0,) * 10)
    submit(submitter, a_job(), a_job())
    first, second = lease(scheduler)
    rival = stage.session("rival", "omega_scheduler")
    scheduler.do("BEGIN")
    rival.do("BEGIN")
    do(rival, "read_mark")
    assert (0,) == commit(scheduler, one(1, Claim(first, 0, machine))).verdicts

    start(rival, "commit_claims", *one(2, Claim(second, 0, machine)).arguments)
    stage.settle()
    assert {"rival"} == stage.waiting().keys()
    scheduler.do("COMMIT")

    ((verdicts, *_),) = rival.answer.rows
    rival.do("COMMIT")
    assert [2] == verdicts
    assert [] == wrongs(stage)


def test_the_levels_are_asked_of_a_cell_at_work(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    """The same calls, with arguments that are right, are answered at the right level."""
    add_machines(owner, 1)
    submit(submitter, a_job(a_group(tasks=2)))
    (mine,) = lease(scheduler)
    arguments = one(1, Claim(mine, 0, 1)).arguments
    scheduler.do("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert UNSUPPORTED == ask(scheduler, "commit_claims", *arguments).sqlstate
    scheduler.do("ROLLBACK")
    scheduler.do("SET default_transaction_isolation = 'read committed'")

    assert not ask(scheduler, "commit_claims", *arguments).sqlstate
    assert [(mine.job, 0, 1)] == places(stage)
    do(owner, "set_quota", "tenant", "ann", [UNLIMITED] * 5)
    assert [] == wrongs(stage)
