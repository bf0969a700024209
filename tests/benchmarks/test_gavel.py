"""The Gavel paper's experiment at toy size."""

from pathlib import Path

import pytest

from benchmarks.gavel import LINES, RESTART_S, ROUNDS_S, TYPE_AWARE, Play, play
from tests.benchmarks.conftest import PNG, Bench


def test_every_policy_is_played_at_every_load_and_rounds_of_every_length(bench: Bench) -> None:
    ran = bench("gavel")

    assert {(load, line) for load in (1.0, 4.0) for line in LINES} == {
        (row["jobs_per_hour"], row["line"]) for row in ran.rows if row["restart_s"] == 0
    }
    assert {(length, keeps) for length in ROUNDS_S for keeps in (True, False)} == {
        (row["round_s"], row["keeps_gpus"]) for row in ran.rows if row["restart_s"] == RESTART_S
    }
    assert all(row["jct_h"] > 0 and row["rounds"] > 0 for row in ran.rows)
    claims = ran.document["summary"]["claims"]
    assert ran.document["digest"]["rounds"] == round(2 * sum(row["rounds"] for row in ran.rows))
    assert all(row["deviation"]["jct_h"] > 0 for row in ran.rows)
    assert [2] * 6 == [claim["seeds"] for claim in claims]
    assert all("sd" in claim["measured"] for claim in claims[:4])
    assert ran.picture.startswith(PNG)


def test_the_seed_alone_decides() -> None:
    one = Play(line="gandiva", jobs_per_hour=4.0, jobs=12, gpus=1, seed=3)

    assert play(one) == play(one)


@pytest.mark.trace
def test_the_published_rates_can_be_used(published: Path) -> None:
    rates = published / "gavel" / "simulation_throughputs.json"
    played = play(Play(line=TYPE_AWARE, jobs_per_hour=4.0, jobs=6, gpus=1, seed=0, table=rates))

    assert 0 < played["jct_h"] <= played["makespan_h"]
