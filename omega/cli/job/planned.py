"""`--plan FILE` of the verbs that submit: what `omega plan --json FILE` wrote, and nothing else.

Goal     Let an operator look at a plan, and then have exactly that.
Promise  The job gets the planned places in one transaction, or nothing is submitted and a sentence
         says what has changed since.
Source   docs/decisions/0053-plans-before-submission.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from omega.errors import OmegaError
from omega.reports.plan_file import what_changed
from omega.store.planned import PlannedJob
from omega.store.protocols import OwnerStore

CHANGES_SHOWN: Final = 5

PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Or what omega plan --json FILE wrote: exactly that, or nothing.",
    ),
]


def commit_plan(store: OwnerStore, planned: PlannedJob, names: Mapping[int, str]) -> int:
    """Commit a plan as it is; return the job. Raises OmegaError that says what has changed."""
    outcome = store.submit_planned(planned)
    if outcome.job is None:
        changed = what_changed(planned, outcome, names)
        more = (
            f"; and {len(changed) - CHANGES_SHOWN:,} more" if len(changed) > CHANGES_SHOWN else ""
        )
        raise OmegaError(
            f"nothing was submitted, for the cell is not as it was planned:"
            f" {'; '.join(changed[:CHANGES_SHOWN])}{more}"
        )
    return outcome.job
