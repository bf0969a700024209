"""Command lines that somebody may type by mistake or on purpose, for every verb that there is.

Verbs, options and their bounds are taken from the verbs' own signatures, so that a new one is tried
by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import typer
from hypothesis import strategies as st
from typer.models import ArgumentInfo, OptionInfo

from omega.cli.main import VERBS

JOB = "{name: j, scheduler: batch, groups: [{tasks: 2, cpu: 1, memory: 1GiB}]}\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1024,2,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\np1,500,512,1,500,,LS,Running,0,10,1\n"
)
FILES: Mapping[str, bytes] = {
    "job.yaml": JOB.encode(),
    "jobs.yaml": f"- {JOB}- {JOB}".encode(),
    "wrong.yaml": b"{name: j, scheduler: batch, groups: [{cpus: 1}]}\n",
    "cell.csv": b"name,cpu_milli,memory_mib,zone\na,4000,8192,z1\nb,4000,8192,z2\n",
    "wrong.csv": b"name,cpu_milli\na,many\n",
    "latin.csv": b"n\xe4me",
    "empty.yaml": b"",
    "empty.csv": b"",
    "trace/nodes.csv": NODES.encode(),
    "trace/pods_default.csv": PODS.encode(),
    "cut/nodes.csv": NODES[:-9].encode(),
    "cut/pods_default.csv.gz": b"\x1f\x8b",
}
PLACES = (
    *FILES,
    "trace",
    "cut",
    "missing",
    "missing/file",
    "",
    ".",
    "-",
    "a\nb.yaml",
    "\udcff.csv",
)

WORDS = (
    *("batch", "service=1", "batch=2,service=1", "batch:sequence=1", "batch=0", "batch=65", "bach"),
    *(
        "synthetic:3",
        "synthetic:0",
        "synthetic:-1",
        "synthetic:\u0661",
        "synthetic:1e9",
        "synthetic:",
    ),
    *("pods=default", "times=replay", "times=", "=fill", "=", ",", ":", "x" * 10, "x" * 5_000),
    *("pending", "parked", "fit", "sequence", "incremental", "all-or-nothing"),
    *("\udcff", "\x1b[2J", "[bold]", "[/]", "%s", "{0}", "O'Neil", "\u202e", "-"),
)
NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "-1",
        "0.5",
        "1e9",
        "1e400",
        "inf",
        "-inf",
        "nan",
        "1e-320",
        "9" * 30,
        "9" * 5_000,
    ),
    *("\u0663", "0x10", "1_000", " 1", "", "one"),
    *("2147483648", "9223372036854775807", "9223372036854775808"),
)
SENSIBLE: Mapping[str, tuple[str, ...]] = {
    "source": ("cell.csv", "trace", "synthetic:3"),
    "spec": ("job.yaml", "jobs.yaml"),
    "kind": ("batch", "service", "ml-gpu"),
    "schedulers": ("batch=1", "batch:fit=1,service=1,ml-gpu=1"),
    "trace": ("trace",),
    "trace_option": ("pods=default", "times=replay"),
    "json_to": ("-", "out.json"),
    "picture_to": ("out.svg",),
    "job_id": ("1", "2"),
}
"""By parameter, what would do; for others, the lowest number or a word."""
ANYTHING = st.text(st.characters(exclude_characters="\0/~", exclude_categories=["Cs"]), max_size=6)


def write_files(folder: Path) -> None:
    """Make the files that the command lines name, anew."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


@dataclass(frozen=True)
class Parameter:
    """One argument or option of a command."""

    name: str
    names: tuple[str, ...]
    """None, for an argument."""
    of: Any
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class Command:
    """A command: the words that lead to it, and what may follow."""

    path: tuple[str, ...]
    parameters: tuple[Parameter, ...]


def commands() -> Iterator[Command]:
    """Yield every command that there is."""
    for verb, where in VERBS.items():
        module = import_module(f"omega.cli.{where.module}")
        if not hasattr(module, "app"):
            yield Command((verb,), tuple(_parameters(module.command)))
            continue
        for info in module.app.registered_commands:
            name = info.name or info.callback.__name__
            yield Command((verb, name), tuple(_parameters(info.callback)))


def _parameters(function: Callable[..., object]) -> Iterator[Parameter]:
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name == "return" or hint is typer.Context:
            continue
        (of, info) = get_args(hint)[:2]
        assert isinstance(info, ArgumentInfo | OptionInfo)
        names = () if isinstance(info, ArgumentInfo) else _names(name, info)
        yield Parameter(name, names, _without_none(of), info.min, info.max)


def _names(name: str, info: OptionInfo) -> tuple[str, ...]:
    # In an Annotated, typer takes the first name for the default, and mends that later.
    said = (info.default, *(info.param_decls or ()))
    names = tuple(one for one in said if isinstance(one, str) and one.startswith("-"))
    return names or (f"--{name.replace('_', '-')}",)


def _without_none(of: Any) -> Any:  # noqa: ANN401 - a type, or a union of some
    if get_origin(of) is UnionType:
        (of,) = (one for one in get_args(of) if one is not NoneType)
    return of


@st.composite
def command_lines(draw: st.DrawFn, command: Command) -> list[str]:
    """Draw a command line for this command: mostly one that could be meant."""
    options = [one for one in command.parameters if one.names]
    arguments = [one for one in command.parameters if not one.names]
    words = list(command.path)
    words.extend(_value(draw, one) for one in arguments if draw(st.integers(0, 9)))
    for option in draw(st.lists(st.sampled_from(options), max_size=4)) if options else ():
        words += _said(draw, option)
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        stray = draw(st.sampled_from(["--", "--fast", "-x", *WORDS]))
        words.insert(draw(st.integers(0, len(words))), stray)
    return words


def _said(draw: st.DrawFn, option: Parameter) -> list[str]:
    name = draw(st.sampled_from(option.names))
    if option.of is bool:
        return [name]
    value = _value(draw, option)
    return [f"{name}={value}"] if name.startswith("--") and draw(st.booleans()) else [name, value]


def _value(draw: st.DrawFn, parameter: Parameter) -> str:
    if draw(st.integers(0, 3)):
        return draw(st.sampled_from(_sensible(parameter)))
    return draw(_values(parameter))


def _sensible(parameter: Parameter) -> tuple[str, ...]:
    if isinstance(parameter.of, type) and issubclass(parameter.of, Enum):
        return tuple(one.value for one in parameter.of)
    if parameter.of in (int, float):
        return SENSIBLE.get(parameter.name, (str(parameter.lowest or 0),))
    return SENSIBLE.get(parameter.name, ("a",))


def _values(parameter: Parameter) -> st.SearchStrategy[str]:
    words = st.sampled_from(WORDS) | ANYTHING
    if isinstance(parameter.of, type) and issubclass(parameter.of, Enum):
        return st.sampled_from([one.value for one in parameter.of]) | words
    if parameter.of not in (int, float):
        return st.sampled_from(PLACES) | words | st.sampled_from(NUMBERS)
    # The highest that is allowed would be allowed to take long.
    lowest, highest = parameter.lowest, parameter.highest
    near = [] if lowest is None else [lowest - 1, lowest, lowest + 1]
    beyond = [] if highest is None else [highest + 1]
    return st.sampled_from([*NUMBERS, *map(str, near), *map(str, beyond)])
