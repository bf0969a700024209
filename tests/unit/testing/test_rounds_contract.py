"""The contract of rounds lets a sound scheduler pass, and finds what is wrong with others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omega.cell.view import View
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.framework.scheduler import Scheduler
from omega.model.arrays import integers
from omega.model.claims import Claims, Evictions
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows
from omega.placement.best_fit import best_fit
from omega.placement.gangs import on_fewest_machines
from omega.placement.groups import place_groups
from omega.placement.preemption import add_evictions
from omega.testing.builders import a_job
from omega.testing.rounds_contract import RoundsContract, played
from omega.testing.scheduler_contract import SchedulerContract

NOBODY = UNSEEN = 999


class ByTurns(Rounds):
    """Training jobs take turns: those that come first move on by one, round after round."""

    length_ms = 1_000

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        turn = state.memo.get("turn", 0)
        assert isinstance(turn, int)
        jobs = sorted((*state.waiting, *state.running), key=lambda job: job.id)
        trains = [job for job in jobs if job.spec.work is not None]
        first = turn % max(1, len(trains))
        beside = [job for job in state.waiting if job.spec.work is None]
        order = [*beside, *trains[first:], *trains[:first]]
        claims_by_job = self.placed(view, state, order, rng)
        return RoundPlan(claims_by_job, {"turn": turn + 1}, [job.id for job in trains])

    def placed(
        self, view: View, state: RoundState, jobs: Sequence[LeasedJob], rng: np.random.Generator
    ) -> list[JobClaims]:
        """Place all jobs that train anew, on what those beside them leave."""
        gone = state.allocations
        preemptible = {job.id for job in state.running if job.spec.work is not None}
        gone = gone.only(np.isin(gone.job, list(preemptible)))
        parts = []
        with view.tentative():
            view.assume_removed(gone.machine, gone.amounts)
            for job in jobs:
                tasks = np.arange(job.spec.tasks) if job.id in preemptible else job.unplaced
                anew = replace(
                    job,
                    unplaced=tasks,
                    placed=job.placed if job.id not in preemptible else 0,
                    placed_task=np.zeros(0, np.intp),
                    placed_machine=integers(),
                )
                claims = place_groups(view, anew, best_fit, rng)
                view.assume_claims(claims)
                if len(claims):
                    parts.append((job, claims))
        room = add_evictions(view, parts, gone, preemptible)
        return [
            JobClaims(job, claims, len(claims))
            for (job, _), claims in zip(parts, room, strict=True)
        ]

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        claims_by_job = []
        with view.tentative():
            for job in refused:
                claims = place_groups(view, job, on_fewest_machines, rng)
                view.assume_claims(claims)
                claims_by_job.append(JobClaims(job, claims, len(claims)))
        return [job_claims for job_claims in claims_by_job if len(job_claims.claims)]


class Turning(Scheduler):
    kind = "turning"

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        return place_groups(view, job, on_fewest_machines, rng)


class TestByTurns(RoundsContract):
    """A small scheduler that moves and preempts keeps the contract."""

    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return Turning(ByTurns())


def changed(change: Callable[[RoundPlan], RoundPlan]) -> Rounds:
    """Return rounds whose plans are spoilt so."""

    class Spoilt(ByTurns):
        def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
            return change(super().plan(view, state, rng))

    return Spoilt()


def with_first(plan: RoundPlan, change: Callable[[JobClaims], JobClaims]) -> RoundPlan:
    """Return a plan of which of which the first job's claims are changed."""
    return replace(plan, claims=[*map(change, plan.claims[:1]), *plan.claims[1:]])


def evicting_nobody(job_claims: JobClaims) -> JobClaims:
    none = np.zeros(0, np.intp)
    evictions = Evictions(none, integers(), none)
    return replace(job_claims, claims=replace(job_claims.claims, evictions=evictions))


def evicting_a_stranger(job_claims: JobClaims) -> JobClaims:
    evictions = Evictions(np.zeros(1, np.intp), integers([NOBODY]), np.zeros(1, np.intp))
    return replace(job_claims, claims=replace(job_claims.claims, evictions=evictions))


class WritesToTheView(ByTurns):
    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        plan = super().plan(view, state, rng)
        rows = view.rows()
        view.patch(
            MachineRows(
                rows.id, rows.capacity, rows.capacity, rows.sequence, rows.revision + 1, rows.state
            )
        )
        return plan


class DrawsFromItsOwn(ByTurns):
    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        plan = super().plan(view, state, rng)
        return replace(plan, memo={**plan.memo, "drawn": float(self._rng.random())})


