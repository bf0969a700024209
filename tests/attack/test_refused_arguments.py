"""Arguments that no program sends are refused before anything is done."""

import pytest
from psycopg.types.json import Jsonb

from tests.attack.books import wrongs
from tests.attack.calls import Claim, Commit, Lease, ask, do, lease, one, step, submit
from tests.attack.hostile_names import INVALID
from tests.attack.machine_rows import add_machines, places
from tests.attack.sessions import Session, Stage
from tests.attack.wires import a_group, a_job

MANY = 10_001
GREATEST = 2**31 - 1


@pytest.fixture
def mine(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A job of three tasks, leased."""
    add_machines(owner, 2)
    submit(submitter, a_job(a_group(tasks=3)))
    (mine,) = lease(scheduler)
    return mine


def test_a_commit_with_nothing_where_something_belongs_is_refused(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    answers = []
    for at in range(20):
        arguments = one(1, Claim(mine, 0, 1)).arguments
        arguments[at] = None
        answers.append(ask(scheduler, "commit_claims", *arguments).sqlstate)

    assert [INVALID] * 20 == answers
    assert [] == places(stage)


def test_the_last_task_and_the_last_machine_overflow_nothing(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    claims = (
        Claim(mine, GREATEST, 1),
        Claim(mine, 0, GREATEST),
        Claim(mine, -(2**31), -(2**31)),
        Claim(mine, 1, 1, (GREATEST,) * 11),
        Claim(Lease(2**63 - 1, mine.token), 0, 1),
    )
    answers = [
        ask(scheduler, "commit_claims", *one(n, claim).arguments) for n, claim in enumerate(claims)
    ]

    assert {"", INVALID}.issuperset({it.sqlstate for it in answers})
    assert all(0 not in it.rows[0][0] for it in answers if it.rows)
    assert [] == places(stage)
    assert [] == wrongs(stage)


def test_alternates_and_evictions_are_limited_in_number(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    for claim in (
        Claim(mine, 0, 1, others=(2,) * MANY),
        Claim(mine, 0, 1, evicts=((mine.job, 0),) * MANY),
    ):
        transaction = Commit(mine.token, (claim,))
        assert INVALID == ask(scheduler, "commit_claims", *transaction.arguments).sqlstate
    assert [] == places(stage)


def test_what_is_read_in_parts_has_some(scheduler: Session) -> None:
    read = "SELECT * FROM omega.read_changes(0, %s::integer, '{0}')"
    answers = [scheduler.ask(read, [parts]).sqlstate for parts in (0, -1, None)]

    assert [INVALID] * 3 == answers
    assert not scheduler.ask(read, [1]).sqlstate


def test_history_is_pruned_in_blocks_that_a_table_can_have(owner: Session) -> None:
    blocks = ((-1, 1), (0, 0), (0, -1), (2**32, 1), (2**63 - 1, 1), (0, 2**63 - 1), (None, 1))
    answers = [ask(owner, "prune_history", "transaction", 0, *it).sqlstate for it in blocks]

    assert [INVALID] * len(blocks) == answers
    assert INVALID == ask(owner, "prune_history", "job_spec", 0, 0, 1).sqlstate


def test_a_process_has_a_number(scheduler: Session) -> None:
    assert INVALID == ask(scheduler, "report_process", "k", "0", None, Jsonb({})).sqlstate


def test_a_number_is_what_a_double_holds(scheduler: Session) -> None:
    report = "SELECT omega.report_process('k', '0', 1, %s::jsonb)"
    numbers = ("1.79e308", "-1.79e308", "1.799e308", "-1.799e308", "1.8e308", "1e309")
    answers = [scheduler.ask(report, [f'{{"a": {number}}}']).sqlstate for number in numbers]

    assert ["", "", INVALID, INVALID, INVALID, INVALID] == answers


def test_facts_have_sixteen_levels(scheduler: Session) -> None:
    report = "SELECT omega.report_process('k', '0', 1, %s::jsonb)"
    answers = [
        scheduler.ask(report, ['{"a": ' + "[" * arrays + "1" + "]" * arrays + "}"]).sqlstate
        for arrays in (15, 16)
    ]

    assert ["", INVALID] == answers


def test_a_training_job_runs_for_a_time_that_can_be(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    submit(submitter, a_job(training={"model": "a", "steps": 5}))
    (mine,) = lease(scheduler)
    do(scheduler, "commit_claims", *one(1, Claim(mine, 0, 1)).arguments)
    for steps, run_ms in ((1, 2**63 - 1), (1, -1), (-1, 1), (None, 1)):
        answer = ask(owner, "report_progress", [mine.job], [steps], [run_ms])
        assert INVALID == answer.sqlstate, (steps, run_ms)
    assert not ask(owner, "report_progress", [mine.job], [2**63 - 1], [1_000]).sqlstate
    assert [(5, 1_000)] == stage.see("SELECT steps, run_ms FROM omega.progress")


def test_a_job_is_given_back_for_a_day_at_most(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    given = [[mine.job], [mine.token]]
    for delay in (86_400_001, 315_576_000_000, -1, None):
        answer = ask(scheduler, "hand_back_jobs", *given, [delay], [True])
        assert INVALID == answer.sqlstate, delay
    assert [("planning",)] == stage.see("SELECT state FROM omega.job")
    assert [(1,)] == do(scheduler, "hand_back_jobs", *given, [86_400_000], [True])


def test_nobody_takes_anothers_name(stage: Stage, scheduler: Session) -> None:
    """Whoever reports first, even in a transaction that is left open, is in nobody's way."""
    rogue = stage.session_of("rogue", "attack_rogue_node", "omega_node")
    do(rogue, "report_process", "batch", "taken", 1, Jsonb({}))
    rogue.do("BEGIN")
    do(rogue, "report_process", "batch", "open", 1, Jsonb({}))
    do(rogue, "report_process", "batch", "taken", 1, Jsonb({}))

    for replica in ("open", "taken"):
        assert step(stage, scheduler, "report_process", "batch", replica, 2, Jsonb({}))
        assert not scheduler.answer.sqlstate, scheduler.answer.said
        assert step(stage, scheduler, "forget_process", "batch", replica)
        assert not scheduler.answer.sqlstate, scheduler.answer.said
    rogue.do("COMMIT")
    assert [(2,)] == stage.see("SELECT count(*) FROM omega.process")
    do(scheduler, "forget_process", "batch", "taken")
    assert [(2,)] == stage.see("SELECT count(*) FROM omega.process")


SETTINGS = (
    "SET random_page_cost = 1e12",
    "SET enable_indexscan = off; SET random_page_cost = 1e12; SET seq_page_cost = 0",
    "SET enable_indexscan = off; SET enable_nestloop = off; SET cpu_tuple_cost = 0",
    "SET cpu_operator_cost = 1e12; SET cpu_index_tuple_cost = 1e12",
    "SET enable_sort = off; SET enable_material = off; SET enable_memoize = off",
    "SET effective_cache_size = 1; SET work_mem = '64kB'; SET join_collapse_limit = 1",
)


def test_machines_are_locked_by_their_ids_whatever_a_caller_has_set(
    stage: Stage, owner: Session, scheduler: Session, mine: Lease
) -> None:
    add_machines(owner, 200)
    owner.do("UPDATE omega.machine SET state = state WHERE id = 1")
    owner.do("ANALYZE omega.machine")
    assert [(2,)] == stage.see("SELECT id FROM omega.machine ORDER BY ctid LIMIT 1")
    free = "SELECT id FROM omega.machine WHERE id = 2 FOR NO KEY UPDATE SKIP LOCKED"
    claims = (Claim(mine, 0, 2), Claim(mine, 1, 1))
    for settings in SETTINGS:
        for statement in (*settings.split("; "), "SET jit = off", "DISCARD PLANS", "BEGIN"):
            scheduler.do(statement)
        owner.do("BEGIN")
        owner.do("SELECT FROM omega.machine WHERE id = 1 FOR NO KEY UPDATE")

        assert not step(stage, scheduler, "commit_claims", *one(1, *claims).arguments), settings
        assert [(2,)] == stage.see(free), settings
        owner.do("COMMIT")
        assert [0, 0] == scheduler.answer.rows[0][0]
        scheduler.do("ROLLBACK")
        scheduler.do("RESET ALL")
    assert [] == wrongs(stage)
