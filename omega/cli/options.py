"""Options that several verbs have, declared once.

Goal     Let an option mean the same, and be explained the same, wherever it appears.
Promise  A value that cannot be read is BadInput that names the option, before anything is done.
Source   typer, whose options are annotations; docs/decisions/0009-errors-and-retries.md.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from omega.cell.partition import PARTS_MAX
from omega.config import SPEEDUP_MAX, SPEEDUP_MIN
from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.claims import ConflictRule, Granularity
from omega.model.names import is_printable_name
from omega.sync.choice import Sync
from omega.terminal.options import number_option, read_pairs
from omega.terminal.process_log import LogFormat, LogLevel

SCHEDULERS_MAX: Final = 64
"""Schedulers that one command starts, each a process with connections of its own."""
DECISION_S_MAX: Final = 3_600.0
"""Seconds that one decision may be made to take."""


def read_trace_options(pairs: Sequence[str]) -> dict[str, str]:
    """Read the `NAME=VALUE` pairs of `--trace-option`. Raises BadInput for other texts."""
    read = read_pairs(pairs, option="--trace-option")
    return {name.replace("-", "_"): value for name, value in read}


def process_name(value: str) -> str:
    """Return a process's name; raise typer.BadParameter if it is empty, too long or unprintable."""
    if not value.strip() or len(value) > LIMITS.name_length_max or not is_printable_name(value):
        raise typer.BadParameter(f"it is not 1 to {LIMITS.name_length_max} printable characters")
    return value


EndWithParent = Annotated[
    bool, typer.Option("--end-with-parent", hidden=True, help="End when standard input does.")
]
LogLevelOption = Annotated[
    LogLevel,
    typer.Option(
        "--log-level",
        help="What is logged on standard error: warnings; info, with a summary each minute; debug,"
        " with each transaction.",
    ),
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", help="auto: text on a terminal, JSON lines otherwise."),
]
Rule = Annotated[
    ConflictRule | None,
    typer.Option(help="When a claim conflicts; the scheduler's choice if not given."),
]
Unit = Annotated[
    Granularity | None,
    typer.Option(
        "--granularity",
        help="What a refused claim does to its siblings; the scheduler's choice if not given.",
    ),
]
SyncBy = Annotated[
    Sync,
    typer.Option(
        "--sync",
        help="What is read before each attempt: what changed, all, or what changed in the part of"
        " the cell whose turn it is.",
    ),
]
TurnOf = Annotated[
    str | None,
    typer.Option(
        "--turn",
        metavar="I/N|auto",
        help="Of --sync partitioned: this is scheduler I of N. auto, the default: replicas with the"
        " same --gap and --parts share the turns out among themselves. 1/1: it reads everything"
        " once a gap, alone.",
    ),
]
Gap = Annotated[
    float,
    number_option(
        lowest=0.001,
        highest=DECISION_S_MAX,
        metavar="S",
        help="Of --sync partitioned: in how many seconds every part has its turn.",
    ),
]
PartsOf = Annotated[
    int | None,
    typer.Option(
        "--parts",
        min=1,
        max=PARTS_MAX,
        metavar="P",
        help="Of --sync partitioned: into how many parts the cell is divided, a multiple of the N"
        " of --turn; N if not given. With --turn auto it is rounded up to a multiple of N, or down"
        f" where that would be more than {PARTS_MAX:,}.",
    ),
]
Speedup = Annotated[
    float | None,
    number_option(
        lowest=SPEEDUP_MIN,
        highest=SPEEDUP_MAX,
        metavar="X",
        help="Seconds of a task's life in one second; 1 if not given.",
    ),
]
TraceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--trace-option",
        metavar="NAME=VALUE",
        help="What the trace's loader is to do; can be said again.",
    ),
]
TJob = Annotated[
    float,
    number_option(
        lowest=0,
        highest=DECISION_S_MAX,
        metavar="S",
        help="Seconds added to each decision on a job.",
    ),
]
TTask = Annotated[
    float,
    number_option(
        lowest=0,
        highest=DECISION_S_MAX,
        metavar="S",
        help="Seconds added to it for each of the job's tasks.",
    ),
]


