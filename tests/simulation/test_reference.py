"""The simulator against Google's open one, on the same job lists: what no chance decides, exactly.

The figures are of its runs; their settings are in docs/papers/omega.md. A run takes seconds, so a
few of them stand for the rest.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from omega.framework.scheduler import DecisionTime
from omega.model.claims import ConflictRule, Granularity
from omega.sim.experiment import Architecture, Experiment
from omega.sim.results import Result
from omega.workload.arrivals import BATCH, SERVICE, Workload
from omega.workload.recipe import job_list
from omega.workload.synthetic import W1, W2
from omega.workload.traces.omega_sim import read_job_list, uniform_workload
from schedulers.batch import BatchScheduler

CELLS = {"W1": W1, "W2": W2}
T_TASK_S = 0.005
T_JOB_BATCH_S = 0.1
DEVIATIONS_MAX = 4
"""Of one run with one seed, from the mean of twenty."""


@cache
def workload(name: str) -> Workload:
    laws = CELLS[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.csv"
        path.write_text(job_list(laws), encoding="utf-8")
        arrivals = read_job_list(path)
    return uniform_workload(
        arrivals,
        machines=laws.machines,
        cpus=laws.cpus,
        memory_gib=laws.memory_gib,
        prefill_tasks=laws.prefill_tasks,
        rng=np.random.default_rng(0),
    )


def run(
    name: str,
    architecture: Architecture,
    t_job_service_s: float,
    rule: ConflictRule = ConflictRule.FIT,
    granularity: Granularity = Granularity.INCREMENTAL,
    *,
    gangs: bool = False,
) -> Result:
    def scheduler(_workload: str) -> BatchScheduler:
        made = BatchScheduler()
        made.rule, made.granularity, made.jobs_per_transaction = rule, granularity, 1
        return made

    service = DecisionTime(job_s=t_job_service_s, task_s=T_TASK_S)
    batch = DecisionTime(job_s=T_JOB_BATCH_S, task_s=T_TASK_S)
    alone = architecture is Architecture.MONOLITHIC
    return Experiment(
        workload=workload(name),
        architecture=architecture,
        scheduler=scheduler,
        decision_times={SERVICE: service, BATCH: service if alone else batch},
        gangs=gangs,
    ).run()


def close(value: float) -> Any:  # noqa: ANN401 - pytest's
    return pytest.approx(value, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "architecture", "t_job_s", "busy", "wait_batch", "wait_service", "left"),
    [
        ("W2", Architecture.MONOLITHIC, 0.1, 0.0424440, 0.00588225, 0.00771506, 0),
        ("W2", Architecture.MONOLITHIC, 30.0, 0.999283, 8943.81, 10094.9, 3881),
        ("W2", Architecture.MULTI_PATH, 30.0, 0.529703, 15.6599, 15.7843, 0),
        ("W1", Architecture.MONOLITHIC, 100.0, 0.999283, 9576.27, 10983.3, 3014),
    ],
)
def test_one_scheduler_does_what_it_does_there(
    name: str,
    architecture: Architecture,
    t_job_s: float,
    busy: float,
    wait_batch: float,
    wait_service: float,
    left: int,
) -> None:
    found = run(name, architecture, t_job_s).workloads

    assert close(busy) == found[BATCH]["busy"]
    assert close(wait_batch) == found[BATCH]["wait_mean_s"]
    assert close(wait_service) == found[SERVICE]["wait_mean_s"]
    assert left == found[BATCH]["jobs_waiting"]


def test_schedulers_that_never_meet_do_what_they_do_there() -> None:
    found = run("W1", Architecture.SHARED_STATE, 30.0).workloads

    assert close(0.0611813) == found[BATCH]["busy"]
    assert close(0.994808) == found[SERVICE]["busy"]
    assert close(0.0325975) == found[BATCH]["wait_mean_s"]
    assert close(3505.65) == found[SERVICE]["wait_mean_s"]
    assert 366 == found[SERVICE]["jobs_waiting"]
    assert not found[BATCH]["transactions_conflicted"]
    assert not found[SERVICE]["transactions_conflicted"]


def test_frameworks_fill_offers_as_they_do_there() -> None:
    result = run("W2", Architecture.TWO_LEVEL, 10.0)
    found = result.workloads

    assert close(0.0447860) == result.locked
    assert close(0.777651) == result.utilisation
    assert close(0.0399433) == found[BATCH]["busy"]
    assert close(0.163818) == found[SERVICE]["busy"]
    assert close(2.04669) == found[BATCH]["wait_mean_s"]
    assert close(1.94257) == found[SERVICE]["wait_mean_s"]
    assert not found[BATCH]["transactions_conflicted"]


@pytest.mark.parametrize(
    ("rule", "granularity", "conflicts", "busy"),
    [
        (ConflictRule.FIT, Granularity.INCREMENTAL, (0.239, 0.024), (0.203, 0.004)),
        (ConflictRule.SEQUENCE, Granularity.ALL_OR_NOTHING, (0.755, 0.056), (0.288, 0.009)),
    ],
)
def test_schedulers_that_meet_conflict_as_often_as_there(
    rule: ConflictRule,
    granularity: Granularity,
    conflicts: tuple[float, float],
    busy: tuple[float, float],
) -> None:
    """Means and standard deviations of twenty seeds."""
    found = run("W2", Architecture.SHARED_STATE, 10.0, rule, granularity).workloads

    for measure, (mean, deviation) in (("conflict_fraction", conflicts), ("busy", busy)):
        assert abs(found[SERVICE][measure] - mean) <= DEVIATIONS_MAX * deviation, measure
    assert found[BATCH]["conflict_fraction"] <= 0.003
