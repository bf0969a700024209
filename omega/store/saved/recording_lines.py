"""The lines of a recording: which there are, and what each may hold.

Goal     One declaration of the file's form, which writes it, reads it and refuses anything else.
Promise  A line that is not of this form is an error that names its field. Numbers are within
         bounds before anything is made of them.
Source   docs/decisions/0057-replay.md; omega.store.saved.lines; JSON lines; pydantic.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter

from omega.limits import LIMITS
from omega.model.jobs import NEVER_YIELDS, PRECEDENCE_MAX, PRECEDENCE_MIN
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.quotas import BUDGETS, UNLIMITED
from omega.store.saved.lines import (
    AmountsByKind,
    Count,
    Line,
    Long,
    MachineNumber,
    Moment,
    Name,
    Task,
    Whole,
)

FORMAT: Final = "omega recording"
VERSION: Final = 1
CLAIMS_MAX: Final = LIMITS.claims_per_transaction_max
SHAPES_MAX: Final = 100 * CLAIMS_MAX
QUOTAS_PER_JOB_MAX: Final = 2
"""Its tenant's, and that of its kind of scheduler."""
JOBS_MAX: Final = LIMITS.jobs_per_transaction_max

Wide = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Narrow = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""What a claim names, which need not exist: any number of 64 or of 32 bits."""
Precedence = Annotated[int, Field(ge=PRECEDENCE_MIN, le=PRECEDENCE_MAX)]
Balance = Annotated[int, Field(ge=-(2**60), le=UNLIMITED)]


class Part(BaseModel, extra="forbid", strict=True, frozen=True):
    """A part of a line; lists of one part have an entry for each of the same things."""


class AlternatesPart(Part):
    """Other machines for claims, by the position of the claim."""

    claim: Annotated[list[Count], Field(max_length=CLAIMS_MAX)]
    machine: list[Narrow]
    seen: list[Wide]
    shape: list[Count]


class EvictionsPart(Part):
    """Tasks that claims evict, by the position of the claim."""

    claim: Annotated[list[Count], Field(max_length=CLAIMS_MAX)]
    job: list[Wide]
    task: list[Narrow]


class RowsPart(Part):
    """Machines as they were, ascending by id."""

    id: list[MachineNumber]
    capacity: AmountsByKind
    used: AmountsByKind
    sequence: list[Long]
    revision: list[Long]
    state: list[Annotated[int, Field(ge=0, le=max(MachineState))]]


class VictimsPart(Part):
    """What ran of the jobs that evictions name, ascending by job and task, and these jobs."""

    job: list[Wide]
    task: list[Task]
    machine: list[MachineNumber]
    amounts: AmountsByKind
    about: list[Wide]
    yields_to: list[Annotated[int, Field(ge=PRECEDENCE_MIN, le=NEVER_YIELDS)]]
    minimum: list[Count]
    placed: list[Count]
    own: Annotated[list[list[bool]], Field(max_length=JOBS_MAX)]


class QuotasPart(Part):
    """What was left of quotas, which jobs draw on which of them, and what runs of these jobs."""

    left: list[Annotated[list[Balance], Field(min_length=BUDGETS, max_length=BUDGETS)]]
    drawn_by: list[tuple[Wide, Annotated[list[Count], Field(max_length=QUOTAS_PER_JOB_MAX)]],]
    running: list[tuple[Wide, Count]]


class AgainstPart(Part):
    """What the transaction was judged against: lists of jobs, of claims, and the rest."""

    held: list[bool]
    minimum: list[Count]
    placed: list[Count]
    precedence: list[Precedence]
    unplaced: list[bool]
    rows: RowsPart
    victims: VictimsPart | None
    quotas: QuotasPart | None


class RecordingLine(Line):
    """The first line: what the file is, and whose transactions it has."""

    line: Literal["recording"] = "recording"
    format: Literal["omega recording"] = "omega recording"
    version: Annotated[int, Field(ge=1)] = VERSION
    omega: Annotated[str, Field(max_length=LIMITS.name_length_max)]
    kind: Name
    replica: Name
    began_ms: Moment


class CommitLine(Line):
    """A transaction, what it was judged against, and its outcome."""

    line: Literal["commit"] = "commit"
    at_ms: Moment
    id: Annotated[str, Field(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    rule: Literal["fit", "sequence"]
    jobs: Annotated[list[tuple[Wide, Count, Count]], Field(max_length=JOBS_MAX)]
    """Each job, how many grants it needs, and where its claims end."""
    task: Annotated[list[Narrow], Field(max_length=CLAIMS_MAX)]
    machine: list[Narrow]
    seen: list[Wide]
    shape: list[Count]
    shape_rows: Annotated[int, Field(ge=0, le=SHAPES_MAX)]
    shapes: AmountsByKind
    alternates: AlternatesPart | None
    evictions: EvictionsPart | None
    verdicts: list[Annotated[int, Field(ge=0, le=max(Verdict))]]
    landed: list[Narrow]
    evicted: list[tuple[Wide, Narrow]]
    against: AgainstPart | None


class RecordingEndLine(Line):
    """The last line: a file without it was cut off, or is still written."""

    line: Literal["end"] = "end"
    commits: Whole


AnyRecordingLine = RecordingLine | CommitLine | RecordingEndLine
RECORDING_LINE: Final[TypeAdapter[AnyRecordingLine]] = TypeAdapter(
    Annotated[AnyRecordingLine, Field(discriminator="line")]
)
