"""What became of a job: where its tasks run, or why they do not.

Goal     Report why a job waits, the evidence for it, and what to do.
Promise  There is one dominant reason per job. A row has every field of the status.
Source   The kinds of reason of omega.lifecycle.states.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from shlex import quote
from typing import Final

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.elastic import PhaseProgress
from omega.model.exits import PastExit
from omega.model.progress import JobProgress
from omega.model.quotas import QuotaUse
from omega.reports.exits import exit_counts, exit_row
from omega.reports.processes import live_kinds
from omega.reports.quotas import left_for
from omega.reports.wording import UNKNOWN, things
from omega.reports.work import WorkReport, why_in_rounds, works_of
from omega.store.protocols import JobReader, ReaderStore
from omega.store.status import JobStatus

NEXT_STEPS: Final = {
    ParkReason.NEVER_FITS: "Ask for less, or load a machine that has as much: omega cell load.",
    ParkReason.UNKNOWN_ATTRIBUTE: "Check the attribute's spelling against: omega cell show.",
    ParkReason.NO_MACHINE_MATCHES: "Compare the constraint with the values in: omega cell show.",
    ParkReason.GANG_TOO_LARGE: "Lower the gang's minimum or its tasks' size; or load machines.",
    ParkReason.NO_ROOM: "Nothing: it is tried again when room is freed. Precedence would help.",
    ParkReason.CONFLICTS: "Nothing: it is tried again soon. Fewer replicas, or the fit rule, help.",
    ParkReason.OVER_QUOTA: "Nothing: it is tried again when enough is left. See: omega quota list.",
    ParkReason.HELD: "Whoever holds it lets it go on by: omega release JOB.",
    ParkReason.UNREADABLE: "Cancel it and submit it anew; then run: omega db verify.",
}


NOT_INSTALLED: Final = (
    "No such kind is installed here: omega scheduler list. Install it, or cancel the job and submit"
    " it for a kind of that list."
)
JOB_MAX: Final = 2**63 - 1
"""Numbers of jobs have 64 bits in the database ..."""
DIGITS_MAX: Final = 20
"""... and fewer digits than this: a longer number is no job's."""
HELPER_JOBS_MAX: Final = 10_000
"""Jobs of helpers that one report reads."""
EXITS_MAX: Final = 1_000
"""Exits of programs that one report reads: failed ones first."""


@dataclass(frozen=True)
class Why:
    """Why a job is not running, in three sentences at most."""

    reason: str
    evidence: str
    next_step: str


def why_waiting(
    job: JobStatus,
    kinds_running: Collection[str],
    quotas: Sequence[QuotaUse] = (),
    *,
    startable: Collection[str] | None = None,
) -> Why | None:
    """Return the dominant reason why a job is not fully placed; None if it is.

    For a job parked over a quota, the evidence includes what is left of its quotas now. `startable`
    are the kinds of scheduler that could be started here; None if that is not known.
    """
    waiting = job.state in (State.PENDING, State.PLANNING)
    if job.state is State.PARKED:
        assert job.park_reason is not None
        evidence = job.park_detail or UNKNOWN
        if job.park_reason is ParkReason.OVER_QUOTA:
            evidence = "; ".join([evidence, *left_for(job.tenant, job.scheduler, quotas)])
        return Why(job.park_reason.value, evidence, NEXT_STEPS[job.park_reason])
    if waiting and job.scheduler not in kinds_running:
        return Why(
            "no_scheduler",
            f"No {job.scheduler} scheduler has been heard of lately.",
            f"omega scheduler run {quote(job.scheduler)}"
            if startable is None or job.scheduler in startable
            else NOT_INSTALLED,
        )
    if job.state is State.PLANNING:
        return Why("being_planned", f"{job.lease_holder} holds its lease.", "Wait a moment.")
    if job.state is State.PENDING and job.fruitless:
        tried = things(job.fruitless, "attempt")
        return Why("backing_off", f"{tried} in a row placed nothing.", "Wait: it is tried again.")
    if job.state is State.PENDING:
        return Why("queued", "Its turn has not come yet.", "Wait, or start another replica.")
    return None


