"""`python -m schedulers.ml_gpu`, as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from schedulers.ml_gpu.__main__ import build, main
from schedulers.ml_gpu.policies.named import POLICIES


def solved(path: Path, policy: str, *more: str) -> dict[str, Any]:
    said = ["solve", str(path), "--policy", policy, "--json", "-", *more]
    result = CliRunner().invoke(build(), said, catch_exceptions=False)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_the_textbook_example_comes_to_eight_elevenths(samples: Path) -> None:
    summary = solved(samples / "gavel" / "textbook.json", "max_min_fairness_perf")["summary"]

    assert 8 / 11 == pytest.approx(summary["objective"], rel=1e-6)
    assert [0, 5 / 11] == pytest.approx(summary["allocation"][0], abs=1e-6)
    assert [1 / 11, 5 / 11] == pytest.approx(summary["allocation"][1], abs=1e-6)
    assert [10 / 11, 1 / 11] == pytest.approx(summary["allocation"][2], abs=1e-6)
    assert {"k80": 1, "v100": 1} == pytest.approx(summary["gpus_used"])
    assert [8 / 11] * 3 == pytest.approx(summary["normalised_throughput"], rel=1e-6)
    assert summary["solve_ms"] > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_solves_the_sample(samples: Path, policy: str) -> None:
    document = solved(samples / "gavel" / "textbook.json", policy)

    assert policy == document["parameters"]["policy"]
    assert document["summary"]["objective"] > 0
    assert 3 == len(document["summary"]["allocation"])
    assert ["k80", "v100"] == [row["type"] for row in document["rows"]]


def test_who_shares_gpus_is_told(samples: Path) -> None:
    summary = solved(samples / "gavel" / "textbook.json", "max_sum_throughput_packed")["summary"]
    gpus = dict.fromkeys(summary["gpus_used"], 0.0)
    apart = [sum(times) for times in zip(*summary["allocation"], strict=True)]
    for pair in summary["shared"]:
        assert 2 == len(set(pair["jobs"]))
        gpus[pair["type"]] += pair["time"]

    assert summary["shared"]
    # Two that share a GPU for a time are busy on one GPU, not on two.
    busy = [both - gpus[name] for both, name in zip(apart, gpus, strict=True)]
    assert busy == pytest.approx(list(summary["gpus_used"].values()), abs=1e-6)


def test_the_screen_says_which_pairs_share_gpus_for_longest(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = samples / "gavel" / "textbook.json"
    shared = solved(path, "max_sum_throughput_packed")["summary"]["shared"]
    longest = max(shared, key=lambda pair: pair["time"])
    with pytest.raises(SystemExit):
        main(["solve", str(path), "--policy", "max_sum_throughput_packed"])
    told = capsys.readouterr().out

    assert f"{len(shared)} pair" in told
    first, second = longest["jobs"]
    assert f"{first} and {second}" in told
    assert f"{longest['time']:.1%}" in told


def test_the_same_seed_gives_the_same(samples: Path) -> None:
    path = samples / "gavel" / "textbook.json"
    one, same = (solved(path, "fifo", "--seed", "3")["summary"]["allocation"] for _ in range(2))

    assert one == same


def test_deadlines_are_those_of_the_instance_or_every_fourth_jobs(
    samples: Path, tmp_path: Path
) -> None:
    policy = "max_sum_throughput_perf_SLOs"
    path = samples / "gavel" / "textbook.json"
    tight = solved(path, policy, "--slo-factor", "1", "--slo-every", "2")["summary"]
    document = json.loads(path.read_text())
    document["jobs"]["seconds_left"] = [None, 1_500, None]
    own = tmp_path / "own.json"
    own.write_text(json.dumps(document))
    held = solved(own, policy)["summary"]

    assert [0, 1] == pytest.approx(tight["allocation"][0], abs=1e-6)
    assert 12_000 / 1_500 <= 8 * held["normalised_throughput"][1] * (1 + 1e-6)


def test_a_person_sees_what_each_type_is_used_for(samples: Path) -> None:
    said = ["solve", str(samples / "gavel" / "textbook.json"), "--policy", "max_min_fairness_perf"]
    shown = CliRunner().invoke(build(), said).stdout

    assert "max_min_fairness_perf: level 0.727273" in shown
    assert "3 jobs; rate over that in a slot of the average cluster" in shown


def test_policies_are_listed() -> None:
    shown = CliRunner().invoke(build(), ["policies"]).stdout

    assert all(name in shown for name in POLICIES)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--policy", "max_min_fairnes_perf"], "did you mean 'max_min_fairness_perf'"),
        (["--policy", "fifo_packed", "--throughputs", "none.json"], "none.json: cannot be read"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    samples: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(samples / "gavel" / "textbook.json"), *more])

    assert 2 == ended.value.code
    assert words in capsys.readouterr().err


def test_an_instance_without_a_table_of_pairs_says_where_it_was_looked_for(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep" / "alone.json"
    path.parent.mkdir()
    path.write_text((samples / "gavel" / "textbook.json").read_text())

    with pytest.raises(SystemExit):
        main(["solve", str(path), "--policy", "max_min_fairness_packed"])

    assert "simulation_throughputs.json beside the instance or one folder up" in (
        capsys.readouterr().err
    )


REPLAY = ("--gpus", "k80=1,v100=1", "--round-s", "100")


def replayed(samples: Path, *more: str) -> list[str]:
    folder = samples / "gavel"
    rates = str(folder / "simulation_throughputs.json")
    return ["replay", str(folder / "jobs.csv"), "--throughputs", rates, *more]


def test_a_trace_is_replayed(samples: Path) -> None:
    said = replayed(samples, "--policy", "max_min_fairness_perf", *REPLAY, "--json", "-")
    result = CliRunner().invoke(build(), said, catch_exceptions=False)
    document = json.loads(result.stdout)

    assert "max_min_fairness_perf" == document["parameters"]["policy"]
    assert 4 == len(document["rows"])
    mean = sum(row["completion_s"] for row in document["rows"]) / 4
    assert mean == pytest.approx(document["summary"]["avg_jct_s"], abs=0.01)
    assert document["summary"]["makespan_s"] > mean
    assert "4 jobs in" in result.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--policy", "fifo_perf", "--gpus", "k80"], "'k80' is not TYPE=N"),
        (["--policy", "fifo_perf", "--gpus", "k80=0"], "no GPU at all"),
        (["--policy", "fifo_perf", "--gpus", "v10=4"], "on 'v10'; did you mean 'v100'"),
        (["--policy", "fifo_perf", *REPLAY, "--round-s", "inf"], "--round-s"),
        (["--policy", "max_sum_throughput_perf_SLOs", *REPLAY], "asks for what traces do not say"),
        (["--policy", "fifo_perf", *REPLAY, "--restart-s", "100"], "takes as long as a round"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(
    samples: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(replayed(samples, *more))

    assert 2 == ended.value.code
    assert words in capsys.readouterr().err


def test_a_replay_that_nobody_would_wait_for_is_refused(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = tmp_path / "rates.json"
    rates.write_text('{"k80": {"(\'A\', 1)": {"null": 1e-3}}}')
    trace = tmp_path / "jobs.csv"
    trace.write_text(
        "job_type,scale_factor,total_steps,priority_weight,arrival_s\nA,1,1000000000000,1,0\n"
    )
    said = ["replay", str(trace), "--throughputs", str(rates), "--gpus", "k80=1"]
    with pytest.raises(SystemExit) as ended:
        main([*said, "--policy", "fifo_perf"])

    assert 2 == ended.value.code
    assert "1,000,000,000,000 steps of A take 2,777,777,777,778 rounds" in capsys.readouterr().err
