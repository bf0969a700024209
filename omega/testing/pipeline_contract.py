"""What every store must do about pipelines: when stages are queued, what they cost, their keys.

Goal     Pipelines as tests that read as stories.
Promise  No test depends on how long anything takes: costs that are learnt are of tasks that end
         when the test says, and only their order is compared.
Source   docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.lanes import QueueOrder
from omega.model.machines import MachineState
from omega.model.pipelines import PipelineSpec, PipelineStage, TokenRate
from omega.ordering.deadlines import LAST
from omega.store.leases import HandBack
from omega.store.pipelines import StageEnd, StageStatus
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.contract import Contract
from omega.testing.exit_contract import BADLY, report
from omega.testing.machine_contract import put
from omega.testing.steps import LONG_MS, add_a_cell, grant, lease_all

CHAIN: Mapping[str, Sequence[str]] = {"first": (), "last": ("first",)}
DIAMOND: Mapping[str, Sequence[str]] = {
    "read": (),
    "fast": ("read",),
    "slow": ("read",),
    "join": ("fast", "slow"),
}
HOUR_MS = 3_600_000


def a_pipeline(
    after: Mapping[str, Sequence[str]] = CHAIN,
    *,
    name: str = "chat",
    within_ms: int = HOUR_MS,
    units: int = 1,
    tokens: TokenRate | None = None,
    minimum: int = 0,
) -> PipelineSpec:
    """Return a pipeline of stages with one task each, by the stages that each comes after."""
    return PipelineSpec(
        name=name,
        within_ms=within_ms,
        tokens=tokens,
        stages=tuple(
            PipelineStage(
                stage, a_spec(name=f"{name}.{stage}", minimum=minimum), tuple(before), units
            )
            for stage, before in after.items()
        ),
    )


def stages(store: Store, pipeline: int) -> dict[str, StageStatus]:
    """Return the stages of a pipeline, by name."""
    status = store.pipeline(pipeline)
    assert status is not None
    return {stage.name: stage for stage in status.stages}


def queued(store: Store, pipeline: int) -> list[str]:
    """Return the stages that are jobs and have not ended."""
    its = stages(store, pipeline).values()
    return [stage.name for stage in its if stage.job is not None and stage.end is None]


def run(store: Store, pipeline: int, *names: str) -> None:
    """Have the tasks of these stages placed, and end them in one call."""
    jobs = {job.id: job for job in lease_all(store)}
    number = {name: stage.job or 0 for name, stage in stages(store, pipeline).items()}
    ids = [number[name] for name in names]
    for machine, job in enumerate(ids, start=1):
        grant(store, jobs[job], [0], [machine])
    store.hand_back([HandBack(it.id, it.token, 0, progressed=False) for it in jobs.values()])

    assert len(ids) == store.end_tasks(integers(ids), np.zeros(len(ids), dtype=np.intp))


def by_key(store: Store) -> list[int]:
    """Lease all pending jobs in the order of their keys; return them."""
    jobs = store.lease("batch", holder="0", jobs_max=100, lease_ms=LONG_MS, by_key=True)
    store.hand_back([HandBack(it.id, it.token, 0, progressed=False) for it in jobs])
    return [job.id for job in jobs]


class PipelineContract(Contract):
    """Stages that wait for each other."""

    def test_no_pipelines_are_no_work(self, store: Store) -> None:
        assert [] == store.submit_pipelines([])
        assert [] == store.pipelines()
        assert store.pipeline(1) is None

    def test_only_stages_that_come_first_are_queued(self, store: Store) -> None:
        (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])

        assert ["read"] == queued(store, pipeline)
        assert [stages(store, pipeline)["read"].job] == [job.id for job in store.jobs()]

    def test_a_stage_is_queued_when_the_last_one_before_it_has_succeeded(
        self, store: Store
    ) -> None:
        add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])
        run(store, pipeline, "read")
        assert ["fast", "slow"] == queued(store, pipeline)
        run(store, pipeline, "slow")
        assert ["fast"] == queued(store, pipeline)
        run(store, pipeline, "fast")
        assert ["join"] == queued(store, pipeline)

    def test_stages_that_end_in_one_call_are_seen_together(self, store: Store) -> None:
        add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])
        run(store, pipeline, "read")
        run(store, pipeline, "fast", "slow")

        assert ["join"] == queued(store, pipeline)

    def test_a_pipeline_ends_with_its_last_stage(self, store: Store) -> None:
        add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline()])
        run(store, pipeline, "first")
        before = store.pipeline(pipeline)
        run(store, pipeline, "last")
        status = store.pipeline(pipeline)

        assert before is not None
        assert before.finished_ms is None
        assert status is not None
        assert status.finished_ms is not None
        assert {StageEnd.SUCCEEDED} == {stage.end for stage in status.stages}
        assert {State.SUCCEEDED} == {stage.state for stage in status.stages}

    def test_the_newest_pipelines_come_first(self, store: Store) -> None:
        ids = store.submit_pipelines([a_pipeline(), a_pipeline(DIAMOND, name="other")])

        assert ids[::-1] == [it.id for it in store.pipelines()]
        assert ["other"] == [it.name for it in store.pipelines(pipelines_max=1)]

    def test_too_many_pipelines_are_refused_together(self, store: Store) -> None:
        with pytest.raises(BadInput):
            store.submit_pipelines([a_pipeline()] * (LIMITS.pipelines_per_submission_max + 1))
        wide = a_pipeline({f"s{number}": () for number in range(LIMITS.stages_per_pipeline_max)})
        with pytest.raises(BadInput, match="stages"):
            store.submit_pipelines([wide] * (LIMITS.jobs_per_submission_max // 64 + 1))

        assert [] == store.pipelines()
        assert [] == store.jobs()


class StageEndContract(Contract):
    """Stages that end badly."""

    def test_what_comes_after_a_cancelled_stage_is_skipped(self, store: Store) -> None:
        add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])
        run(store, pipeline, "read")
        job = stages(store, pipeline)["slow"].job
        assert job is not None
        store.cancel(job)
        its = stages(store, pipeline)

        assert ["fast"] == queued(store, pipeline)
        assert (StageEnd.CANCELLED, StageEnd.SKIPPED) == (its["slow"].end, its["join"].end)
        assert f"job {job} of an earlier stage: cancelled" == its["join"].cause

    def test_a_stage_that_is_cancelled_while_it_runs_is_followed_by_none(
        self, store: Store
    ) -> None:
        (machine, *_) = add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline()])
        (job,) = lease_all(store)
        grant(store, job, [0], [machine])
        store.cancel(job.id)

        assert {StageEnd.CANCELLED, StageEnd.SKIPPED} == {
            it.end for it in stages(store, pipeline).values()
        }
        assert [job.id] == [it.id for it in store.jobs()]

    @pytest.mark.parametrize("minimum", [0, 1])
    def test_what_comes_after_a_failed_stage_is_skipped(self, store: Store, minimum: int) -> None:
        (machine, *_) = add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline(minimum=minimum)])
        (job,) = lease_all(store)
        grant(store, job, [0], [machine])
        report(store, job, 0, how=BADLY)
        its = stages(store, pipeline)
        status = store.pipeline(pipeline)

        assert (StageEnd.FAILED, StageEnd.SKIPPED) == (its["first"].end, its["last"].end)
        assert {} == store.stage_picos("default", "chat")
        assert status is not None
        assert status.finished_ms is not None

    def test_an_evicted_stage_is_queued_again_and_not_followed(self, store: Store) -> None:
        machines = add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline()])
        (job,) = lease_all(store)
        grant(store, job, [0], machines[:1])
        put(store, MachineState.DOWN, machines[0])
        store.lose_tasks(integers(machines[:1]))

        assert ["first"] == queued(store, pipeline)
        assert StageStatus("last", ("first",), 1) == stages(store, pipeline)["last"]


class KeyContract(Contract):
    """Costs and keys."""

    def test_without_a_known_cost_a_stage_takes_an_equal_part_of_the_longest_path(
        self, store: Store
    ) -> None:
        (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND, within_ms=300)])
        status = store.pipeline(pipeline)
        assert status is not None
        (read, *_) = status.stages

        assert (100, status.submitted_ms) == (read.cost_ms, read.start_ms)

    def test_a_cost_is_learnt_per_template_and_stage_once_it_has_succeeded(
        self, store: Store
    ) -> None:
        add_a_cell(store)
        (pipeline,) = store.submit_pipelines([a_pipeline()])
        assert {} == store.stage_picos("default", "chat")
        run(store, pipeline, "first")
        assert ["first"] == list(store.stage_picos("default", "chat"))
        run(store, pipeline, "last")

        assert ["first", "last"] == list(store.stage_picos("default", "chat"))
        assert {} == store.stage_picos("default", "other")
        assert {} == store.stage_picos("another", "chat")

    def test_jobs_without_a_pipeline_are_leased_by_age_and_precedence_comes_first(
        self, store: Store
    ) -> None:
        old, new = store.submit([a_spec(), a_spec()])
        (high,) = store.submit([a_spec(precedence=1)])

        assert [high, old, new] == by_key(store)

    def test_the_pipeline_with_less_time_goes_first(self, store: Store) -> None:
        ids = store.submit_pipelines(
            [a_pipeline(within_ms=HOUR_MS), a_pipeline({"only": ()}, name="b", within_ms=1)]
        )
        (plain,) = store.submit([a_spec()])
        first, second = (stages(store, it) for it in ids)

        # Of both nothing is known, so that they can start no later than now: by age.
        assert [first["first"].job, second["only"].job, plain] == by_key(store)

    def test_replicas_that_agree_on_another_order_give_stages_other_keys(
        self, store: Store
    ) -> None:
        rate = TokenRate(1, HOUR_MS)
        ids = store.submit_pipelines(
            [a_pipeline(), a_pipeline(name="b", tokens=rate), a_pipeline(name="b", tokens=rate)]
        )
        jobs = [stages(store, it)["first"].job for it in ids]
        assert jobs == by_key(store)
        store.agree_on_order("batch", "0", QueueOrder.TOKENS, lease_ms=LONG_MS)
        stamps = [it.stamp for it in store.pipelines()][::-1]

        assert [LAST, LAST] == [stamps[0], stamps[2]]
        assert stamps[1] % HOUR_MS == 0
        assert [jobs[1], jobs[0], jobs[2]] == by_key(store)
        (first,) = store.lease("batch", holder="0", jobs_max=1, lease_ms=LONG_MS, by_key=True)
        assert jobs[1] == first.id

    def test_stages_that_are_leased_or_run_when_the_order_changes_have_its_key_later(
        self, store: Store
    ) -> None:
        rate = TokenRate(9, HOUR_MS)
        (machine, *_) = add_a_cell(store)
        store.submit_pipelines([a_pipeline({"only": ()})])
        ids = store.submit_pipelines([a_pipeline(name="b", tokens=rate)] * 2)
        leased = lease_all(store)
        old, *late = (job.id for job in leased)
        assert late == [stages(store, it)["first"].job for it in ids]
        grant(store, leased[2], [0], [machine])
        store.agree_on_order("batch", "0", QueueOrder.TOKENS, lease_ms=LONG_MS)
        store.hand_back([HandBack(it.id, it.token, 0, progressed=False) for it in leased])
        put(store, MachineState.DOWN, machine)
        store.lose_tasks(integers([machine]))

        assert [*late, old] == by_key(store)

    def test_tokens_of_an_interval_that_is_not_over_count_in_one_of_another_length(
        self, store: Store
    ) -> None:
        stamps = []
        for interval_ms in (HOUR_MS, HOUR_MS + 1, HOUR_MS, HOUR_MS + 1):
            tokens = TokenRate(2, interval_ms)
            (pipeline,) = store.submit_pipelines([a_pipeline(tokens=tokens)])
            status = store.pipeline(pipeline)
            assert status is not None
            stamps.append(status.stamp)

        assert [False, False, True, True] == [stamp == LAST for stamp in stamps]

    def test_lanes_and_keys_are_two_orders_of_the_same_jobs(self, store: Store) -> None:
        jobs = store.submit([a_spec(tenant="a"), a_spec(tenant="b"), a_spec(tenant="a")])

        assert jobs == by_key(store)
        assert ["a", "b"] == [head.lane.tenant for head in store.lanes("batch")]
        assert jobs == by_key(store)
        assert jobs == [job.id for job in lease_all(store)]
