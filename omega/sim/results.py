"""The results of an experiment: of each scheduler, of each workload, of the cell.

Goal     Name each measure once, as the reference results and the JSON documents name it.
Promise  Results are sums and means of what the ledgers hold; nothing is simulated here.
Source   docs/papers/omega.md, the measures; Omega (EuroSys 2013), section 4.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omega.metrics.evictions import EvictionFold
from omega.sim.ledger import Ledger, SimulatedJob, mean, p90, ratio

S_PER_H: Final = 3_600


@dataclass(frozen=True, eq=False)
class Result:
    """The results of one run."""

    schedulers: list[dict[str, Any]]
    workloads: dict[str, dict[str, Any]]
    utilisation: float | None
    """CPU that tasks use over CPU of open machines; the mean of one sample a second."""
    locked: float | None
    """CPU that offers lock over CPU of open machines; the mean of one sample a second."""
    events: int
    tasks_placed: int
    """Tasks that have a place, or had one until they ended."""
    tasks_lost: int
    """Tasks that lost their places with machines that went down or with their gangs ..."""
    start_tasks_lost: int
    """... and such tasks of the start state, which are placed again only if they queue again."""
    tasks_evicted: int
    """Tasks that lost their places to claims of other jobs ..."""
    start_tasks_evicted: int
    """... and such tasks of the start state."""
    evictions_per_hour: float
    """Of both together."""
    start: dict[str, Any]
    """The measures of `of_evictions` for the start state's jobs; empty without the live queue."""
    audited: int
    """How many commits, ends, losses, changes of machines and offers were audited."""

    def summary(self, *, with_audited: bool) -> dict[str, Any]:
        """Return the figures of each workload, of the start state and of the whole run."""
        return {
            **self.workloads,
            **({"start": self.start} if self.start else {}),
            "utilisation": self.utilisation,
            "locked": self.locked,
            "tasks_placed": self.tasks_placed,
            "tasks_lost": self.tasks_lost,
            "start_tasks_lost": self.start_tasks_lost,
            "tasks_evicted": self.tasks_evicted,
            "start_tasks_evicted": self.start_tasks_evicted,
            "evictions_per_hour": self.evictions_per_hour,
            "events": self.events,
            **({"audited": self.audited} if with_audited else {}),
        }


def of_scheduler(ledger: Ledger, horizon_s: float) -> dict[str, Any]:
    """Return the measures of one scheduler, by the names of the JSON documents.

    Those that the reference results have too are named as there. Busyness counts the whole decision
    time of each attempt that was committed, and none of attempts without a claim. Of the decision
    times begun, `think_started` counts what passes before the horizon.
    """
    return {
        "scheduler": ledger.name,
        "busy": (ledger.useful_s + ledger.wasted_s) / horizon_s,
        "busy_useful": ledger.useful_s / horizon_s,
        "busy_wasted": ledger.wasted_s / horizon_s,
        "think_started": ledger.thought_s / horizon_s,
        "transactions_ok": ledger.accepted,
        "transactions_conflicted": ledger.conflicted,
        "conflict_fraction": ratio(ledger.conflicted, ledger.accepted),
        "claim_conflict_fraction": ratio(
            ledger.claims_refused, ledger.claims_accepted + ledger.claims_refused
        ),
        "attempts_started": ledger.begun,
        "attempts_without_room": ledger.found_no_room,
        "jobs_abandoned": ledger.abandoned,
        "jobs_waiting": ledger.waiting,
    }


def of_schedulers(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the measures of a workload's schedulers together: sums, and means of time shares."""
    sums = Counter[str]()
    for row in rows:
        sums.update({name: row[name] for name in _SUMMED})
    busy = ("busy", "busy_useful", "busy_wasted", "think_started")
    return {
        **{name: sum(row[name] for row in rows) / len(rows) for name in busy},
        "conflict_fraction": ratio(sums["transactions_conflicted"], sums["transactions_ok"]),
        **sums,
    }


_SUMMED = (
    "transactions_ok",
    "transactions_conflicted",
    "attempts_started",
    "attempts_without_room",
    "jobs_waiting",
)


def of_jobs(jobs: Sequence[SimulatedJob]) -> dict[str, Any]:
    """Return the measures of a workload's jobs; waits are of jobs with a finished attempt."""
    attempted = [job for job in jobs if job.attempts]
    first = [job.first_wait_s for job in attempted if job.first_wait_s is not None]
    whole = [job.waited_s for job in attempted]
    attempts = [job.attempts for job in attempted]
    return {
        "jobs": len(jobs),
        "jobs_attempted": len(attempted),
        "jobs_scheduled": sum(not job.left for job in jobs),
        "jobs_unfinished": sum(bool(job.left) for job in jobs),
        "jobs_abandoned": sum(job.abandoned for job in jobs),
        "tasks": sum(job.lease.spec.tasks for job in jobs),
        "tasks_placed": sum(job.lease.spec.tasks - job.left for job in jobs),
        "tasks_lost": sum(job.tasks_lost for job in jobs),
        **NO_EVICTIONS,
        "wait_mean_s": mean(first),
        "wait_p90_s": p90(first),
        "wait_until_scheduled_mean_s": mean(whole),
        "wait_until_scheduled_p90_s": p90(whole),
        "attempts_mean": mean([float(one) for one in attempts]),
        "attempts_max": max(attempts, default=0),
    }


NO_EVICTIONS: Final[Mapping[str, Any]] = {
    "tasks_evicted": 0,
    "tasks_evicted_by": {},
    "jobs_evicted": 0,
    "evictions_per_hour": 0.0,
    "whole_again_mean_s": None,
    "whole_again_p90_s": None,
    "jobs_not_whole_again": 0,
}
"""The measures of evictions where none are simulated."""


def of_evictions(
    fold: EvictionFold, name: str, workloads: Sequence[str], horizon_s: float
) -> dict[str, Any]:
    """Return the measures of a workload's evictions by others: how many, by whom, and the waits.

    `whole_again` is the time from a job's eviction until all its tasks had places again.
    """
    tasks, waits_s = fold.tasks(name), fold.waits_s(name)
    return {
        "tasks_evicted": tasks,
        "tasks_evicted_by": {other: fold.tasks(name, other) for other in workloads},
        "jobs_evicted": fold.jobs(name),
        "evictions_per_hour": tasks / horizon_s * S_PER_H,
        "whole_again_mean_s": mean(waits_s),
        "whole_again_p90_s": p90(waits_s),
        "jobs_not_whole_again": fold.not_whole(name),
    }
