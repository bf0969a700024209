"""The lines of a file that holds a saved cell: which there are, and what each may hold.

Goal     One declaration of the file's form, which writes it, reads it and refuses anything else.
Promise  A line that is not of this form is an error that names its field. Numbers are within
         bounds and texts within lengths before anything is made of them.
Source   docs/decisions/0055-snapshots-and-what-if.md; JSON lines; pydantic.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter

from omega.limits import LIMITS
from omega.model.jobs import PRECEDENCE_GAP_MAX
from omega.model.machines import MachineState
from omega.model.quotas import UNLIMITED, Budget
from omega.model.resources import COLUMNS
from omega.store.saved.cell import PARTS

FORMAT: Final = "omega snapshot"
VERSION: Final = 1
ROWS_A_LINE: Final = 1_000
"""Machines or tasks of one line."""

Whole = Annotated[int, Field(ge=0, lt=2**53)]
"""A count that every reader of JSON holds exactly."""
Long = Annotated[int, Field(ge=0, lt=2**63)]
"""A number of 64 bits in the database."""
Moment = Annotated[int, Field(ge=0, lt=2**43)]
"""Milliseconds since the epoch, 278 years at most: a database has any time that far from now."""
PAST_MS_MAX: Final = 366 * 24 * 60 * 60 * 1_000
"""How long the time may be that is saved: a year."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
"""A number of 32 bits in the database."""
Number = Annotated[int, Field(ge=1, lt=2**53)]
MachineNumber = Annotated[int, Field(ge=1, lt=2**31)]
Amount = Annotated[int, Field(ge=0, le=LIMITS.amount_max)]
Name = Annotated[str, Field(min_length=1, max_length=LIMITS.name_length_max)]
MachineName = Annotated[str, Field(min_length=1, max_length=2 * LIMITS.name_length_max)]
Task = Annotated[int, Field(ge=0, lt=LIMITS.tasks_per_job_max)]
Range = tuple[Task, Annotated[int, Field(ge=1, le=LIMITS.tasks_per_job_max)]]
KindName = Annotated[str, Field(pattern=f"^({'|'.join(COLUMNS)})$")]
BudgetName = Annotated[str, Field(pattern=f"^({'|'.join(one.column for one in Budget)})$")]
AmountsByKind = dict[KindName, list[Amount]]
"""A column for each kind that is not zero everywhere."""


class Line(BaseModel, extra="forbid", strict=True, frozen=True):
    """What all lines have: `line` says which it is."""

    line: str

    def text(self) -> bytes:
        """Return the line, with its end."""
        return self.model_dump_json(exclude_none=False).encode() + b"\n"


class CellLine(Line):
    """The first line: what the file is, and the cell's own settings."""

    line: Literal["cell"] = "cell"
    format: Literal["omega snapshot"] = "omega snapshot"
    version: Annotated[int, Field(ge=1)] = VERSION
    omega: Annotated[str, Field(max_length=LIMITS.name_length_max)]
    taken_ms: Moment
    begin_ms: Moment
    precedence_gap: Annotated[int, Field(ge=1, le=PRECEDENCE_GAP_MAX)]


class MachinesLine(Line):
    """Some machines, ascending by id; each list has an entry for each."""

    line: Literal["machines"] = "machines"
    id: list[MachineNumber]
    name: list[MachineName]
    state: list[Annotated[int, Field(ge=0, le=max(MachineState))]]
    sequence: list[Long]
    revision: list[Long]
    address: list[Annotated[str, Field(max_length=LIMITS.address_length_max)] | None]
    notice_ends_ms: list[Moment | None]
    capacity: AmountsByKind
    notice: AmountsByKind
    attributes: dict[Name, list[Name | None]]


class QuotaLine(Line):
    """A quota."""

    line: Literal["quota"] = "quota"
    scope: Literal["tenant", "scheduler"]
    name: Name
    limits: dict[BudgetName, Annotated[int, Field(ge=0, lt=UNLIMITED)]]


class TenantLine(Line):
    """The weight and the parent of a tenant; tenants are ascending by name."""

    line: Literal["tenant"] = "tenant"
    name: Name
    weight: Annotated[int, Field(ge=1, le=LIMITS.tenant_weight_max)]
    parent: Name | None


class JobLine(Line):
    """A job; the fields are those of `SavedJob`, and `spec` is in the wire form."""

    line: Literal["job"] = "job"
    id: Number
    spec: dict[str, Any]
    state: Literal["pending", "planning", "parked", "running", "succeeded", "failed", "cancelled"]
    unplaced: Annotated[list[Range], Field(max_length=LIMITS.tasks_per_job_max)]
    failed: Count
    attempts: Count
    fruitless: Count
    park_reason: Annotated[str, Field(max_length=40)] | None
    park_detail: Annotated[str, Field(max_length=LIMITS.detail_length_max)] | None
    is_parked_for_now: bool
    submitted_ms: Moment
    first_leased_ms: Moment | None
    not_before_ms: Moment
    finished_ms: Moment | None
    evicted_by: Number | None
    evicted_ms: Moment | None
    precedence_set_ms: Moment | None
    parent: Number | None
    progress: tuple[Long, Long] | None
    phases: Annotated[list[tuple[Long, Long]], Field(max_length=LIMITS.phases_per_job_max)]


class RunningLine(Line):
    """Some running tasks, ascending by job and task; each list has an entry for each."""

    line: Literal["running"] = "running"
    job: list[Number]
    task: list[Task]
    machine: list[MachineNumber]
    started_ms: list[Moment]
    amounts: AmountsByKind


class PastLine(Line):
    """Some tasks that are over, in order of their end; each list has an entry for each."""

    line: Literal["past"] = "past"
    job: list[Number]
    task: list[Task]
    machine: list[MachineNumber]
    started_ms: list[Moment]
    ended_ms: list[Moment]
    cause: list[Annotated[str, Field(min_length=1, max_length=40)]]


class SchedulerLine(Line):
    """What a replica did under one rule; the fields are those of `SavedScheduler`."""

    line: Literal["scheduler"] = "scheduler"
    kind: Name
    replica: Name
    rule: Literal["fit", "sequence"]
    transactions: Whole
    job_transactions: Whole
    job_transactions_conflicted: Whole
    claims: Whole
    claims_refused: Whole
    last_ms: Moment
    parts: Annotated[list[tuple[Whole, Whole]], Field(max_length=PARTS)] = []


class ProcessLine(Line):
    """The last report of a process."""

    line: Literal["process"] = "process"
    kind: Name
    replica: Name
    seen_ms_ago: Whole
    facts: dict[str, Any]


class EndLine(Line):
    """The last line: a file without it was cut off."""

    line: Literal["end"] = "end"
    lines: Whole
    """How many there are before this one."""


AnyLine = (
    CellLine
    | MachinesLine
    | QuotaLine
    | TenantLine
    | JobLine
    | RunningLine
    | PastLine
    | SchedulerLine
    | ProcessLine
    | EndLine
)
LINE: Final[TypeAdapter[AnyLine]] = TypeAdapter(Annotated[AnyLine, Field(discriminator="line")])
ORDER: Final = (
    *("cell", "machines", "quota", "tenant", "job", "running", "past", "scheduler", "process"),
    "end",
)
"""A line may name only what stands before it, so that it is checked as it is read."""
