"""A job that is submitted together with the places that a plan gave it, or not at all.

Goal     Commit exactly what was planned.
Promise  Either the job is there with every claim granted and nothing evicted but what was planned,
         or nothing has changed, and the verdicts say why.
Source   docs/decisions/0053-plans-before-submission.md.
"""

from dataclasses import dataclass
from uuid import UUID

from omega.model.arrays import Verdicts
from omega.model.claims import Claims
from omega.model.jobs import JobSpec
from omega.model.machines import MachineRows

HOLDER = "plan"
"""Who holds the job's lease while its plan is committed, and commits it."""


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """A job and its places."""

    id: UUID
    """Of the transaction: committing it again changes nothing."""
    spec: JobSpec
    claims: Claims
    """Judged by the sequence rule, all or nothing."""
    evicted: tuple[tuple[int, int], ...]
    """Job and task of all that may be evicted, the rest of broken gangs included."""


@dataclass(frozen=True, eq=False)
class PlannedOutcome:
    """What came of it."""

    job: int | None
    """The job's number; None if nothing was changed."""
    verdicts: Verdicts
    """One for each claim."""
    evicted: tuple[tuple[int, int], ...]
    """What was evicted, or would have been, ascending."""
    fresh: MachineRows
    """The machines of the claims, as they are now."""