@dataclass(frozen=True)
class ReplicaSet:
    """So many replicas of one kind of scheduler, with one conflict rule."""

    kind: str
    replicas: int
    rule: ConflictRule | None = None

    def __str__(self) -> str:
        rule = f":{self.rule.value}" if self.rule is not None else ""
        return f"{self.kind}{rule}={self.replicas}"


def read_turn(text: str | None, sync: Sync, parts: int | None = None) -> tuple[int, int] | None:
    """Read `2/4` as (1, 4), the turn of the second of four schedulers; `auto` or None as None.

    Raises BadInput for any other text, for a turn or parts without `--sync partitioned`, and for
    parts that cannot be divided evenly among the schedulers.
    """
    refuse_undivided_parts(sync, parts)
    if text is not None and sync is not Sync.PARTITIONED:
        raise BadInput("only --sync partitioned goes by turns", field="--turn")
    if text is None or text == "auto":
        return None
    number, slash, of = text.partition("/")
    digits = len(str(PARTS_MAX))
    if not (slash and number.isdecimal() and of.isdecimal() and len(of) <= digits):
        raise BadInput(f"{text!r} does not read as I/N, such as 2/4, or auto", field="--turn")
    if not 1 <= int(of) <= PARTS_MAX:
        raise BadInput(
            f"no more than {PARTS_MAX} share out a cell, and no less than one", field="--turn"
        )
    if len(number) > digits or not 1 <= int(number) <= int(of):
        raise BadInput(
            f"of {int(of)} there are the first to the last, not {text!r}", field="--turn"
        )
    refuse_uneven_parts(parts, int(of))
    return int(number) - 1, int(of)


def refuse_undivided_parts(sync: Sync, parts: int | None) -> None:
    """Raise BadInput for a number of parts where the cell is not divided."""
    if parts is not None and sync is not Sync.PARTITIONED:
        raise BadInput("only --sync partitioned divides the cell", field="--parts")


def refuse_uneven_parts(parts: int | None, schedulers: int) -> None:
    """Raise BadInput for parts that so many schedulers cannot share out evenly."""
    if parts is not None and parts % schedulers:
        raise BadInput(
            f"{schedulers} schedulers cannot share out {parts} parts evenly: give a multiple of"
            f" {schedulers}",
            field="--parts",
        )


def read_replica_sets(text: str, *, option: str = "--schedulers") -> tuple[ReplicaSet, ...]:
    """Read `batch=2,service=1,batch:sequence=2`.

    Raises BadInput for any other form, for an unknown rule, and for no replica or more than
    SCHEDULERS_MAX replicas.
    """
    replica_sets = tuple(
        _read_replica_set(part.strip(), option) for part in text.split(",") if part.strip()
    )
    replicas = sum(replica_set.replicas for replica_set in replica_sets)
    if replicas > SCHEDULERS_MAX:
        raise BadInput(f"more than {SCHEDULERS_MAX} schedulers are not started", field=option)
    if not replicas:
        raise BadInput("at least one scheduler is needed, as in batch=2,service=1", field=option)
    return replica_sets


def replicas_of(replica_sets: tuple[ReplicaSet, ...]) -> Iterator[tuple[ReplicaSet, str]]:
    """Yield each replica as (its set, its name); the names within a kind are distinct."""
    numbers: Counter[tuple[str, str]] = Counter()
    for replica_set in replica_sets:
        prefix = "" if replica_set.rule is None else replica_set.rule.value[:3]
        for _ in range(replica_set.replicas):
            yield replica_set, f"{prefix}{numbers[replica_set.kind, prefix]}"
            numbers[replica_set.kind, prefix] += 1


def _read_replica_set(part: str, option: str) -> ReplicaSet:
    name, equals, number = part.partition("=")
    kind, colon, rule = name.strip().partition(":")
    if not kind or (equals and not number.strip().isdecimal()):
        raise BadInput(
            f"{part!r} does not read as KIND=REPLICAS or KIND:RULE=REPLICAS", field=option
        )
    rules = {each.value: each for each in ConflictRule}
    if colon and rule not in rules:
        raise BadInput(f"{part!r} names no rule; the rules are {', '.join(rules)}", field=option)
    # The length is checked first: Python refuses to read a number of thousands of digits.
    replicas = SCHEDULERS_MAX + 1 if len(number.strip()) > 9 else int(number or 1)  # noqa: PLR2004
    return ReplicaSet(kind, replicas, rules.get(rule))
