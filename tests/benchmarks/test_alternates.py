"""The benchmark of alternates at toy size."""

import pytest

from benchmarks.__main__ import main
from benchmarks.alternates import FIGURES, HOW, KINDS, SMOKE, Alternates
from benchmarks.alternates_price import CLAIMS
from tests.benchmarks.conftest import PNG, Bench


def test_contests_are_held_and_simulated_and_commits_are_timed(bench_on_server: Bench) -> None:
    ran = bench_on_server("alternates")

    contests = [row for row in ran.rows if row["measures"] != "price"]
    assert [(how, kind, number) for how in HOW for kind in KINDS for number in (0, 1)] == [
        (row["measures"], row["kind"], row["alternates"]) for row in contests
    ]
    for row in contests:
        assert row["commits_per_job"] >= 1
        assert row["tasks_per_s"] > 0
        assert all(row[f"{name}_sd"] >= 0 for name in FIGURES)
    price = [row for row in ran.rows if row["measures"] == "price"]
    assert [(n, m) for n in CLAIMS for m in (0, 1)] == [
        (row["claims"], row["alternates"]) for row in price
    ]
    assert all(row["p99_ms"] >= row["p50_ms"] > 0 for row in price)
    assert [1.0] * len(CLAIMS) == [
        row["over_none"]["median"] for row in price if not row["alternates"]
    ]
    digest = ran.document["digest"]
    assert len(SMOKE.points) == digest["contests"]
    assert digest["tasks placed live"] > 0
    assert digest["tasks placed in virtual time"] > 0
    assert SMOKE.price_rounds * len(price) == digest["commits timed"]
    assert (
        "Conflict fraction with 0, 1 alternates: batch live" in ran.document["summary"]["finding"]
    )
    assert ran.picture.startswith(PNG)


def test_the_same_jobs_arrive_whatever_the_number_of_alternates() -> None:
    benchmark = Alternates(machines=60, schedulers=2, simulated_s=20.0)
    none, one, two = (
        benchmark.simulate(point, seed=1) for point in benchmark.points if point.kind == "batch"
    )

    assert none == benchmark.simulate(benchmark.points[0], seed=1)
    assert none != one
    assert two["tasks"] > 0


def test_bad_usage_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, problem in (
        (["--alternates", "9"], "not in 0 to 8"),
        (["--kinds", "ml-gpu"], "'ml-gpu' is none of batch, service"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["run", "alternates", *arguments])

        assert 2 == end.value.code
        assert problem in " ".join(capsys.readouterr().err.split())
