"""The policies by the names that Gavel's users know.

Goal     One list for the command line, the scheduler, the benchmarks and the documents.
Promise  `_perf` knows how fast each job is on each type, `_packed` shares GPUs between two as well;
         a name without either counts GPUs and does not ask which.
Source   Gavel (OSDI 2020), section 4, and the names of its release.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.errors import BadInput, did_you_mean
from schedulers.ml_gpu.policies.baselines import allox, gandiva, isolated
from schedulers.ml_gpu.policies.fairness import MaxMin, hierarchical, max_min, water_filling
from schedulers.ml_gpu.policies.finish import finish_time_fairness, makespan
from schedulers.ml_gpu.policies.queues import fifo, fifo_fastest, fifo_sharing, shortest_first
from schedulers.ml_gpu.policies.totals import total, total_per_cost
from schedulers.ml_gpu.problem import Allocation, Problem

Solve = Callable[[Problem, np.random.Generator], Allocation]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One objective, or rule."""

    name: str
    about: str
    """What it does, in a few words."""
    measure: str
    """Which of the measures of an allocation is its objective."""
    solve: Solve
    again: Callable[[], Solve] | None = None
    """Makes a `solve` for many problems that differ little: it starts from the one before."""
    shares_gpus: bool = False
    asks_prices: bool = False
    keeps_deadlines: bool = False
    uses_leftovers: bool = True
    """Whether jobs without a share may have what a round leaves over."""
    takes_no_gangs: bool = False
    has_entities: bool = False
    """Whether it divides first between entities, such as tenants, and then within them."""
    is_agnostic: bool = False
    """Whether it neither knows nor uses how fast jobs are on which type."""


def solver_of(policy: Policy) -> Solve:
    """Return what solves the policy's problems one after the other, soonest."""
    return policy.solve if policy.again is None else policy.again()


def find_policy(name: str) -> Policy:
    """Return the policy of this name; BadInput if there is none."""
    if name not in POLICIES:
        raise BadInput(
            f"there is no policy {name!r}{did_you_mean(name, tuple(POLICIES))}", field="--policy"
        )
    return POLICIES[name]


def _aware(solve: Callable[[Problem], Allocation]) -> Solve:
    return lambda problem, _: solve(replace(problem, pairs=None, due_s=None))


def _with_deadlines(solve: Callable[[Problem], Allocation]) -> Solve:
    return lambda problem, _: solve(replace(problem, pairs=None))


def _sharing(solve: Callable[[Problem], Allocation]) -> Solve:
    return lambda problem, _: solve(replace(problem, due_s=None))


def _counting(solve: Callable[[Problem], Allocation]) -> Solve:
    """Count GPUs: all rates are one, and time is spread over the types."""

    def agnostic(problem: Problem, _: np.random.Generator) -> Allocation:
        return solve(replace(problem.agnostic(), due_s=None)).spread_over(problem)

    return agnostic


def _as_on_one(solve: Callable[[Problem], Allocation]) -> Solve:
    """Know how long jobs take, on the type that is fastest over all, and take all types for it.

    Time is spread over the types.
    """

    def agnostic(problem: Problem, _: np.random.Generator) -> Allocation:
        on_one = problem.as_on(problem.reference_type)
        return solve(replace(on_one, due_s=None)).spread_over(problem)

    return agnostic


def _family(
    stem: str,
    about: str,
    measure: str,
    solve: Callable[[Problem], Allocation],
    agnostic: Callable[[Callable[[Problem], Allocation]], Solve],
    *,
    again: Callable[[], Callable[[Problem], Allocation]] | None = None,
    has_entities: bool = False,
) -> list[Policy]:
    """Return the three of one objective: agnostic, aware, and aware with shared GPUs."""
    blind = "level_agnostic" if measure == "level" else measure
    family = [
        Policy(
            name=stem,
            about=f"{about}, counting GPUs",
            measure=blind,
            solve=agnostic(solve),
            is_agnostic=True,
        ),
        Policy(
            name=f"{stem}_perf",
            about=about,
            measure=measure,
            solve=_aware(solve),
            again=None if again is None else lambda: _aware(again()),
        ),
        Policy(
            name=f"{stem}_packed",
            about=f"{about}, two on a GPU where that pays",
            measure=measure,
            solve=_sharing(solve),
            again=None if again is None else lambda: _sharing(again()),
            shares_gpus=True,
        ),
    ]
    return [replace(policy, has_entities=has_entities) for policy in family]


