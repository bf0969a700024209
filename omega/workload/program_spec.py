"""Programs as users write them, in the task groups of a job's file.

Goal     Turn what a group says of its program into one; say where it says too little or too much.
Promise  The result is a Program, None, or one BadInput with file, line and field.
Source   docs/guide/jobs.md; docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.programs import (
    PORT_MAX,
    RESERVED,
    SIGNALS,
    Check,
    Program,
    Restart,
    is_http_path,
    is_variable,
    shell_line,
)
from omega.workload.quantities import duration_ms, shown
from omega.workload.spec_parts import Name, Part, at_most, readable
from omega.workload.yaml_lines import Steps

Reject = Callable[[Steps, str], BadInput]
"""Returns the error for what stands at some steps."""

_STARTS: Final = ("command", "run", "image")
"""The fields that say what runs."""
_CHECKS: Final = ("http", "tcp", "command", "run")
"""The fields that say how a program is checked."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character, which no program can be given")
    return text


def _line(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return _without_nul(text)


def _words(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("it must be a list of words; to have a shell read a line, write `run`")
    return value


def _path(text: str) -> str:
    return readable(text, LIMITS.path_length_max)


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{shown(text)} is not an absolute path; it must begin with /")
    return text


def _time(value: object) -> int:
    time_ms = duration_ms(value)
    if time_ms is None:
        raise ValueError("it has no value")
    return time_ms


def _time_above_0(value: object) -> int:
    if (time_ms := _time(value)) == 0:
        raise ValueError("it must be above 0")
    return time_ms


def _grace(value: object) -> int:
    if (time_ms := _time(value)) > LIMITS.stop_grace_ms_max:
        raise ValueError(
            f"{shown(value)} is more than {LIMITS.stop_grace_ms_max // 60_000} minutes"
        )
    return time_ms


def _check_time(value: object) -> int:
    if (time_ms := _time_above_0(value)) > LIMITS.check_timeout_ms_max:
        raise ValueError(
            f"{shown(value)} is more than {LIMITS.check_timeout_ms_max // 60_000} minutes"
        )
    return time_ms


def _http_path(text: str) -> str:
    if not is_http_path(text):
        raise ValueError(f"{shown(text)} is no path such as /health, in ASCII and without spaces")
    return text


def _signal(value: object) -> str:
    name = value.removeprefix("SIG") if isinstance(value, str) else None
    if name not in SIGNALS:
        raise ValueError(f"{shown(value)} is not one of the signals {', '.join(SIGNALS)}")
    return name


Word = Annotated[str, AfterValidator(_without_nul)]
Command = Annotated[
    list[Word],
    Field(min_length=1),
    BeforeValidator(_words),
    at_most(LIMITS.command_words_max),
]
FilePath = Annotated[str, AfterValidator(_path)]


class StopSpec(Part):
    """How a program is asked to stop."""

    signal: Annotated[str, BeforeValidator(_signal)] = Program.stop_signal
    grace: Annotated[int, BeforeValidator(_grace)] = Program.stop_grace_ms


class RestartSpec(Part):
    """How often a program that failed is started again."""

    attempts: Annotated[int, Field(ge=0, le=LIMITS.restarts_max)]
    within: Annotated[int, BeforeValidator(_time_above_0)] = Restart.within_ms
    delay: Annotated[int, BeforeValidator(_time)] = Restart.delay_ms


class CheckSpec(Part):
    """How to see that a program does its work. Empty texts stand for what is not said."""

    http: Annotated[str, AfterValidator(_http_path)] = ""
    port: Annotated[int, Field(ge=1, le=PORT_MAX)] | None = None
    tcp: Annotated[int, Field(ge=1, le=PORT_MAX)] | None = None
    command: Command = Field(default_factory=list)
    run: Annotated[str, AfterValidator(_line)] = ""
    interval: Annotated[int, BeforeValidator(_time_above_0)] = Check.interval_ms
    timeout: Annotated[int, BeforeValidator(_check_time)] = Check.timeout_ms
    failures: Annotated[int, Field(ge=1, le=LIMITS.check_failures_max)] = Check.failures


class ProgramFields(Part):
    """What a task group says of its program. Empty texts stand for what is not said."""

    command: Command = Field(default_factory=list)
    run: Annotated[str, AfterValidator(_line)] = ""
    image: Name = ""
    env: Annotated[dict[str, Word], at_most(LIMITS.variables_max)] = Field(default_factory=dict)
    env_file: FilePath = ""
    user: Name = ""
    working_dir: Annotated[FilePath, AfterValidator(_absolute)] = ""
    timeout: Annotated[int, BeforeValidator(_time_above_0)] | None = None
    stop: StopSpec = StopSpec()
    restart: RestartSpec = RestartSpec(attempts=Restart.attempts)
    check: CheckSpec | None = None


PROGRAM_PARTS: Final[dict[str, type[Part]]] = {
    "stop": StopSpec,
    "restart": RestartSpec,
    "check": CheckSpec,
}
"""The models of the fields that hold further fields."""


def program_of(group: ProgramFields, steps: Steps, reject: Reject) -> Program | None:
    """Return the program of the group that stands at `steps`. Raises BadInput."""
    said = [name for name in ProgramFields.model_fields if name in group.model_fields_set]
    if not said:
        return None
    if not group.model_fields_set & set(_STARTS):
        sentence = "the command is missing: give command, run or image, or leave this out"
        raise reject((*steps, said[0]), sentence)
    if group.command and group.run:
        raise reject((*steps, "run"), "there is a command too; leave one of them out")
    _refuse_nameless(group.command, steps, reject)
    for name in group.env:
        if name.startswith(RESERVED):
            sentence = f"variables that begin with {RESERVED} are reserved for the agent"
            raise reject((*steps, "env", name), sentence)
        if not is_variable(name):
            sentence = "a variable's name is letters, digits and _, and begins with no digit"
            raise reject((*steps, "env", name), sentence)
    return Program(
        command=shell_line(group.run) if group.run else tuple(group.command),
        env=tuple(sorted(group.env.items())),
        env_file=group.env_file or None,
        image=group.image or None,
        user=group.user or None,
        working_dir=group.working_dir or None,
        timeout_ms=group.timeout,
        stop_signal=group.stop.signal,
        stop_grace_ms=group.stop.grace,
        restart=Restart(
            attempts=group.restart.attempts,
            within_ms=group.restart.within,
            delay_ms=group.restart.delay,
        ),
        check=None if group.check is None else _check_of(group.check, (*steps, "check"), reject),
    )


def _check_of(check: CheckSpec, steps: Steps, reject: Reject) -> Check:
    """Return the check that stands at `steps`. Raises BadInput."""
    said = [name for name in _CHECKS if name in check.model_fields_set]
    if not said:
        raise reject(steps, f"the check says nothing: give {', '.join(_CHECKS)}")
    if len(said) > 1:
        raise reject((*steps, said[1]), f"there is {said[0]} too; leave one of them out")
    if check.http and check.port is None:
        raise reject((*steps, "http"), "the port is missing: give port, too")
    if check.port is not None and not check.http:
        raise reject((*steps, "port"), f"only http takes a port; there is {said[0]}")
    _refuse_nameless(check.command, steps, reject)
    return Check(
        port=check.tcp if check.port is None else check.port,
        path=check.http or None,
        command=shell_line(check.run) if check.run else tuple(check.command),
        interval_ms=check.interval,
        timeout_ms=check.timeout,
        failures=check.failures,
    )


def _refuse_nameless(command: Sequence[str], steps: Steps, reject: Reject) -> None:
    if command and not command[0]:
        raise reject((*steps, "command", 0), "it must not be empty, because it names the program")
