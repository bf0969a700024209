"""submit_jobs refuses jobs with unknown keys, invalid names and values that are out of range."""

from collections.abc import Callable
from json import dumps
from re import sub

from psycopg.types.json import Jsonb

from tests.attack.calls import lease_jobs, submit_jobs, try_call
from tests.attack.hostile_names import INVALID, INVALID_NAMES, NON_STRINGS
from tests.attack.sessions import Database, Session
from tests.attack.wires import RESTART, Wire, a_constraint, a_group, a_job, a_program

WIRE_BYTES_MAX = 131_072

WireWith = Callable[[object], Wire]
"""Returns a job that has a value in one place."""


def job_with_constraint(**changed: object) -> Wire:
    return a_job(a_group(constraints=[a_constraint(**changed)]))


def job_with_preference(**changed: object) -> Wire:
    return a_job(a_group(preferences=[{**a_constraint(), "weight": 1, **changed}]))


UNKNOWN_KEYS: dict[str, Wire] = {
    "job": a_job(priority=1),
    "job, empty": a_job(**{"": None}),
    "job, nested": a_job(more={"a": [1]}),
    "group": a_job(a_group(ports=[80])),
    "a later group": a_job(a_group(), a_group(cpu=1)),
    "constraint": job_with_constraint(weight=1),
    "preference": job_with_preference(required=True),
    "work": a_job(work={"kind": "a", "steps": 1, "lr": 0.1}),
    "program": a_job(a_group(program=a_program(volumes=[]))),
    "restart": a_job(a_group(program=a_program(restart={**RESTART, "mode": "fail"}))),
}
NAMES: dict[str, WireWith] = {
    "name": lambda it: a_job(name=it),
    "scheduler": lambda it: a_job(scheduler=it),
    "tenant": lambda it: a_job(tenant=it),
    "kind of work": lambda it: a_job(work={"kind": it, "steps": 1}),
    "attribute": lambda it: job_with_constraint(attribute=it),
    "value": lambda it: job_with_constraint(values=["a", it]),
    "image": lambda it: a_job(a_group(program=a_program(image=it or ""))),
    "user": lambda it: a_job(a_group(program=a_program(user=it or ""))),
}


def refusal(session: Session, *wires: object) -> str:
    """Return the SQLSTATE of a submission; it is empty if the jobs are accepted."""
    return try_call(session, "submit_jobs", Jsonb(list(wires))).sqlstate


def job_count(database: Database) -> int:
    ((count,),) = database.query("SELECT count(*) FROM omega.job")
    return int(count)


def test_unknown_keys_are_refused_at_every_level(database: Database, submitter: Session) -> None:
    answers = {where: refusal(submitter, wire) for where, wire in UNKNOWN_KEYS.items()}

    assert dict.fromkeys(UNKNOWN_KEYS, INVALID) == answers
    assert 0 == job_count(database)


def test_invalid_names_are_refused(database: Database, submitter: Session) -> None:
    for where, wire_with in NAMES.items():
        answers = {
            what: refusal(submitter, wire_with(name)) for what, name in INVALID_NAMES.items()
        }
        others = [refusal(submitter, wire_with(it)) for it in NON_STRINGS]
        assert dict.fromkeys(INVALID_NAMES, INVALID) == answers, where
        assert [INVALID] * len(NON_STRINGS) == others, where
    assert 0 == job_count(database)
    for wire_with in NAMES.values():
        assert not refusal(submitter, wire_with("Ünïcode ✓ 字"))
        assert not refusal(submitter, wire_with("x" * 200))


def test_one_invalid_job_refuses_the_whole_submission(
    database: Database, submitter: Session
) -> None:
    assert INVALID == refusal(submitter, *[a_job()] * 3, UNKNOWN_KEYS["group"])

    assert 0 == job_count(database)