def _totals() -> list[Policy]:
    found = []
    for stem, about, measure, solve in (
        ("max_sum_throughput", "greatest sum of rates", "sum_throughput", total),
        (
            "max_sum_throughput_normalized_by_cost",
            "greatest sum of rates over prices",
            "sum_throughput_per_cost",
            total_per_cost,
        ),
    ):
        costs = measure == "sum_throughput_per_cost"
        for suffix, wrapped, more in (
            ("_perf", _aware(solve), ""),
            ("_packed", _sharing(solve), ", two on a GPU where that pays"),
            ("_perf_SLOs", _with_deadlines(solve), ", deadlines kept"),
            ("_packed_SLOs", lambda p, _, solve=solve: solve(p), ", deadlines kept, two on a GPU"),
        ):
            found.append(
                Policy(
                    name=stem + suffix,
                    about=about + more,
                    measure=measure,
                    solve=wrapped,
                    shares_gpus="packed" in suffix,
                    asks_prices=costs,
                    keeps_deadlines="SLOs" in suffix,
                )
            )
    return found


def _queues() -> list[Policy]:
    return [
        Policy(
            name="fifo",
            about="in order of arrival, on any type, for life",
            measure="mean",
            solve=fifo,
            uses_leftovers=False,
            is_agnostic=True,
        ),
        Policy(
            name="fifo_perf",
            about="in order of arrival, fastest type first",
            measure="mean",
            solve=_aware(fifo_fastest),
            uses_leftovers=False,
        ),
        Policy(
            name="fifo_packed",
            about="in order of arrival, then two on a GPU",
            measure="mean",
            solve=_sharing(fifo_sharing),
            uses_leftovers=False,
            shares_gpus=True,
        ),
        Policy(
            name="shortest_job_first_perf",
            about="shortest time left first, fastest type first",
            measure="mean",
            solve=_aware(shortest_first),
        ),
        Policy(
            name="allox",
            about="smallest sum of finish times, one GPU a job",
            measure="assignment_cost",
            solve=_aware(allox),
            takes_no_gangs=True,
        ),
        Policy(
            name="gandiva",
            about="equal parts, to random pairs when crowded",
            measure="mean",
            solve=gandiva,
            shares_gpus=True,
        ),
        Policy(
            name="isolated",
            about="an equal part of every type for everybody",
            measure="mean",
            solve=_aware(isolated),
            is_agnostic=True,
        ),
    ]


POLICIES: Final[Mapping[str, Policy]] = {
    policy.name: policy
    for policy in (
        *_family(
            "max_min_fairness",
            "greatest least share (LAS)",
            "level",
            max_min,
            _counting,
            again=MaxMin,
        ),
        *_family(
            "max_min_fairness_water_filling",
            "the same, then the second least, and so on",
            "level",
            water_filling,
            _counting,
        ),
        *_family(
            "hier_max_min_fairness_water_filling",
            "the same between entities and within them",
            "level",
            hierarchical,
            _counting,
            has_entities=True,
        ),
        *_family(
            "finish_time_fairness",
            "nobody ends much later than on its own part",
            "rho",
            finish_time_fairness,
            _as_on_one,
        ),
        *_family(
            "min_total_duration", "earliest last end (makespan)", "makespan_s", makespan, _as_on_one
        ),
        *_totals(),
        *_queues(),
    )
}
"""Every policy there is, families first."""
