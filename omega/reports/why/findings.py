"""A finding: one reason, what it rests on, and what the user can do.

Goal     The form in which every part of `why` answers.
Promise  The evidence is a sentence with figures. The next step is something that can be typed, or
         that it is enough to wait.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from dataclasses import dataclass

from omega.reports.why.reasons import Reason


@dataclass(frozen=True)
class Finding:
    """What holds a job up."""

    reason: Reason
    evidence: str
    next_step: str
    is_proven: bool = True
    """False only of a gang of several groups, of which other packings than those tried may fit."""
