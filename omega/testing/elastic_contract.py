"""What every store must do for elastic jobs: give them helpers, and record their progress.

Goal     Who may have how many helpers, as tests that read as stories.
Promise  No job has more workers than it may have. Progress only grows.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from dataclasses import replace

import numpy as np
import pytest

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import Index, integers
from omega.model.elastic import Phase, PhaseProgress, Workers
from omega.model.jobs import JobSpec, LeasedJob
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    recall,
    status_of,
)

LOW = -1_000
PHASES = (Phase("map", 10, 5_000), Phase("reduce", 2, 7_000, after="map"))


def an_elastic_spec(
    wanted: int = 2, *, at_most: int = 6, phases: tuple[Phase, ...] = (), precedence: int = 0
) -> JobSpec:
    """Return a job that may have more workers than it wants."""
    spec = a_spec(wanted, cpu_milli=1_000, precedence=precedence)
    return replace(spec, workers=Workers(at_most, phases))


def add_helpers(
    store: Store,
    parent: int,
    tasks: int,
    *,
    precedence: int = LOW,
    lease_ms: int = LONG_MS,
    scheduler: str = "batch",
) -> LeasedJob | None:
    """Ask for helpers of a batch job."""
    return store.add_helpers(
        scheduler,
        parent,
        tasks,
        precedence=precedence,
        holder=f"{scheduler}/0",
        lease_ms=lease_ms,
    )


def some_helpers(
    store: Store, parent: LeasedJob, tasks: int, *, lease_ms: int = LONG_MS
) -> LeasedJob:
    """Add helpers; fail unless there are so many."""
    helpers = add_helpers(store, parent.id, tasks, lease_ms=lease_ms)

    assert helpers is not None
    assert list(range(tasks)) == helpers.unplaced.tolist()
    return helpers


def an_elastic_job(
    store: Store, spec: JobSpec | None = None, *, cores: int = 8
) -> tuple[LeasedJob, int]:
    """Add a machine, on which an elastic job runs with all workers that it wants."""
    (machine,) = add_a_cell(store, 1, cpu_milli=cores * 1_000)
    spec = spec or an_elastic_spec()
    return a_running_job(store, spec, [machine] * spec.tasks), machine


def all_helping(
    store: Store, tasks: int = 2, spec: JobSpec | None = None
) -> tuple[LeasedJob, LeasedJob, int]:
    """Return an elastic job, its helpers, which run, and their machine."""
    parent, machine = an_elastic_job(store, spec)
    helpers = some_helpers(store, parent, tasks)
    grant(store, helpers, range(tasks), [machine] * tasks)
    return parent, helpers, machine


def counts(store: Store, job: LeasedJob) -> tuple[State, int, int]:
    """Return state, placed and ended tasks of a job."""
    status = status_of(store, job)
    return status.state, status.placed, status.ended


def tasks(*some: int) -> Index:
    """Return an index of tasks."""
    return np.array(some, dtype=np.intp)


class AddedHelperContract(Contract):
    """Who may have how many helpers."""

    def test_helpers_are_of_their_parents_shape_and_leased(self, store: Store) -> None:
        parent, _ = an_elastic_job(store, an_elastic_spec(2, at_most=6, phases=PHASES))

        helpers = some_helpers(store, parent, 3)

        spec, group = parent.spec, parent.spec.groups[0]
        assert helpers.spec == replace(
            spec, precedence=LOW, workers=None, groups=(replace(group, tasks=3),)
        )
        assert (0, None, helpers.id > parent.id) == (helpers.placed, helpers.waited_ms, True)
        assert (State.PLANNING, 0, 0) == counts(store, helpers)
        assert (parent.id, "batch/0") == (
            status_of(store, helpers).parent,
            status_of(store, helpers).lease_holder,
        )

    def test_no_job_has_more_workers_than_it_may_have(self, store: Store) -> None:
        parent, machine = an_elastic_job(store, an_elastic_spec(2, at_most=6))
        first = some_helpers(store, parent, 3)
        last = add_helpers(store, parent.id, 5)

        assert last is not None
        assert [0] == last.unplaced.tolist()
        assert add_helpers(store, parent.id, 1) is None
        grant(store, first, [0, 1, 2], [machine] * 3)
        end(store, first, 1)
        again = add_helpers(store, parent.id, 9)
        assert again is not None
        assert [0] == again.unplaced.tolist()
        assert add_helpers(store, parent.id, 1) is None

    def test_only_an_elastic_job_of_the_kind_that_runs_has_helpers(self, store: Store) -> None:
        parent, machine = an_elastic_job(store)
        plain = a_running_job(store, a_spec(1), [machine])
        (waits,) = store.submit([an_elastic_spec()])

        assert add_helpers(store, plain.id, 1) is None
        assert add_helpers(store, waits, 1) is None
        assert add_helpers(store, 10**9, 1) is None
        assert add_helpers(store, parent.id, 1, scheduler="service") is None
        end(store, parent, 0, 1)
        assert add_helpers(store, parent.id, 1) is None

    def test_a_job_that_the_holder_plans_may_have_helpers(self, store: Store) -> None:
        parent, _ = an_elastic_job(store)
        (again,) = recall(store, [parent.id], holder="batch/0")

        assert add_helpers(store, again.id, 1) is not None
        assert (
            store.add_helpers("batch", again.id, 1, precedence=LOW, holder="b", lease_ms=1) is None
        )

    def test_helpers_have_no_helpers(self, store: Store) -> None:
        _, helpers, _ = all_helping(store)

        assert add_helpers(store, helpers.id, 1, precedence=LOW - 1) is None

    @pytest.mark.parametrize("precedence", [0, 1])
    def test_helpers_are_below_their_parent(self, store: Store, precedence: int) -> None:
        parent, _ = an_elastic_job(store)

        with pytest.raises(BadInput, match="not below that of job"):
            add_helpers(store, parent.id, 1, precedence=precedence)

    @pytest.mark.parametrize("number", [0, -1, 100_001])
    def test_a_number_that_is_none_is_refused(self, store: Store, number: int) -> None:
        parent, _ = an_elastic_job(store)

        with pytest.raises(BadInput, match="bad helpers"):
            add_helpers(store, parent.id, number)

    def test_helpers_are_in_no_list_of_jobs_and_no_queue(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)

        assert [parent.id] == [job.id for job in store.jobs()]
        assert [helpers.id] == [job.id for job in store.helpers(parent.id)]
        assert [] == store.helpers(helpers.id)
        assert {State.RUNNING: 1} == dict(store.use().jobs_by_state)
        assert [] == lease_all(store)
        assert [parent.id] == [job.id for job in recall(store, None)]

    def test_the_workers_of_elastic_jobs_are_told(self, store: Store) -> None:
        parent, machine = an_elastic_job(store, an_elastic_spec(2, at_most=9, phases=PHASES))
        first, second = some_helpers(store, parent, 3), some_helpers(store, parent, 2)
        grant(store, first, [0, 1, 2], [machine] * 3)
        end(store, first, 2)
        (waits,) = store.submit([an_elastic_spec()])
        store.submit([a_spec()])

        told = store.elastic_jobs("batch", jobs_max=9)

        assert [parent.id, waits] == [job.id for job in told]
        assert [parent.spec, an_elastic_spec()] == [job.spec for job in told]
        assert [True, False] == [job.runs for job in told]
        assert [(first.id, second.id), ()] == [job.helper_jobs for job in told]
        assert [4, 0] == [job.helpers for job in told]
        assert [(0, 0), ()] == [job.done for job in told] == [job.busy_ms for job in told]
        assert [parent.id] == [job.id for job in store.elastic_jobs("batch", jobs_max=1)]
        assert [] == store.elastic_jobs("service", jobs_max=9)


class PhaseContract(Contract):
    """How far the phases of elastic jobs have come."""

    def test_what_is_reported_is_on_record_and_only_grows(self, store: Store) -> None:
        (job,) = store.submit([an_elastic_spec(2, phases=PHASES)])
        for done, busy_ms in ((3, 15_000), (2, 16_000), (3, 9_000)):
            store.report_phases(integers([job]), tasks(0), integers([done]), integers([busy_ms]))
        store.report_phases(integers([job]), tasks(1), integers([99]), integers([14_000]))

        assert [PhaseProgress(job, job, PHASES, (3, 2), (16_000, 14_000))] == store.phases(
            integers([job])
        )
        (told,) = store.elastic_jobs("batch", jobs_max=1)
        assert ((3, 2), (16_000, 14_000)) == (told.done, told.busy_ms)

    def test_no_more_time_is_on_record_than_the_activities_can_take(self, store: Store) -> None:
        (job,) = store.submit([an_elastic_spec(2, phases=PHASES)])

        store.report_phases(integers([job]), tasks(1), integers([1]), integers([2**63 - 1]))

        (told,) = store.phases(integers([job]))
        assert (0, PHASES[1].activities * LIMITS.duration_ms_max) == told.busy_ms

    def test_helpers_have_their_parents_phases(self, store: Store) -> None:
        parent, machine = an_elastic_job(store, an_elastic_spec(2, phases=PHASES))
        helpers = some_helpers(store, parent, 2)
        plain = a_running_job(store, an_elastic_spec(1), [machine])

        told = store.phases(integers([helpers.id, plain.id, parent.id, 10**9]))

        assert [(parent.id, parent.id), (helpers.id, parent.id)] == [
            (it.job, it.elastic) for it in told
        ]
        assert [PHASES, PHASES] == [it.phases for it in told]
        assert [(helpers.id,)] * 2 == [it.helper_jobs for it in told]

    def test_what_nobody_has_is_passed_over(self, store: Store) -> None:
        parent, _, _ = all_helping(store, spec=an_elastic_spec(2, phases=PHASES))
        plain, over = store.submit([a_spec(), an_elastic_spec(2, phases=PHASES)])
        store.cancel(over)
        jobs = integers([parent.id, plain, over, 10**9])
        some = integers([1] * 4)

        store.report_phases(jobs, tasks(2, 0, 0, 0), some, some)

        assert [((0, 0), (0, 0))] * 2 == [(it.done, it.busy_ms) for it in store.phases(jobs)]
        store.report_phases(integers(), tasks(), integers(), integers())

    def test_progress_outlives_the_job(self, store: Store) -> None:
        parent, _, _ = all_helping(store, spec=an_elastic_spec(2, phases=PHASES))
        store.report_phases(integers([parent.id]), tasks(0), integers([10]), integers([50]))
        end(store, parent, 0, 1)

        (told,) = store.phases(integers([parent.id]))

        assert ((10, 0), (50, 0)) == (told.done, told.busy_ms)