def test_the_limit_on_the_size_of_a_job_counts_bytes(
    database: Database, submitter: Session
) -> None:
    def wire_of(character: str, times: int) -> Wire:
        values = [character * 150 for _ in range(times // 150)]
        return job_with_constraint(values=values)

    long = {
        "ascii": wire_of("x", WIRE_BYTES_MAX + 1_500),
        "three bytes a character": wire_of("字", WIRE_BYTES_MAX // 3 + 1_500),
        "many groups": a_job(*[a_group(constraints=[a_constraint(values=["x" * 190] * 12)])] * 64),
    }
    short = [wire_of("x", 110_000), wire_of("字", 36_000)]
    answers = {what: refusal(submitter, wire) for what, wire in long.items()}

    assert dict.fromkeys(long, INVALID) == answers
    assert 0 == job_count(database)
    assert 2 == len(submit_jobs(submitter, *short))


def test_a_constraint_has_a_thousand_values_at_most(submitter: Session) -> None:
    values = [f"v{n}" for n in range(1_001)]

    assert INVALID == refusal(submitter, job_with_constraint(values=values))
    assert not refusal(submitter, job_with_constraint(values=values[1:]))


def test_preferences_out_of_range_are_refused(database: Database, submitter: Session) -> None:
    one = {**a_constraint(), "weight": 1}
    not_preferences: tuple[object, ...] = ([], {}, "x", None, 7)
    wrong = {
        **{
            f"weight {it}": a_group(preferences=[{**one, "weight": it}])
            for it in (0, 101, "1", 1.5)
        },
        "no weight": a_group(preferences=[a_constraint()]),
        "no constraint": a_group(preferences=[{"weight": 1}]),
        "a text": a_group(preferences=["zone in a"]),
        "no list": a_group(preferences=one),
        "null": a_group(preferences=None),
        "too many": a_group(preferences=[one] * 33),
        **{
            f"patience {it}": a_group(preferences=[one], patience_ms=it) for it in (-1, None, 2**62)
        },
        "patience for nothing": a_group(patience_ms=1),
        **{
            f"patience for {it!r}": a_group(preferences=it, patience_ms=1) for it in not_preferences
        },
    }
    answers = {what: refusal(submitter, a_job(group)) for what, group in wrong.items()}

    assert dict.fromkeys(wrong, INVALID) == answers
    assert 0 == job_count(database)
    assert not refusal(submitter, a_job(a_group(preferences=[one] * 32, patience_ms=1)))


def test_numbers_that_are_no_integers_in_range_are_refused(
    database: Database, submitter: Session
) -> None:
    text = dumps([a_job(work={"kind": "a", "steps": 1})])
    numbers = ("1e400", "-1e400", "1e130000", "1.5", '"1"', "null", "true", str(2**63))
    answers = {}
    for key in ("precedence", "minimum", "cpu_milli", "tasks", "steps"):
        for number in numbers:
            changed = sub(rf'"{key}": \d+', f'"{key}": {number}', text)
            assert changed != text
            answer = submitter.try_execute("SELECT omega.submit_jobs(%s::jsonb)", [changed])
            answers[key, number] = answer.sqlstate

    assert {INVALID} == set(answers.values()), answers
    assert 0 == job_count(database)


def test_a_short_text_of_huge_numbers_is_refused(database: Database, submitter: Session) -> None:
    """A number such as 1e130000 is short in JSON, but long once jsonb is converted to text."""
    digits = "[" + ", ".join(["1e130000"] * 20_000) + "]"
    for text in (
        f'[{{"name": {digits}}}]',
        f'[{{"x": {digits}}}]',
        f"[{digits}]",
        dumps([a_job(work={"kind": "a", "steps": "?"})]).replace('"?"', digits),
        dumps([a_job(work="?")]).replace('"?"', digits),
    ):
        answer = submitter.try_execute("SELECT omega.submit_jobs(%s::jsonb)", [text])
        assert INVALID == answer.sqlstate, answer.message


def test_an_accepted_job_is_stored_unchanged(
    database: Database, submitter: Session, scheduler: Session
) -> None:
    wire = a_job(
        a_group(tasks=2, constraints=[a_constraint(), a_constraint(operator="exists", values=[])]),
        a_group(gpus=2, spread_over="rack", different_machines=True),
        a_group(preferences=[{**a_constraint(), "weight": 100}], patience_ms=1),
        a_group(program=a_program(env={"A": "\x01 \u202e\U0001f600"}, image="i")),
        minimum=3,
        work={"kind": "a", "steps": 7},
    )
    submit_jobs(submitter, wire)

    ((stored,),) = database.query("SELECT wire FROM omega.job_spec")
    assert wire == stored
    assert 1 == len(lease_jobs(scheduler))
