"""`omega sim` on traces: machines, start state and kinds of schedulers are those of the trace."""

from pathlib import Path

import pytest

from omega.cli.sim.plan import SimPlan
from omega.errors import BadInput, UnknownScheduler
from omega.model.claims import ConflictRule
from omega.sim.experiment import Architecture
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL

SAMPLES = Path(__file__).parents[3] / "samples"
GOOGLE, OPENB, LISTS = (SAMPLES / name for name in ("google-2011", "openb", "omega-sim"))


@pytest.mark.parametrize("trace", [GOOGLE, OPENB])
@pytest.mark.parametrize("architecture", ["shared-state", "monolithic"])
def test_a_trace_is_run_as_it_is(omega: Omega, trace: Path, architecture: str) -> None:
    told = document(
        omega(
            *("sim", "run", "--trace", trace, "--architecture", architecture, "--audit"),
            *("--hours", 0.3, "--t-job-service", 1, "--json", "-"),
        )
    )
    kinds = {"batch", "service"} if trace is GOOGLE else {"batch", "service", "ml-gpu"}

    assert (trace.name, None) == (told["parameters"]["trace"], told["parameters"]["jobs"])
    there = kinds & told["summary"].keys()
    assert len(there) >= 2
    assert all(told["summary"][kind]["jobs_attempted"] for kind in there)
    assert told["summary"]["tasks_placed"] > 0
    assert told["summary"]["audited"] > 0


def test_what_the_trace_records_of_machines_happens(omega: Omega) -> None:
    def told(*options: object) -> dict[str, object]:
        ran = omega("sim", "run", "--trace", GOOGLE, "--hours", 0.2, *options, "--json", "-")
        summary: dict[str, object] = document(ran)["summary"]
        return summary

    assert told()["start_tasks_lost"]
    assert not told("--trace-option", "machines=stay")["start_tasks_lost"]
    assert told("--trace-option", "machines=stay", "--architecture", "two-level")["events"]


def test_machines_fail_as_the_seed_has_it(omega: Omega, jobs: Path) -> None:
    def lost(seed: int) -> tuple[int, int]:
        short = (*CELL, "--hours", 0.02, "--audit", "--seed", seed)
        failing = ("--machine-failures-every", 0.03, "--machine-repair", 20)
        ran = omega("sim", "run", "--jobs", jobs, *short, *failing, "--json", "-")
        summary = document(ran)["summary"]
        assert summary["tasks_lost"] == sum(summary[k]["tasks_lost"] for k in ("batch", "service"))
        return summary["tasks_lost"], summary["start_tasks_lost"]

    assert lost(1) == lost(1) != lost(2)
    assert all(lost(1))


def test_each_kind_places_what_is_its_own() -> None:
    plan = SimPlan(
        trace=OPENB,
        rule=ConflictRule.SEQUENCE,
        batch_schedulers=3,
        service_schedulers=2,
        t_job_batch=1.0,
        t_job_service=7.0,
    )
    experiment = plan.experiment(plan.read())
    made = {kind: experiment.scheduler(kind) for kind in experiment.decision_times}

    known = {"batch": BatchScheduler, "service": ServiceScheduler, "ml-gpu": MlGpuScheduler}
    assert made.keys() <= known.keys()
    assert "ml-gpu" in made
    for kind, scheduler in made.items():
        assert type(scheduler) is known[kind]
        assert (ConflictRule.SEQUENCE, 1) == (scheduler.rule, scheduler.jobs_per_transaction)
        is_service = kind == "service"
        assert (2 if is_service else 3) == experiment.schedulers[kind]
        assert (7.0 if is_service else 1.0) == experiment.decision_times[kind].job_s


def test_a_list_is_placed_by_random_first_fit_as_in_the_reference(jobs: Path) -> None:
    plan = SimPlan(jobs=jobs)
    experiment = plan.experiment(plan.read())

    assert {BatchScheduler} == {type(experiment.scheduler(kind)) for kind in ("batch", "service")}


def test_a_trace_is_the_same_whatever_the_seed() -> None:
    first, second = (
        plan.experiment(plan.read()).workload
        for plan in (SimPlan(trace=LISTS, seed=1), SimPlan(trace=LISTS, seed=2))
    )

    assert first.prefill.machine.tolist() == second.prefill.machine.tolist()


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ((), "--jobs", "name a job list"),
        (("--trace", GOOGLE, "--jobs", "list.csv"), "--trace", "one of the two"),
        (("--trace", GOOGLE, "--machines", 10), "--machines", "a trace brings machines"),
        (("--trace", GOOGLE, "--prefill-tasks", 0), "--prefill-tasks", "a trace brings"),
        (("--jobs", "list.csv", "--trace-option", "jobs=W1"), "--trace-option", "no such"),
        (("--trace", GOOGLE, "--trace-option", "jobs=W1"), "jobs", "has no such option"),
        (("--trace", SAMPLES), "", "no known trace"),
    ],
)
def test_what_does_not_go_together_is_bad_usage(
    omega: Omega, options: tuple[object, ...], field: str, problem: str
) -> None:
    for verb in (("run",), ("sweep", "--vary", "seed=1,2")):
        ran = omega("sim", *verb, *options)
        said = " ".join(ran.err.split())

        assert 2 == ran.code
        assert field in said
        assert problem in said


@pytest.mark.parametrize(
    ("option", "problem"),
    [(("--architecture", "two-level"), "offers"), (("--machine-failures-every", 1), "own")],
)
def test_machine_events_that_are_not_simulated_are_refused(
    omega: Omega, option: tuple[object, ...], problem: str
) -> None:
    ran = omega("sim", "run", "--trace", GOOGLE, *option)
    said = " ".join(ran.err.split())

    assert 2 == ran.code
    assert f"field {option[0]}" in said
    assert problem in said
    assert "--trace-option machines=stay" in said


def test_traces_are_varied_and_their_options_are_not(omega: Omega) -> None:
    said = omega("sim", "sweep", "--trace", OPENB, "--vary", "trace-option=times=replay")
    same = omega("sim", "sweep", "--vary", f"trace={GOOGLE},{GOOGLE}")

    assert (2, 2) == (said.code, same.code)
    assert "not be varied" in " ".join(said.err.split())
    assert "a value twice" in " ".join(same.err.split())


def test_a_kind_that_nobody_places_is_named() -> None:
    plan = SimPlan(trace=OPENB, architecture=Architecture.MONOLITHIC)
    workload = plan.read()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("omega.framework.kinds.kind_entries", lambda: ())
        with pytest.raises(UnknownScheduler, match="batch"):
            plan.experiment(workload)
    with pytest.raises(BadInput, match="this is no folder"):
        SimPlan(trace=GOOGLE / "none").read()
