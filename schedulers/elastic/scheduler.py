"""The elastic scheduler: workers that are wanted as ordinary tasks, and helpers from what idles.

Goal     End jobs of many activities sooner, at nobody's expense.
Promise  Helpers are added only where the model predicts that the job ends earlier. Predictions come
         from history alone: the durations in specs are not read.
Source   Omega (EuroSys 2013), section 6.
"""

from collections.abc import Mapping
from typing import Final, Self
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.elastic import Elastic, ElasticPlan, ElasticState
from omega.framework.scheduler import Scheduler
from omega.model.claims import Claims
from omega.model.elastic_jobs import ElasticJob
from omega.model.jobs import PRECEDENCE_MAX, PRECEDENCE_MIN, LeasedJob
from omega.placement.feasibility import room_on
from omega.placement.groups import draw_groups, random_first_fit
from schedulers.elastic.history import History
from schedulers.elastic.policies import Candidate, Policy, grow, read_policy

TICK_MS: Final = 1_000
PRECEDENCE: Final = -1_000_000
"""Of helpers: so low that every job evicts them, unless its own precedence is as low."""
NOBODY: Final = UUID(int=0)


class Helpers(Elastic):
    """Gives helpers by a policy."""

    tick_ms = TICK_MS

    def __init__(self, policy: Policy, precedence: int = PRECEDENCE) -> None:
        self.policy = policy
        self.precedence = precedence

    def plan(self, view: View, state: ElasticState) -> ElasticPlan:
        """Learn how long activities took, and divide what idles."""
        history = _learned(state)
        capacity = view.capacity[view.open].sum(axis=0)
        used = np.maximum(capacity - view.free[view.open].sum(axis=0), 0)
        candidates = [_candidate(view, job, history) for job in state.jobs if job.runs]
        added = grow(self.policy, candidates, self.policy.room(capacity, used))
        return ElasticPlan(
            helpers={
                candidate.job: helpers
                for candidate, helpers in zip(candidates, added, strict=True)
                if helpers
            },
            give_back=self.policy.excess(capacity, used),
            memo={
                "history": history.to_memo(),
                "seen": [
                    [job.id, job.spec.name, [it.name for it in job.phases], job.done, job.busy_ms]
                    for job in state.jobs
                ],
            },
        )


class ElasticScheduler(Scheduler):
    """Randomised first fit, for workers that are wanted and for helpers."""

    kind = "elastic"
    jobs_per_transaction = 32
    preempts = True
    elastic: Helpers

    def __init__(self, policy: Policy | None = None, precedence: int = PRECEDENCE) -> None:
        self.elastic = Helpers(policy or Policy(), precedence)

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return the scheduler with `policy`, `target` and `helper_precedence`. Raises BadInput."""
        policy = read_policy(settings)
        said = settings.get("helper_precedence", str(PRECEDENCE))
        digits = said.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(PRECEDENCE_MIN))):
            raise BadInput(f"{said[:30]!r} is no whole number", field="helper_precedence")
        if not PRECEDENCE_MIN <= int(said) <= PRECEDENCE_MAX:
            raise BadInput(f"a precedence has 32 bits: {said}", field="helper_precedence")
        return cls(policy, int(said))

    @random_first_fit
    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims on random machines that have room."""
        return draw_groups(view, job, rng)


def _candidate(view: View, job: ElasticJob, history: History) -> Candidate:
    (group,) = job.spec.groups
    as_leased = LeasedJob(job.id, NOBODY, job.spec, np.zeros(0, np.intp))
    fitting = int(room_on(view, as_leased, 0, slice(None)).sum())
    workers = job.spec.tasks + job.helpers
    left = [
        (phase.name, phase.activities - done)
        for phase, done in zip(job.phases, job.done, strict=True)
    ]
    return Candidate(
        job=job.id,
        phases=history.phases_left(job.spec.name, left),
        wanted=job.spec.tasks,
        at_most=min(job.workers.at_most, workers + fitting),
        workers=workers,
        demand=group.demand,
    )


def _learned(state: ElasticState) -> History:
    """Return the history with what was done since the last tick."""
    history = History.from_memo(state.memo.get("history"))
    seen = _seen(state.memo.get("seen"))
    names = {job.id: job.spec.name for job in state.jobs}
    now = [(job.id, job.phases, job.done, job.busy_ms) for job in state.jobs]
    now += [(it.elastic, it.phases, it.done, it.busy_ms) for it in state.ended]
    for job_id, phases, done, busy_ms in now:
        before = seen.get(job_id)
        name = names.get(job_id) or (before[0] if before else None)
        if name is None:
            continue
        totals = before[1] if before else {}
        for phase, its_done, its_busy_ms in zip(phases, done, busy_ms, strict=True):
            then, then_ms = totals.get(phase.name, (0, 0))
            history.add(name, phase.name, max(0, its_done - then), max(0, its_busy_ms - then_ms))
    return history


def _seen(memo: object) -> dict[int, tuple[str, dict[str, tuple[int, int]]]]:
    """Return, by job, its name and what was done of each phase; leave out what nobody wrote."""
    seen: dict[int, tuple[str, dict[str, tuple[int, int]]]] = {}
    for entry in memo if isinstance(memo, list) else []:
        match entry:
            case [int(job), str(name), list(phases), list(done), list(busy_ms)] if len(
                phases
            ) == len(done) == len(busy_ms) and all(
                isinstance(number, int) for number in (*done, *busy_ms)
            ):
                totals = zip(done, busy_ms, strict=True)
                seen[job] = name, dict(zip(map(str, phases), totals, strict=True))
    return seen
