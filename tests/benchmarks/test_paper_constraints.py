"""Constraints put on the cells of the paper's figures."""

from collections.abc import Mapping

import numpy as np

from benchmarks.paper.claims import Row
from benchmarks.paper.constraints import LOT, anywhere, constrained
from benchmarks.paper.figure_12 import AT_S, DROPPED, NARROWED, OF_THEIR_OWN, constraints_matter
from benchmarks.paper.setting import RECORDED, T_TASK_S, Setting
from omega.model.jobs import JobSpec, Operator, TaskGroup
from omega.workload.arrivals import Arrival, Prefill, Workload
from omega.workload.synthetic import uniform_machines


def a_workload(jobs: int) -> Workload:
    group = TaskGroup(tasks=2, cpu_milli=1_000, different_machines=True)
    spec = JobSpec(name="a", scheduler="batch", groups=(group, group))
    machines = uniform_machines(400, cpus=1, memory_gib=1)
    return Workload(
        "some", machines, Prefill.none(), tuple(Arrival(0.0, spec) for _ in range(jobs))
    )


def lots_wanted(workload: Workload) -> list[set[str]]:
    """Return the lots that each job's groups want."""
    wanted = []
    for arrival in workload.arrivals:
        constraints = [one for group in arrival.spec.groups for one in group.constraints]
        assert len(arrival.spec.groups) == len(constraints)
        assert {(LOT, Operator.IN)} == {(one.attribute, one.operator) for one in constraints}
        wanted.append({one.values[0] for one in constraints})
    return wanted


def test_all_jobs_want_one_machine_in_four_the_same() -> None:
    found = constrained(a_workload(20), 4, np.random.default_rng(0), alike=True)

    (wanted,) = {value for lots in lots_wanted(found) for value in lots}
    share = found.machines.attributes[LOT].count(wanted) / len(found.machines)
    assert 0.15 < share < 0.35


def test_each_job_wants_one_lot_of_its_own_choice() -> None:
    wanted = lots_wanted(constrained(a_workload(50), 4, np.random.default_rng(0), alike=False))

    assert all(len(lots) == 1 for lots in wanted)
    assert 4 == len(set().union(*wanted))


def test_without_constraints_tasks_of_a_job_may_meet() -> None:
    free = anywhere(constrained(a_workload(2), 4, np.random.default_rng(0), alike=True))

    for arrival in free.arrivals:
        for group in arrival.spec.groups:
            assert () == group.constraints
            assert not group.different_machines


def test_a_setting_changes_what_is_simulated() -> None:
    plain, narrow = Setting(hours=0.1), Setting(hours=0.1, one_in=4, large_tasks=1.0)

    assert {()} == {one.spec.groups[0].constraints for one in plain.experiment().workload.arrivals}
    arrivals = narrow.experiment().workload.arrivals
    assert all(one.spec.groups[0].constraints for one in arrivals)
    cores = {one.spec.groups[0].cpu_milli for one in arrivals if one.spec.scheduler == "batch"}
    assert {3_000} == cores


def twelve(conflicts: Mapping[int, float]) -> list[Row]:
    """Return rows in which jobs on one machine in so many conflict so much."""
    cells = [*NARROWED[RECORDED], *NARROWED["B"], *OF_THEIR_OWN, DROPPED]
    return [
        {
            **cell,
            "t_job_service": AT_S,
            "t_task_service": T_TASK_S,
            "service": {"conflict_fraction": conflicts[cell["one_in"]]},
        }
        for cell in cells
    ]


def test_constraints_matter_only_if_conflicts_rise_with_them() -> None:
    rises = constraints_matter(twelve({1: 0.1, 2: 0.2, 4: 0.3, 10: 0.4}), AT_S)
    falls = constraints_matter(twelve({1: 0.1, 2: 0.2, 4: 0.3, 10: 0.2}), AT_S)

    assert rises.holds
    assert not falls.holds
