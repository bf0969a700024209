"""The cell filled until jobs find no room, at toy size."""

from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.fragmentation import POLICIES, fill, policies
from omega.clock import ManualClock
from omega.errors import InvariantBroken
from omega.model.claims import Claims
from omega.testing.builders import a_cell, a_job, a_view, some_claims
from tests.benchmarks.conftest import PNG, Bench

SAMPLE = Path(__file__).parents[1] / "samples" / "openb"


def test_every_policy_fills_the_cell_in_every_order(bench: Bench) -> None:
    ran = bench("fragmentation", "--trace", str(SAMPLE))

    assert {(policy, order) for policy in POLICIES for order in (0, 1)} == {
        (row["policy"], row["order"]) for row in ran.rows
    }
    for row in ran.rows:
        assert 0 <= row["allocated"]["1"] <= row["allocated"]["5"] <= 1
    assert ran.document["digest"]["jobs placed"] == sum(row["placed"] for row in ran.rows) > 0
    assert "When 1, 5 jobs have found no room" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_without_the_trace_it_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["run", "fragmentation", "--smoke"])

    assert 2 == end.value.code
    assert "--trace: name the folder of the trace openb" in capsys.readouterr().err


@pytest.mark.parametrize("policy", POLICIES)
def test_the_cell_is_full_when_the_last_has_failed(policy: str) -> None:
    job = a_job(1, gpus=1)
    view = a_view(a_cell(2, gpus=2, cpu_milli=64_000))
    place = policies([job])[policy]
    filled, again = (
        fill(view, repeat(job), place, (1, 3), ManualClock(), np.random.default_rng(0))
        for _ in range(2)
    )

    assert filled == again
    assert 4 == filled.placed
    assert {1: 4_000, 3: 4_000} == filled.slices
    assert 4_000 == view.free[:, 3:].sum(), "the view is as it was"


def test_what_gives_away_more_than_there_is_is_noticed() -> None:
    claims = iter([some_claims([0], [1], cpu_milli=9_000), Claims.none()])
    view = a_view(a_cell(1, gpus=1, cpu_milli=4_000))

    with pytest.raises(InvariantBroken):
        fill(
            view,
            repeat(a_job(1, gpus=1)),
            lambda *_: next(claims),
            (1,),
            ManualClock(),
            np.random.default_rng(0),
        )
