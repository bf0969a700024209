"""Values out of range, of every command: one sentence that names the option, and exit code 2."""

from enum import Enum

import pytest

from omega.terminal.program import usage_sentence
from tests.fixtures.command_line import Omega
from tests.postgres.hostile_words import Command, Parameter, commands


def is_choice(parameter: Parameter) -> bool:
    """Return whether a parameter is one of some words."""
    return isinstance(parameter.of, type) and issubclass(parameter.of, Enum)


COMMANDS = list(commands())
RANGED = [
    pytest.param(command.path, parameter, id=f"{' '.join(command.path)} {parameter.name}")
    for command in COMMANDS
    for parameter in command.parameters
    if parameter.of in (int, float) or is_choice(parameter)
]


def wrong(parameter: Parameter) -> list[str]:
    """Return values that the parameter does not take."""
    beyond = [
        *([] if parameter.lowest is None else [f"{parameter.lowest - 1:.0f}"]),
        *([] if parameter.highest is None else [f"{parameter.highest * 2 + 1:.0f}"]),
    ]
    return ["many", *beyond]


@pytest.mark.parametrize(("path", "parameter"), RANGED)
def test_a_value_that_will_not_do_is_one_sentence_that_names_its_option(
    omega: Omega, path: tuple[str, ...], parameter: Parameter
) -> None:
    for value in wrong(parameter):
        said = [f"{parameter.names[0]}={value}"] if parameter.names else [value]
        ran = omega(*path, *said)

        assert (2, "") == (ran.code, ran.out), ran.err
        assert 1 == ran.err.count("\n"), ran.err
        name = parameter.names[0] if parameter.names else ""
        assert ran.err.startswith(f"omega: field {name}"), ran.err
        assert ran.err.endswith(f"; see omega {' '.join(path)} -h\n"), ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_an_option_that_there_is_not_is_one_sentence(omega: Omega, command: Command) -> None:
    ran = omega(*command.path, "--nonsense")

    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n")), ran.err
    assert ran.err.startswith("omega: ")
    assert "--nonsense" in ran.err


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "Invalid value for '[N]': Input should be greater than or equal to 1",
            "field N: it should be greater than or equal to 1",
        ),
        (
            "Invalid value for '--parts' / '-p': Value error, 'x' is not one of 'a', 'b'.",
            "field --parts / -p: 'x' is not one of 'a', 'b'",
        ),
        ("Invalid value: it is empty", "it is empty"),
        ("Invalid value for '--a': two\nlines: Input should", "field --a: two\nlines: it should"),
        ("Missing argument 'JOB'.", "missing argument 'JOB'"),
        ("No such option: -1", "no such option: -1"),
        ("", ""),
    ],
)
def test_what_typer_says_is_said_in_our_form(message: str, sentence: str) -> None:
    assert sentence == usage_sentence(message)
