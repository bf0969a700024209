"""What `omega run` asks for is what a file would say, and its errors name options."""

import pytest

from omega.cli.job.run_plan import RunPlan
from omega.errors import BadInput
from omega.model.programs import Program


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", "echo $A | wc", ""],
        ["echo", "\U0001f600", "\u2028", "\x7f", "a\nb\t", "\ufeff", "é", " a ", "x" * 300],
        ["1:30", "yes", "null", "0x1", "~", "- a", "{a: b}", "#", "'", '"', "\\"],
    ],
)
def test_every_word_reaches_the_program_as_it_was_typed(words: list[str]) -> None:
    env = {f"V{number}": word for number, word in enumerate(words) if word}

    plan = RunPlan(env=[f"{name}={word}" for name, word in env.items()])
    program = plan.spec(words).groups[0].program

    assert program == Program(command=tuple(words), env=tuple(sorted(env.items())))


@pytest.mark.parametrize(
    ("plan", "option"),
    [
        (RunPlan(env=["9A=b"]), "--env"),
        (RunPlan(env=["OMEGA_JOB=b"]), "--env"),
        (RunPlan(env=["A=\0"]), "--env"),
        (RunPlan(env=["A"]), "--env"),
        (RunPlan(image=""), "--image"),
        (RunPlan(working_dir="srv"), "--working-dir"),
        (RunPlan(timeout="0s"), "--timeout"),
        (RunPlan(cpu="0"), "--cpu"),
        (RunPlan(cpu="much"), "--cpu"),
        (RunPlan(constraint=["zone near a"]), "--constraint"),
        (RunPlan(prefer=["zone near a"]), "--prefer"),
        (RunPlan(prefer=["zone in a"], patience="soon"), "--patience"),
        (RunPlan(patience="5m"), "--patience"),
        (RunPlan(tasks=10**6), "--tasks"),
    ],
)
def test_an_error_names_the_option(plan: RunPlan, option: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan.spec(["sh"])

    assert option == caught.value.field


def test_a_word_that_no_program_can_be_given_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        RunPlan().spec(["a", "b\0"])

    assert "COMMAND" == caught.value.field


def test_a_job_prefers_what_is_said_and_waits_for_it() -> None:
    group = RunPlan(prefer=["zone in a|b", "ssd exists"], patience="10m").spec(["sh"]).groups[0]

    assert ["zone in a|b", "ssd exists"] == [str(it.constraint) for it in group.preferences]
    assert (1, 600_000) == (group.preferences[0].weight, group.patience_ms)
