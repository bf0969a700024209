"""Settings of a scheduler's own, on the command line."""

import pytest

from omega.cli.scheduler.commands import its_own
from omega.errors import BadInput
from tests.fixtures.command_line import Omega


def test_settings_are_read_as_they_are_written() -> None:
    said = ["round=360", "x=a=b"]

    assert {"round": "360", "x": "a=b"} == its_own(said)
    assert {} == its_own([])


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (["round"], "'round' does not read as NAME=VALUE"),
        (["round="], "'round=' does not read as NAME=VALUE"),
        (["=360"], "'=360' does not read as NAME=VALUE"),
        ([""], "'' does not read as NAME=VALUE"),
        (["round=1", "round=1"], "round is told twice"),
        (["round=1", "round"], "'round' does not read as NAME=VALUE"),
    ],
)
def test_what_is_no_setting_is_refused(said: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        its_own(said)

    assert "--set" == refused.value.field


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--turn", "1/4", "--parts", "6"], "--parts: 4 schedulers cannot share out 6 parts"),
        (["--turn", "1/4", "--parts", "0"], "field --parts: it should"),
        (["--turn", "1/4", "--parts", "1028"], "field --parts: it should"),
        (["--turn", "1/2", "--parts", "many"], "field --parts: it should"),
        (["--turn", "1/4", "--gap", "0"], "field --gap: it should be greater"),
        (["--turn", "1/4", "--gap", "nan"], "field --gap: it should be a finite number"),
        (["--turn", "5/4"], "--turn: of 4 there are the first to the last"),
    ],
)
def test_bad_turns_are_told_before_anything_is_opened(
    omega: Omega, arguments: list[str], says: str
) -> None:
    ran = omega("scheduler", "run", "batch", "--sync", "partitioned", *arguments)

    assert (2, "") == (ran.code, ran.out)
    assert says in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["batch", "--set", "round=360"], "no setting 'round' (known: alternates, preempts)"),
        (["ml-gpu", "--set", "round"], "'round' does not read as NAME=VALUE"),
        (["ml-gpu", "--set", "round=1", "--set", "round=2"], "round is told twice"),
        (["ml-gpu", "--set", "rund=1"], "did you mean 'round'?"),
        (["ml-gpu", "--set", "policy=fifo"], "their length is missing"),
        (["ml-gpu", "--set", "round=0.001"], "a round of 0.001 s will not do"),
        (
            ["ml-gpu", "--set", "round=1", "--granularity", "incremental"],
            "--granularity: rounds place each gang whole",
        ),
        (["ml-gpu", "--set", "round=1", "--set", "policy=fife"], "did you mean 'fifo'?"),
    ],
)
def test_bad_settings_are_told_before_anything_is_opened(
    omega: Omega, arguments: list[str], says: str
) -> None:
    ran = omega("scheduler", "run", *arguments)

    assert (2, "") == (ran.code, ran.out)
    assert says in " ".join(ran.err.split())
