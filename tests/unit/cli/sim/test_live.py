"""`omega sim run --queue live`: the processes that run live, on a memory store in virtual time."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from omega.framework import kinds
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL
from tests.unit.framework.loops import InOrder

SHORT = (*CELL, "--hours", 0.02)


class Stranger(InOrder):
    """Somebody else's scheduler."""

    kind = "stranger"


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it registered, as a package's entry point would."""
    known = kinds.kind_entries()
    theirs = EntryPoint("stranger", f"{__name__}:Stranger", kinds.ENTRY_POINT_GROUP)
    monkeypatch.setattr(kinds, "kind_entries", lambda: [*known, theirs])


def summary(omega: Omega, jobs: Path, *options: object) -> dict[str, Any]:
    ran = omega("sim", "run", "--jobs", jobs, *SHORT, "--queue", "live", *options, "--json", "-")
    told: dict[str, Any] = document(ran)["summary"]
    del told["wall_s"]
    return told


@pytest.mark.parametrize("sync", ["delta", "full", "partitioned"])
def test_all_ways_to_synchronise_place_the_jobs(omega: Omega, jobs: Path, sync: str) -> None:
    parts = ("--parts", 8) if sync == "partitioned" else ()
    told = summary(omega, jobs, "--sync", sync, "--batch-schedulers", 3, *parts)

    for workload in ("batch", "service"):
        assert told[workload]["jobs_attempted"] > 0
        assert told[workload]["tasks_placed"] > 0
        assert 0 < told[workload]["think_started"] <= 1


def test_one_seed_gives_one_document(omega: Omega, jobs: Path) -> None:
    def of(seed: int) -> object:
        return summary(omega, jobs, "--batch-schedulers", 3, "--seed", seed, "--hours", 0.01)

    assert of(1) == of(1)
    assert of(1) != of(2)


def test_replicas_of_a_kind_share_the_work(omega: Omega, jobs: Path) -> None:
    ran = omega(
        *("sim", "run", "--jobs", jobs, *SHORT, "--queue", "live"),
        *("--batch-schedulers", 2, "--t-job-batch", 1.5, "--json", "-"),
    )
    busy = {row["scheduler"]: row["think_started"] for row in document(ran)["rows"]}

    assert {"batch-0", "batch-1", "service-0"} == busy.keys()
    assert min(busy.values()) > 0.1


@pytest.mark.usefixtures("stranger")
def test_a_strangers_scheduler_takes_part_beside_ours(omega: Omega, jobs: Path) -> None:
    told = summary(omega, jobs, "--placing", "batch=stranger")

    assert told["batch"]["tasks_placed"] > 0
    assert told["service"]["tasks_placed"] > 0


def test_rounds_play_beside_schedulers_that_place_job_by_job(omega: Omega, jobs: Path) -> None:
    told = summary(omega, jobs, "--placing", "service=ml-gpu", "--set", "service:round=5")

    assert told["batch"]["tasks_placed"] > 0
    assert told["service"]["tasks_placed"] > 0
    # Of 72 s a round begins every 5, and each is decided on for 10 s.
    assert 0.5 < told["service"]["think_started"] <= 1


def test_what_fails_is_cleared_and_placed_anew(omega: Omega, jobs: Path) -> None:
    told = summary(omega, jobs, "--machine-failures-every", 0.1, "--machine-repair", 20)

    assert told["tasks_lost"] > 0
    assert told["batch"]["tasks_placed"] > 0


@pytest.mark.usefixtures("here")
def test_a_live_run_can_be_drawn_and_swept(omega: Omega, jobs: Path, tmp_path: Path) -> None:
    plot = tmp_path / "run.png"
    options = (*CELL, "--queue", "live", "--hours", 0.01)

    assert 0 == omega("sim", "run", "--jobs", jobs, *options, "--plot", plot).code
    assert plot.read_bytes().startswith(b"\x89PNG")
    swept = document(
        omega(
            *("sim", "sweep", "--jobs", jobs, *options, "--vary", "sync=delta,partitioned"),
            *("--vary", "placing=batch,service", "--json", "-"),
        )
    )
    assert 4 == len(swept["rows"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--sync", "partitioned"), "need --queue live"),
        (("--placing", "ml-gpu", "--set", "round=60"), "rounds"),
        (("--queue", "live", "--architecture", "monolithic"), "where state is shared"),
        (("--queue", "live", "--assignment", "least-loaded"), "one queue"),
        (("--queue", "live", "--audit"), "checked at its end"),
        (("--placing", "nobody"), "nobody"),
        (("--placing", "batc=batch"), "did you mean 'batch'"),
        (("--placing", "batch=batch+batch=service"), "twice"),
        (("--placing", "batch="), "--placing"),
        (("--set", "x=1"), "no setting 'x'"),
        (("--set", "bath:x=1"), "bath"),
        (("--set", "x=1", "--set", "x=2"), "twice"),
        (("--set", "x"), "--set"),
        (("--queue", "live", "--sync", "partitioned", "--gap", 0), "--gap"),
        (("--queue", "live", "--gap", 2), "only --sync partitioned"),
        (("--queue", "live", "--parts", 4), "only --sync partitioned"),
        (("--queue", "live", "--sync", "partitioned", "--parts", 3), "a multiple of 2"),
    ],
)
def test_what_cannot_be_simulated_is_one_sentence(
    omega: Omega, jobs: Path, options: tuple[object, ...], problem: str
) -> None:
    ran = omega("sim", "run", "--jobs", jobs, *CELL, *options)

    assert 2 == ran.code
    assert problem in " ".join(ran.err.split())