@dataclass(frozen=True)
class JobReport:
    """Everything about one job, as of one moment or nearly so."""

    job: JobStatus
    placements: Mapping[int, str]
    """The name of the machine of each task that runs."""
    progress: JobProgress
    """How far it has come; of no job if its work is not counted in steps."""
    why: Why | None
    helpers: Sequence[JobStatus] = ()
    """The jobs of its helpers, newest first: of an elastic job, at most `HELPER_JOBS_MAX`."""
    phases: PhaseProgress | None = None
    """How far its activities have come; None if it has none, and for jobs of helpers."""
    exits: Sequence[PastExit] = ()
    """How programs of its tasks ended: failed ones first, each newest first, at most EXITS_MAX."""
    work: WorkReport | None = None
    """What is known of its work; None if that is not counted in steps."""

    @property
    def helping(self) -> int:
        """How many helpers run."""
        return sum(it.placed - it.ended for it in self.helpers)

    @classmethod
    def read(
        cls, store: ReaderStore, job_id: int, *, startable: Collection[str] | None = None
    ) -> "JobReport | None":
        """Read the report of a job; None if there is no such job.

        `startable` are the kinds of scheduler that could be started here.
        """
        job = store.job(job_id)
        if job is None:
            return None
        is_elastic = job.workers_max is not None
        phases = store.phases(integers([job_id])) if is_elastic else []
        work = works_of(store, [job]).get(job_id)
        kinds = live_kinds(store.reports())
        told = why_in_rounds(job, work, kinds)
        why = Why(*told) if told else None
        return cls(
            job,
            store.placements(job_id),
            store.progress(integers([job_id])),
            why or why_waiting(job, kinds, store.quotas(), startable=startable),
            store.helpers(job_id, jobs_max=HELPER_JOBS_MAX) if is_elastic else (),
            phases[0] if phases else None,
            store.exits(job_id, exits_max=EXITS_MAX),
            work,
        )

    def rows(self) -> list[dict[str, object]]:
        """Return one row per running task, as JSON types."""
        return [{"task": task, "machine": name} for task, name in sorted(self.placements.items())]

    def summary(self) -> dict[str, object]:
        """Return the status, the progress and the reason as JSON types."""
        return {
            **row_of(self.job),
            "progress": progress_row(self.progress),
            "work": None if self.work is None else self.work.row(),
            "why": asdict(self.why) if self.why else None,
            "helpers": [{"job": it.id, "running": it.placed - it.ended} for it in self.helpers],
            "phases": phase_rows(self.phases),
            "exit_counts": exit_counts(self.exits),
            "exits": [exit_row(it) for it in self.exits],
        }


def find_job(store: JobReader, name_or_number: str) -> int | None:
    """Return the number of a job; of several jobs of a name the newest. A number comes first."""
    if name_or_number.isascii() and name_or_number.isdecimal():
        number = int(name_or_number[:DIGITS_MAX])
        if number <= JOB_MAX and store.job(number) is not None:
            return number
    named = store.jobs_named(name_or_number, jobs_max=1)
    return named[0].id if named else None


def row_of(job: JobStatus) -> dict[str, object]:
    """Return the status as JSON types."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in asdict(job).items()
    }


def progress_row(progress: JobProgress) -> dict[str, object] | None:
    """Return how far one job has come as JSON types; None if its work is not in steps."""
    if not len(progress):
        return None
    return {
        "kind": progress.kind[0],
        "steps": int(progress.wanted[0]),
        "done": int(progress.done[0]),
        "run_ms": int(progress.run_ms[0]),
    }


def phase_rows(progress: PhaseProgress | None) -> list[dict[str, object]]:
    """Return how far each phase of a job has come as JSON types."""
    if progress is None:
        return []
    return [
        {"phase": phase.name, "activities": phase.activities, "done": done, "busy_ms": busy_ms}
        for phase, done, busy_ms in zip(
            progress.phases, progress.done, progress.busy_ms, strict=True
        )
    ]
