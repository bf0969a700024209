"""The work of a job in steps: where it trains, how fast, with which share, and until when.

Goal     Let whoever trains see what the scheduler of rounds knows of the job.
Promise  What is believed, promised and had is the scheduler's own record, as of its last round.
         The end is foretold from the promised shares, or from the steps made so far; None where
         neither says anything.
Source   Gavel (OSDI 2020), section 5; omega/model/round_summary.py.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from omega.lifecycle.states import State
from omega.metrics.facts import number_in
from omega.model.arrays import integers
from omega.model.round_summary import AMOUNT_MAX, JobShare
from omega.reports.processes import NODES, is_alive
from omega.reports.rounds import due_in_s, shares_of
from omega.reports.wording import duration, share, things
from omega.store.protocols import ReaderStore
from omega.store.rounds import LastRound
from omega.store.status import JobStatus, ProcessReport


@dataclass(frozen=True)
class WorkReport:
    """One job in steps, at one moment."""

    kind: str
    steps: int
    done: int
    run_ms: int
    """In the job's time, which a speed-up of virtual nodes makes faster."""
    is_running: bool
    speedup: float
    """Of the virtual nodes; 1 if none run."""
    round: LastRound | None
    """The last round of its kind of scheduler, if it tells of the job ..."""
    share: JobShare | None
    """... and what it tells."""
    now_ms: int

    @property
    def part(self) -> float:
        """The part of its steps that is made."""
        return self.done / self.steps if self.steps else 1.0

    @property
    def left(self) -> int:
        """Steps that are still to be made."""
        return max(0, self.steps - self.done)

    @property
    def measured(self) -> float | None:
        """Steps a second so far, while it ran; None before it has run."""
        return self.done * 1_000 / self.run_ms if self.run_ms else None

    @property
    def rate(self) -> float | None:
        """Steps a second where it is now: as the scheduler believes, or as measured so far."""
        if self.share is not None and self.share.rate:
            return self.share.rate
        return self.measured if self.is_running else None

    @property
    def pace(self) -> float | None:
        """Steps a second on average from now on; None if nothing says it."""
        if self.measured == 0:
            return None  # what is believed of its rate has not come true yet
        if self.share is not None:
            return self.share.pace or None
        return self.measured if self.is_running else None

    @property
    def ends_in_s(self) -> float | None:
        """Seconds of real time until its last step; None if its pace says of no end."""
        if not self.left:
            return 0.0
        if not self.pace:
            return None
        seconds = self.left / self.pace / self.speedup
        return seconds if seconds <= AMOUNT_MAX else None  # a pace may be so small that it is inf

    @property
    def promised(self) -> float | None:
        """Part of its time promised since it came; None if that is not known."""
        return _part(self.share, "promised_s")

    @property
    def received(self) -> float | None:
        """Part of its time with GPUs since it came."""
        return _part(self.share, "had_s")

    def row(self) -> dict[str, object]:
        """Return the report as JSON types."""
        told = self.share
        ends_in_s = self.ends_in_s
        return {
            "kind": self.kind,
            "steps": self.steps,
            "done": self.done,
            "left": self.left,
            "run_ms": self.run_ms,
            "gpus": None if told is None else told.gpus,
            "gpu_type": None if told is None else told.type,
            "rate": self.rate,
            "measured_rate": self.measured,
            "share": None if told is None else dict(told.share),
            "promised": self.promised,
            "received": self.received,
            "preempted": None if told is None else told.preempted,
            "preempted_in": None if told is None else told.preempted_in or None,
            "is_stalled": told is not None and told.is_stalled,
            "round": None if self.round is None else self.round.number,
            "ends_in_s": None if ends_in_s is None else round(ends_in_s, 3),
        }


def works_of(store: ReaderStore, jobs: Sequence[JobStatus]) -> dict[int, WorkReport]:
    """Return the reports of those of the jobs that are in steps, by number."""
    progress = store.progress(integers(sorted(job.id for job in jobs)))
    if not len(progress):
        return {}
    rounds = {last.scheduler: last for last in store.last_rounds() if last.summary is not None}
    shares = {kind: shares_of(last) for kind, last in rounds.items()}
    kind_of = {job.id: job.scheduler for job in jobs}
    speedup, now_ms = _speedup(store.reports()), store.now_ms()
    found = {}
    for at, job in enumerate(progress.job.tolist()):
        told = shares.get(kind_of[job], {}).get(job)
        found[job] = WorkReport(
            kind=progress.kind[at],
            steps=int(progress.wanted[at]),
            done=int(progress.done[at]),
            run_ms=int(progress.run_ms[at]),
            is_running=bool(progress.since_ms[at] >= 0),
            speedup=speedup,
            round=None if told is None else rounds[kind_of[job]],
            share=told,
            now_ms=now_ms,
        )
    return found


def why_in_rounds(
    job: JobStatus, work: WorkReport | None, kinds_running: Collection[str]
) -> tuple[str, str, str] | None:
    """Return reason, evidence and next step of a job that rounds have left without GPUs or steps.

    None if the job waits for another reason than rounds, or does not wait.
    """
    if work is None or work.share is None or work.round is None:
        return None
    told, waits = work.share, job.state is State.PENDING
    if told.is_stalled and job.state in (State.PENDING, State.RUNNING):
        types = f"{things(told.gpus, 'GPU')} of any type"
        keeps = ", and keeps those that it has until another job of its kind wants them"
        return (
            "no_rate",
            f"It has made no step on {types}, and no table of rates has {work.kind}.",
            "Cancel it, or give its rates to scheduler and virtual nodes (--set throughputs=FILE,"
            f" --rates FILE). It gets no share of GPUs{'' if waits else keeps}.",
        )
    if not waits or job.scheduler not in kinds_running:
        return None
    due_s = due_in_s(work.round, work.now_ms)
    begins = f"begins in {duration(due_s)}" if due_s else "is due"
    due = f"Wait: round {work.round.number + 1:,} {begins}; {_owed(work)}."
    if told.preempted_in:
        return (
            "preempted",
            f"Round {told.preempted_in:,} gave its GPUs to others. It has been preempted"
            f" {things(told.preempted, 'time')}, and keeps the {things(work.done, 'step')} that it"
            " has made.",
            due,
        )
    return (
        "between_rounds",
        f"Round {work.round.number:,} had no GPUs for it; rounds decide who trains.",
        due,
    )


def _owed(work: WorkReport) -> str:
    """Say what the job is to get."""
    told = work.share
    if told is None or not told.share:
        return "no share of GPUs is promised to it until shares are computed again"
    return f"it is promised {share(min(1.0, sum(told.share.values())))} of its time"


def _part(told: JobShare | None, name: str) -> float | None:
    if told is None or not told.age_s:
        return None
    return min(1.0, float(getattr(told, name)) / told.age_s)


def _speedup(reports: Sequence[ProcessReport]) -> float:
    """Return the speed-up of virtual nodes; 1 without any, or where several differ."""
    told = {
        number_in(it.facts, "speedup") or 1.0 for it in reports if it.kind == NODES and is_alive(it)
    }
    return told.pop() if len(told) == 1 else 1.0
