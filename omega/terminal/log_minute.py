"""What a process did since its last summary, for its log.

Goal     Tell an operator once a minute that a process works, and how well.
Promise  An event costs a few additions. A figure that stayed at zero is left out of the text and is
         in the figures. Of view ages the largest is kept: the age before a refresh.
Source   Omega (EuroSys 2013), section 4 (metrics); docs/decisions/0005-events.md.
"""

from dataclasses import dataclass

from omega.events import (
    Event,
    JobAttempted,
    JobParked,
    ProgramEnded,
    TasksEnded,
    TransactionJudged,
    ViewRefreshed,
)
from omega.reports.wording import duration, share, things


@dataclass
class LogMinute:
    """Counts of one process, from one summary to the next."""

    began_s: float
    """When it began, by the process's clock."""
    jobs: int = 0
    """Attempts at jobs."""
    parked: int = 0
    placed: int = 0
    """Tasks."""
    evicted: int = 0
    transactions: int = 0
    conflicted: int = 0
    """Transactions."""
    busy_s: float = 0.0
    view_age_s: float = 0.0
    tasks_ended: int = 0
    programs: int = 0
    """Programs that ended for good ..."""
    programs_failed: int = 0
    """... and those of them that failed."""

    def count(self, event: Event) -> None:
        """Add one event."""
        match event:
            case TransactionJudged():
                self.transactions += 1
                self.conflicted += event.conflicted
                self.placed += event.accepted
                self.evicted += event.evicted
                self.busy_s += event.took_s
            case JobAttempted():
                self.jobs += 1
                self.busy_s += event.thought_s
            case ViewRefreshed():
                self.view_age_s = max(self.view_age_s, event.age_s)
            case JobParked():
                self.parked += 1
            case TasksEnded(tasks):
                self.tasks_ended += tasks
            case ProgramEnded(_, _, _, is_success):
                self.programs += 1
                self.programs_failed += not is_success
            case _:
                pass

    def figures(self, now_s: float) -> dict[str, float]:
        """Return every count, with the time that it was counted for and the share spent busy."""
        over_s = now_s - self.began_s
        return {
            "over_s": round(over_s, 3),
            "jobs_attempted": self.jobs,
            "jobs_parked": self.parked,
            "tasks_placed": self.placed,
            "tasks_evicted": self.evicted,
            "transactions": self.transactions,
            "transactions_conflicted": self.conflicted,
            "busy": round(self.busy_s / over_s, 4) if over_s > 0 else 0.0,
            "view_age_s": round(self.view_age_s, 3),
            "tasks_ended": self.tasks_ended,
            "programs_ended": self.programs,
            "programs_failed": self.programs_failed,
        }

    def text(self, now_s: float) -> str:
        """Return what was done in words, or `idle`."""
        figures = self.figures(now_s)
        parts = [
            self.jobs and f"{things(self.jobs, 'job')} attempted",
            self.parked and f"{self.parked:,} parked",
            self.placed and f"{things(self.placed, 'task')} placed",
            self.evicted and f"{self.evicted:,} evicted",
            self.transactions
            and f"{self.conflicted:,} of {things(self.transactions, 'transaction')} conflicted",
            self.tasks_ended and f"{things(self.tasks_ended, 'task')} ended",
            self.programs
            and f"{things(self.programs, 'program')} ended, {self.programs_failed:,} failed",
        ]
        did = ", ".join(part for part in parts if part) or "idle"
        busy = f", busy {share(figures['busy'])}" if self.jobs or self.transactions else ""
        age = f", view up to {duration(self.view_age_s)} old" if self.view_age_s else ""
        return f"{did}{busy}{age}"
