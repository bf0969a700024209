"""What a run with live queues says of schedulers that plan in rounds or have elastic jobs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omega.cell.view import View
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.framework.scheduler import DecisionTime
from omega.model.elastic import Phase, Workers
from omega.model.jobs import LeasedJob
from omega.placement.groups import place_groups
from omega.sim.experiment import Experiment
from omega.testing.builders import a_spec
from omega.workload.arrivals import Arrival
from schedulers.elastic import ElasticScheduler
from tests.unit.framework.loops import InOrder, in_order
from tests.unit.sim.test_live_run import (
    Preempts,
    an_experiment,
    batch,
    job,
    ran,
    urgent,
)


class InRounds(InOrder):
    """Every round, places each waiting job that fits whole on what those before it left."""

    class Fitting(Rounds):
        length_ms = 10_000

        def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
            return RoundPlan(self.again(view, state.waiting, rng), {}, [])

        def again(
            self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
        ) -> list[JobClaims]:
            placed = []
            with view.tentative():
                for waits in refused:
                    claims = place_groups(view, waits, in_order, rng)
                    if len(claims) == len(waits.unplaced):
                        view.assume_claims(claims)
                        placed.append(JobClaims(waits, claims, len(claims)))
            return placed

    def __init__(self) -> None:
        self.rounds = self.Fitting()


def one_round() -> dict[str, Any]:
    """Return the measures of three jobs that came at 5 s, of which two fit.

    The round of 10 s decides on them for 2 s.
    """
    jobs = [job(5.0, cores=2, lasts_s=1_000.0) for _ in range(3)]
    return batch(ran(replace(an_experiment(*jobs, scheduler=InRounds), horizon_s=19.0)))


def test_of_the_jobs_of_a_round_only_those_that_claim_nothing_found_no_room() -> None:
    mine = one_round()

    assert (3, 2, 1) == tuple(
        mine[name] for name in ("jobs_attempted", "jobs_scheduled", "attempts_without_room")
    )


def test_all_jobs_of_a_round_waited_until_it_began() -> None:
    assert 5.0 == pytest.approx(one_round()["wait_mean_s"], abs=0.3)


def elastic(*arrivals: Arrival) -> Experiment:
    """Return an experiment on an elastic job that soon has all four cores of the machine."""
    phases = (Phase("map", 1_000, 2_000),)
    workers = replace(a_spec(1, scheduler="elastic", cpu_milli=1_000), workers=Workers(4, phases))
    made = {"elastic": ElasticScheduler, "service": Preempts}
    return replace(
        an_experiment(Arrival(0.0, workers), *arrivals),
        scheduler=lambda kind: made[kind](),
        decision_times=dict.fromkeys(made, DecisionTime()),
    )


def test_evictions_of_helpers_count_for_the_workload_that_they_help() -> None:
    told = ran(elastic(urgent(50.0, cores=3)))

    assert (3, 0) == (told.workloads["elastic"]["tasks_evicted"], told.start_tasks_evicted)


def test_helpers_that_find_room_are_no_attempt_at_the_next_job() -> None:
    """At 50 s a job comes that no machine can hold: its only attempt claims nothing."""
    large = replace(a_spec(1, scheduler="elastic", cpu_milli=8_000), workers=Workers(1, ()))
    mine = ran(elastic(Arrival(50.0, large))).workloads["elastic"]

    assert (2, 1) == (mine["jobs_attempted"], mine["attempts_without_room"])
