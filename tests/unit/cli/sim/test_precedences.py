"""`--precedence-mix`, `--precedence-gap` and `--requeue-start` of simulations."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omega.cli.sim.plan import SimPlan
from omega.cli.sim.precedences import Mix, read_mixes, with_precedences
from omega.errors import BadInput
from omega.sim.runs import Queueing
from omega.testing.builders import a_spec
from omega.workload.arrivals import Arrival
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL

SAMPLES = Path(__file__).parents[3] / "samples"
KINDS = ("batch", "service")
HOURS = 0.012
FULL = (*CELL[:2], "--prefill-tasks", 70, "--hours", HOURS, "--queue", "live")
"""Of 80 cores, ten are free."""
PREEMPTING = (*FULL, "--placing", "service=service", "--t-job-service", 1)


def some_jobs(batch: int, service: int) -> list[Arrival]:
    kinds = ["batch"] * batch + ["service"] * service
    return [Arrival(float(at), a_spec(scheduler=kind)) for at, kind in enumerate(kinds)]


def drawn(mix: str, jobs: list[Arrival], seed: int = 0) -> dict[str, list[int]]:
    told: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for one in with_precedences(jobs, read_mixes(mix, KINDS), seed):
        told[one.spec.scheduler].append(one.spec.precedence)
    return told


def test_a_mix_is_read_with_its_weights() -> None:
    assert {
        "batch": Mix((0, 10), (0.7, 0.3)),
        "service": Mix((100,), (1.0,)),
    } == read_mixes("batch=0:0.7/10:0.3+service=100", KINDS)
    assert {"batch": Mix((-5, 5), (1.0, 1.0))} == read_mixes("batch=-5/5", KINDS)
    assert {} == read_mixes(None, KINDS)


def test_precedences_are_drawn_by_their_weights() -> None:
    told = Counter(drawn("batch=0:3/10:1", some_jobs(4_000, 0))["batch"])

    assert {0, 10} == told.keys()
    assert 2_850 < told[0] < 3_150


def test_weights_may_be_as_large_as_numbers_are() -> None:
    told = Counter(drawn("batch=0:1e308/10:1e308", some_jobs(4_000, 0))["batch"])

    assert 1_850 < told[0] < 2_150


@pytest.mark.parametrize("mix", ["batch=\u0663", "batch=0:\u0663", "batch=0:1_0", "batch=0:0x1"])
def test_numbers_are_written_in_digits(mix: str) -> None:
    with pytest.raises(BadInput, match=r"does not read|no number above 0"):
        read_mixes(mix, KINDS)


def test_a_draw_depends_on_the_seed_and_on_no_other_workload() -> None:
    jobs = some_jobs(50, 50)
    both = drawn("batch=0/10+service=50/60", jobs)

    assert both == drawn("batch=0/10+service=50/60", jobs)
    assert both["batch"] != drawn("batch=0/10", jobs, seed=1)["batch"]
    assert both["batch"] == drawn("service=7+batch=0/10", jobs)["batch"]
    assert both["service"] == drawn("service=50/60", jobs[50:])["service"]
    assert [0] * 50 == drawn("service=7", jobs)["batch"], "as they were"


def test_only_precedences_change() -> None:
    jobs = some_jobs(3, 3)
    told = with_precedences(jobs, {"service": Mix((9,), (1.0,))}, 0)

    assert jobs == [replace(one, spec=replace(one.spec, precedence=0)) for one in told]


def test_the_other_draws_of_an_experiment_are_as_they_were(jobs: Path) -> None:
    plan = SimPlan(jobs=jobs, machine_failures_every=0.2, queue=Queueing.LIVE)
    mixed = replace(plan, precedence_mix="batch=0/10")
    given = plan.read()
    without, with_mix = (one.experiment(given).workload for one in (plan, mixed))

    failures = [
        [(one.time_s, one.machine, one.up) for one in workload.machine_events]
        for workload in (without, with_mix)
    ]

    assert failures[0] == failures[1] != []
    assert without.prefill.machine.tolist() == with_mix.prefill.machine.tolist()
    assert [one.submit_s for one in without.arrivals] == [one.submit_s for one in with_mix.arrivals]
    assert {0, 10} == {one.spec.precedence for one in with_mix.arrivals}


def summary(omega: Omega, jobs: Path, *options: object) -> dict[str, Any]:
    ran = omega("sim", "run", "--jobs", jobs, *options, "--json", "-")
    told: dict[str, Any] = document(ran)["summary"]
    del told["wall_s"]
    return told


def test_who_has_precedence_evicts_and_the_document_says_whom(omega: Omega, jobs: Path) -> None:
    told = summary(omega, jobs, *PREEMPTING, "--precedence-mix", "service=100")
    batch, service = told["batch"], told["service"]

    assert batch["tasks_evicted"] > 0
    assert {"batch": 0, "service": batch["tasks_evicted"], "start": 0} == batch["tasks_evicted_by"]
    assert batch["tasks_evicted"] == told["tasks_evicted"]
    assert told["evictions_per_hour"] == pytest.approx(told["tasks_evicted"] / HOURS)
    assert 0 < batch["jobs_not_whole_again"] + (batch["whole_again_mean_s"] is not None)
    assert 0 == service["tasks_evicted"] == told["start_tasks_evicted"] == batch["tasks_lost"]
    assert 0 == told["start"]["tasks_evicted"], "what is there all the time stays"


def test_the_screen_has_a_line_for_each_workload_that_lost_tasks(omega: Omega, jobs: Path) -> None:
    full = (*PREEMPTING, "--precedence-mix", "service=100")
    ran = omega("sim", "run", "--jobs", jobs, *full)
    without = omega("sim", "run", "--jobs", jobs, *PREEMPTING)

    assert (0, 0) == (ran.code, without.code)
    assert "by service" in ran.out
    assert "evicted" not in without.out


def test_one_seed_gives_one_document_with_evictions(omega: Omega, jobs: Path) -> None:
    def of(seed: int) -> object:
        mix = ("--precedence-mix", "batch=0:0.7/10:0.3+service=100")
        return summary(omega, jobs, *PREEMPTING, *mix, "--seed", seed)

    assert of(1) == of(1)
    assert of(1) != of(2)


def test_a_wider_gap_spares_those_within_it(omega: Omega, jobs: Path) -> None:
    def evicted(*options: object) -> int:
        told = summary(omega, jobs, *PREEMPTING, "--precedence-mix", "service=15", *options)
        return int(told["tasks_evicted"])

    assert evicted() > 0
    assert evicted("--precedence-gap", 15) > 0
    assert 0 == evicted("--precedence-gap", 16)


def test_batch_preempts_if_it_is_set_to(omega: Omega, jobs: Path) -> None:
    mix = (*FULL, "--precedence-mix", "batch=0/10")
    without = summary(omega, jobs, *mix)
    told = summary(omega, jobs, *mix, "--set", "batch:preempts=true")

    assert 0 == without["tasks_evicted"]
    by_batch = [told[kind]["tasks_evicted_by"].get("batch", 0) for kind in KINDS]
    assert 0 < by_batch[0] <= sum(by_batch) == told["tasks_evicted"]


@pytest.mark.usefixtures("here")
def test_mixes_and_gaps_are_varied(omega: Omega, jobs: Path) -> None:
    swept = document(
        omega(
            *("sim", "sweep", "--jobs", jobs, *PREEMPTING, "--json", "-", "--seeds", 1),
            *("--vary", "precedence-mix=service=15,batch=0/1+service=15"),
            *("--vary", "precedence-gap=10,20"),
        )
    )
    evicted = {
        (row["precedence_mix"], row["precedence_gap"]): row["tasks_evicted"]
        for row in swept["rows"]
    }

    assert 4 == len(evicted)
    assert evicted["service=15", 10] > 0 == evicted["service=15", 20]
    assert {"service", "batch", "start"} == swept["rows"][0]["batch"]["tasks_evicted_by"].keys()


def test_tasks_of_a_traces_start_queue_again_if_that_is_asked_for(omega: Omega) -> None:
    trace = ("sim", "run", "--trace", SAMPLES / "google-2011", "--hours", 0.05, "--queue", "live")
    gone, again = (
        document(omega(*trace, "--t-job-service", 1, *options, "--json", "-"))["summary"]
        for options in ((), ("--requeue-start",))
    )

    assert gone["start_tasks_lost"] == again["start_tasks_lost"] > 0
    assert again["utilisation"] > gone["utilisation"]


@pytest.mark.parametrize(
    ("mix", "problem"),
    [
        ("bath=1", "no jobs ask for 'bath'; did you mean 'batch'?"),
        ("batch=0+batch=1", "batch is named twice"),
        ("batch", "'batch' does not read as NAME=VALUE"),
        ("batch=", "does not read as NAME=VALUE"),
        ("batch=high", "'high' does not read as PRECEDENCE:WEIGHT"),
        ("batch=1.5", "'1.5' does not read as PRECEDENCE:WEIGHT"),
        ("batch=0/", "'' does not read as PRECEDENCE:WEIGHT"),
        ("batch=2147483648", "a precedence is -2,147,483,647 to 2,147,483,647"),
        (f"batch={'9' * 5_000}", "does not read as PRECEDENCE:WEIGHT"),
        ("batch=0:1/0:2", "precedence 0 is named twice"),
        ("batch=0:0", "the weight in '0:0' is no number above 0"),
        ("batch=0:-1", "the weight in '0:-1' is no number above 0"),
        ("batch=0:nan", "no number above 0"),
        ("batch=0:inf", "no number above 0"),
        ("batch=0:x", "no number above 0"),
        ("batch=0:", "no number above 0"),
    ],
)
def test_what_is_no_mix_is_one_sentence(mix: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_mixes(mix, KINDS)

    assert problem in str(refused.value)
    assert "--precedence-mix" == refused.value.field


@pytest.mark.parametrize(
    "options",
    [
        ("--precedence-mix", "service=100"),
        ("--precedence-gap", 20),
        ("--requeue-start",),
        ("--set", "batch:preempts=true"),
    ],
)
def test_without_the_live_queue_nobody_is_evicted_and_that_is_said(
    omega: Omega, jobs: Path, options: tuple[object, ...]
) -> None:
    for verb in (("run",), ("sweep", "--vary", "hours=0.02,0.03")):
        ran = omega("sim", *verb, "--jobs", jobs, *CELL, *options)
        said = " ".join(ran.err.split())

        assert 2 == ran.code
        assert f"field {options[0]}: without --queue live" in said


def test_a_gap_is_at_least_one(omega: Omega, jobs: Path) -> None:
    assert 2 == omega("sim", "run", "--jobs", jobs, *FULL, "--precedence-gap", 0).code
