"""Jobs that no program of the project writes are refused as they are submitted."""

from collections.abc import Callable
from json import dumps
from re import sub

from psycopg.types.json import Jsonb

from tests.attack.calls import ask, lease, submit
from tests.attack.hostile_names import INVALID, NO_NAMES, NOT_TEXTS
from tests.attack.sessions import Session, Stage
from tests.attack.wires import Wire, a_constraint, a_group, a_job

WIRE_BYTES_MAX = 131_072

Placing = Callable[[object], Wire]
"""Puts a value into a job."""


def in_constraint(**changed: object) -> Wire:
    return a_job(a_group(constraints=[a_constraint(**changed)]))


UNKNOWN_KEYS: dict[str, Wire] = {
    "job": a_job(priority=1),
    "job, empty": a_job(**{"": None}),
    "job, nested": a_job(more={"a": [1]}),
    "group": a_job(a_group(ports=[80])),
    "a later group": a_job(a_group(), a_group(cpu=1)),
    "constraint": in_constraint(weight=1),
    "training": a_job(training={"model": "a", "steps": 1, "lr": 0.1}),
}
NAMES: dict[str, Placing] = {
    "name": lambda it: a_job(name=it),
    "scheduler": lambda it: a_job(scheduler=it),
    "tenant": lambda it: a_job(tenant=it),
    "model": lambda it: a_job(training={"model": it, "steps": 1}),
    "attribute": lambda it: in_constraint(attribute=it),
    "value": lambda it: in_constraint(values=["a", it]),
}


def refusal(session: Session, *wires: object) -> str:
    """Return how a submission is refused, if it is."""
    return ask(session, "submit_jobs", Jsonb(list(wires))).sqlstate


def jobs(stage: Stage) -> int:
    ((count,),) = stage.see("SELECT count(*) FROM omega.job")
    return int(count)


def test_an_unknown_key_is_refused_at_every_level(stage: Stage, submitter: Session) -> None:
    answers = {where: refusal(submitter, wire) for where, wire in UNKNOWN_KEYS.items()}

    assert dict.fromkeys(UNKNOWN_KEYS, INVALID) == answers
    assert 0 == jobs(stage)


def test_what_cannot_be_printed_names_nothing(stage: Stage, submitter: Session) -> None:
    for where, place in NAMES.items():
        answers = {what: refusal(submitter, place(name)) for what, name in NO_NAMES.items()}
        others = [refusal(submitter, place(it)) for it in NOT_TEXTS]
        assert dict.fromkeys(NO_NAMES, INVALID) == answers, where
        assert [INVALID] * len(NOT_TEXTS) == others, where
    assert 0 == jobs(stage)
    for place in NAMES.values():
        assert not refusal(submitter, place("Ünïcode ✓ 字"))
        assert not refusal(submitter, place("x" * 200))


def test_one_bad_job_keeps_the_good_ones_out(stage: Stage, submitter: Session) -> None:
    assert INVALID == refusal(submitter, *[a_job()] * 3, UNKNOWN_KEYS["group"])

    assert 0 == jobs(stage)


def test_a_job_is_measured_in_bytes(stage: Stage, submitter: Session) -> None:
    def of(character: str, times: int) -> Wire:
        values = [character * 150 for _ in range(times // 150)]
        return in_constraint(values=values)

    long = {
        "ascii": of("x", WIRE_BYTES_MAX + 1_500),
        "three bytes a character": of("字", WIRE_BYTES_MAX // 3 + 1_500),
        "many groups": a_job(*[a_group(constraints=[a_constraint(values=["x" * 190] * 12)])] * 64),
    }
    short = [of("x", 110_000), of("字", 36_000)]
    answers = {what: refusal(submitter, wire) for what, wire in long.items()}

    assert dict.fromkeys(long, INVALID) == answers
    assert 0 == jobs(stage)
    assert 2 == len(submit(submitter, *short))


def test_a_constraint_names_a_thousand_values(submitter: Session) -> None:
    values = [f"v{n}" for n in range(1_001)]

    assert INVALID == refusal(submitter, in_constraint(values=values))
    assert not refusal(submitter, in_constraint(values=values[1:]))


def test_a_number_that_no_program_reads_is_refused(stage: Stage, submitter: Session) -> None:
    text = dumps([a_job(training={"model": "a", "steps": 1})])
    numbers = ("1e400", "-1e400", "1e130000", "1.5", '"1"', "null", "true", str(2**63))
    answers = {}
    for key in ("precedence", "minimum", "cpu_milli", "tasks", "steps"):
        for number in numbers:
            bent = sub(rf'"{key}": \d+', f'"{key}": {number}', text)
            assert bent != text
            answer = submitter.ask("SELECT omega.submit_jobs(%s::jsonb)", [bent])
            answers[key, number] = answer.sqlstate

    assert {INVALID} == set(answers.values()), answers
    assert 0 == jobs(stage)


def test_what_is_refused_costs_no_more_than_what_is_sent(stage: Stage, submitter: Session) -> None:
    """A number of a hundred thousand digits takes ten bytes until it is written as text."""
    digits = "[" + ", ".join(["1e130000"] * 20_000) + "]"
    for text in (
        f'[{{"name": {digits}}}]',
        f'[{{"x": {digits}}}]',
        f"[{digits}]",
    ):
        answer = submitter.ask("SELECT omega.submit_jobs(%s::jsonb)", [text])
        assert INVALID == answer.sqlstate, answer.said


def test_what_is_let_in_is_read_back_as_it_was(
    stage: Stage, submitter: Session, scheduler: Session
) -> None:
    wire = a_job(
        a_group(tasks=2, constraints=[a_constraint(), a_constraint(operator="exists", values=[])]),
        a_group(gpus=2, spread_over="rack", different_machines=True),
        minimum=3,
        training={"model": "a", "steps": 7},
    )
    submit(submitter, wire)

    ((stored,),) = stage.see("SELECT wire FROM omega.job_spec")
    assert wire == stored
    assert 1 == len(lease(scheduler))
