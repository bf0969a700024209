"""`omega sim sweep --vary set:NAME=...`: settings of schedulers as axes."""

from pathlib import Path

from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL
from tests.fixtures.sweeps import Here

SWEEP = ("sim", "sweep", *CELL, "--hours", 0.008)


def test_settings_of_a_scheduler_are_varied_and_resumed(
    omega: Omega, jobs: Path, here: Here, tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    sweep = (
        *(*SWEEP, "--jobs", jobs, "--queue", "live", "--placing", "ml-gpu"),
        *("--set", "policy=fifo", "--vary", "set:round=2,7"),
    )

    rows = document(omega(*sweep, "--json", "-"))["rows"]
    assert 0 == omega(*sweep, "--vary", "set:batch:resets_after=3", "--json", told).code
    runs = here.runs
    again = document(
        omega(*sweep, "--vary", "set:batch:resets_after=3,9", "--resume", told, "--json", "-")
    )

    assert [2, 7] == [row["set:round"] for row in rows]
    assert rows[0]["batch"]["wait_mean_s"] < rows[1]["batch"]["wait_mean_s"]
    assert 2 == again["summary"]["points_reused"]
    assert 2 == here.runs - runs
    assert [3, 9, 3, 9] == [row["set:batch:resets_after"] for row in again["rows"]]


def test_a_setting_that_was_told_once_is_varied_later(
    omega: Omega, jobs: Path, here: Here, tmp_path: Path
) -> None:
    told, picture = tmp_path / "told.json", tmp_path / "sweep.svg"
    sweep = (*SWEEP, "--jobs", jobs, "--queue", "live", "--placing", "ml-gpu", "--seed", 3)

    once = (*sweep, "--set", "round=2", "--vary", "t-job-service=1,2", "--json", told)
    assert 0 == omega(*once).code
    runs = here.runs
    ran = omega(
        *(*sweep, "--vary", "set:round=2,7", "--vary", "t-job-service=1"),
        *("--vary", "set:policy=fifo,max_min_fairness", "--plot", picture, "--resume", told),
    )

    assert 0 == ran.code, ran.err
    assert 4 == here.runs - runs  # the policy was not told before
    again = omega(*sweep, "--vary", "set:round=2,7", "--t-job-service", 1, "--resume", told)
    assert 0 == again.code, again.err
    assert 5 == here.runs - runs
    assert "set:round" in again.out
    assert "set:policy fifo" in picture.read_text()