class KeepsItsTurn(ByTurns):
    """Remembers what it should have noted: a plan repeated on one instance is the same."""

    def __init__(self) -> None:
        self._turns: dict[int, int] = {}

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        turn = self._turns.setdefault(state.number, len(self._turns))
        plan = super().plan(view, replace(state, memo={"turn": turn}), rng)
        return replace(plan, memo={})


class RemembersEverybody(ByTurns):
    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        plan = super().plan(view, state, rng)
        met = state.memo.get("met", [])
        assert isinstance(met, list)
        jobs = {job.id for job in (*state.waiting, *state.running)}
        return replace(plan, memo={**plan.memo, "met": sorted({*met, *jobs})})


class LeavesOneOut(ByTurns):
    def placed(
        self, view: View, state: RoundState, jobs: Sequence[LeasedJob], rng: np.random.Generator
    ) -> list[JobClaims]:
        return super().placed(view, state, jobs[1:], rng)


class TriesTwiceAtOnce(ByTurns):
    """Places refused jobs each by itself, on the same free room."""

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        return [
            one for job in refused for one in super(TriesTwiceAtOnce, self).again(view, [job], rng)
        ]


class EvictsAgain(ByTurns):
    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        return list(map(evicting_a_stranger, super().again(view, refused, rng)))


def wrong() -> Iterator[tuple[str, Callable[[], Rounds]]]:
    """Give rounds that are wrong, each with the test that is to find it."""
    of_others = "test_a_plan_is_of_jobs_that_are_leased_or_recalled"
    stranger = a_job(job=UNSEEN)
    plans: dict[str, Callable[[RoundPlan], RoundPlan]] = {
        "claims for another's job": lambda plan: with_first(
            plan, lambda one: replace(one, job=stranger)
        ),
        "a job claimed for twice": lambda plan: replace(
            plan, claims=[*plan.claims, *plan.claims[:1]]
        ),
        "evicts another's job": lambda plan: with_first(plan, evicting_a_stranger),
        "recalls another's job": lambda plan: replace(plan, recall=[*plan.recall, NOBODY]),
        "wants room for another's job": lambda plan: replace(plan, wanting=[stranger]),
        "asks for more grants than claims": lambda plan: with_first(
            plan, lambda one: replace(one, grants_min=len(one.claims) + 1)
        ),
    }
    for change in plans.values():
        yield of_others, lambda change=change: changed(change)  # type: ignore[misc]
    yield (
        "test_claims_and_moves_fit_where_nobody_else_commits",
        lambda: changed(lambda plan: replace(plan, claims=[*map(evicting_nobody, plan.claims)])),
    )
    yield "test_an_idle_cell_takes_all_jobs_that_fit", LeavesOneOut
    yield "test_planning_a_round_leaves_the_view_as_it_was", WritesToTheView
    yield "test_the_same_seed_gives_the_same_plan", DrawsFromItsOwn
    yield "test_a_new_process_plans_from_the_memo_as_the_old_one_did", KeepsItsTurn
    yield (
        "test_the_memo_is_plain_json",
        lambda: changed(lambda plan: replace(plan, memo={**plan.memo, "at": np.int64(1)})),
    )
    yield (
        "test_the_memo_is_plain_json",
        lambda: changed(lambda plan: replace(plan, memo={**plan.memo, "at": float("nan")})),
    )
    yield "test_the_memo_does_not_grow_with_jobs_that_are_over", RemembersEverybody
    yield "test_refused_jobs_are_placed_again_and_evict_nobody", TriesTwiceAtOnce
    yield "test_refused_jobs_are_placed_again_and_evict_nobody", EvictsAgain


@pytest.mark.parametrize(("test", "make"), [*wrong()])
def test_what_is_wrong_with_rounds_is_found(test: str, make: Callable[[], Rounds]) -> None:
    scheduler = Turning(make())
    fixtures: dict[str, object] = {"scheduler": scheduler}
    method = getattr(RoundsContract(), test)
    wanted = {"scheduler", "cell"} & method.__func__.__annotations__.keys()
    if "cell" in wanted:
        fixtures["cell"] = played(scheduler)

    with pytest.raises(AssertionError):
        method(**{name: fixtures[name] for name in wanted})


def test_every_test_of_rounds_has_been_seen_to_fail() -> None:
    tests = {name for name in vars(RoundsContract) if name.startswith("test_")}

    assert tests == {test for test, _ in wrong()}


def test_rounds_are_not_passed_over() -> None:
    with pytest.raises(AssertionError, match="see RoundsContract"):
        SchedulerContract().test_rounds_are_held_to_the_contract_of_rounds(Turning(ByTurns()))
