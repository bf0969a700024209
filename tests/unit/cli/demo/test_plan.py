"""What a demo is to be, checked before anything is started."""

from pathlib import Path

import pytest

from omega.cli.demo.plan import DemoPlan, scenario_of
from omega.cli.options import read_replica_sets
from omega.errors import BadInput, UnknownScheduler
from omega.terminal.rng import rng_from_seed

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)


def a_plan(schedulers: str = "batch=2,service=1,ml-gpu=1", **fields: object) -> DemoPlan:
    given: dict[str, object] = {
        "seconds": 10.0,
        "replica_sets": read_replica_sets(schedulers),
        "machines": 40,
        "fill": 0.5,
        "speedup": None,
        "t_job": 0.0,
        "t_task": 0.0,
        "seed": 3,
        "trace": None,
        "trace_options": {},
    }
    return DemoPlan(**{**given, **fields})  # type: ignore[arg-type]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two machines; three pods within 100 s, one of which wants a GPU."""
    (tmp_path / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn1,9000,9000,2,T4\nn2,9000,9000,0,\n"
    )
    (tmp_path / "pods_default.csv").write_text(
        PODS
        + "p1,500,512,1,500,,LS,Running,0,50,1\n"
        + "p2,500,512,0,0,,LS,Running,50,90,60\n"
        + "p3,500,512,0,0,,BE,Running,100,190,110\n"
    )
    return tmp_path


def test_a_synthetic_demo_is_drawn_to_the_plan() -> None:
    scenario = scenario_of(a_plan(), rng_from_seed(3))

    assert 40 == len(scenario.workload.machines)
    assert len(scenario.workload.prefill) > 0
    assert scenario.workload.arrivals[-1].submit_s <= 10.0
    assert (1.0, ()) == (scenario.speedup, scenario.notes)


def test_the_pods_of_a_trace_are_spread_over_the_seconds(trace: Path) -> None:
    scenario = scenario_of(a_plan(trace=trace), rng_from_seed(3))

    gaps = [arrival.submit_s for arrival in scenario.workload.arrivals]
    assert [0.0, pytest.approx(10 / 3), pytest.approx(20 / 3)] == gaps
    assert "in this demo they come evenly over 10 s" == scenario.notes[-1]
    assert 1.0 == scenario.speedup


def test_a_replay_is_compressed_and_its_tasks_with_it(trace: Path) -> None:
    plan = a_plan(trace=trace, trace_options={"times": "replay"})
    scenario = scenario_of(plan, rng_from_seed(3))

    assert [0.0, 5.0, 10.0] == [arrival.submit_s for arrival in scenario.workload.arrivals]
    assert 10.0 == scenario.speedup
    assert "its 100 s of arrivals are replayed in 10 s" == scenario.notes[-1]
    assert (
        7.0
        == scenario_of(
            a_plan(trace=trace, trace_options={"times": "replay"}, speedup=7.0), rng_from_seed(3)
        ).speedup
    )


def test_jobs_that_no_scheduler_would_take_are_refused(trace: Path) -> None:
    with pytest.raises(BadInput, match="1 jobs of the trace are for ml-gpu"):
        scenario_of(a_plan("batch=1,service=1", trace=trace), rng_from_seed(3))


def test_a_kind_that_is_not_registered_is_refused() -> None:
    with pytest.raises(UnknownScheduler):
        a_plan("bach=1").check()


def test_each_scheduler_is_a_process_with_a_log_of_its_own() -> None:
    plan = a_plan("batch=1,batch:sequence=2", t_job=0.5)
    commands = plan.scheduler_commands()

    assert ["batch-0", "batch-seq0", "batch-seq1"] == list(commands)
    assert (
        "scheduler",
        "run",
        "batch",
        "--replica=seq1",
        "--seed=3",
        "--t-job=0.5",
        "--t-task=0.0",
        "--rule=sequence",
    ) == commands["batch-seq1"]
    assert not any(part.startswith("--rule") for part in commands["batch-0"])


def test_the_parameters_are_what_was_asked_for(trace: Path) -> None:
    assert ["batch=2", "service=1", "ml-gpu=1"] == a_plan().parameters()["schedulers"]
    assert 40 == a_plan().parameters()["machines"]
    assert None is a_plan(trace=trace).parameters()["machines"], "a trace has its own"
