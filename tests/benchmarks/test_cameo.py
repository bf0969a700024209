"""Pipelines by start deadlines, on a trace of our own making."""

import gzip
from pathlib import Path

import pytest

from benchmarks.cameo_cell import Play, play
from benchmarks.llm_requests import read_requests
from omega.errors import BadInput
from tests.benchmarks.conftest import PNG, Bench

TRACE = Path(__file__).parents[1] / "samples" / "azure-llm-2023"
HEADER = "arrival_s,context_tokens,generated_tokens\n"


@pytest.mark.slow
def test_claims_are_judged_by_what_was_run(bench: Bench) -> None:
    ran = bench("cameo", "--trace", str(TRACE))

    assert 0 == ran.code
    assert {"alone", "load", "noise", "noise alone", "spike"} == {
        row["experiment"] for row in ran.rows
    }
    assert 7 == len(ran.document["summary"]["claims"])
    assert ran.document["digest"]["stages"] > 0
    assert ran.picture.startswith(PNG)


def test_a_run_is_the_same_again_and_ends_all_its_pipelines() -> None:
    it = Play(trace=TRACE, order="deadline", slots=8, horizon_s=10, seed=3)
    first = play(it)

    assert first == play(it)
    assert 1.0 == first["code"]["success"]


def test_a_window_goes_round_the_trace_and_begins_at_nothing() -> None:
    requests = read_requests(TRACE, "code")
    window = requests.window(50, 70)

    assert 60 == len(requests.arrival_s)
    assert 70 == len(window.arrival_s)
    assert 0 == window.arrival_s[0]
    assert (window.arrival_s[1:] >= window.arrival_s[:-1]).all()
    assert requests.context[0] == window.context[10]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("0,5,many\n", 2, "generated_tokens"),
        ("0,5,1\n1,-3,1\n", 3, "context_tokens"),
        ("nan,5,1\n", 2, "arrival_s"),
        ("1e9,5,1\n", 2, "arrival_s"),
        ("0,5\n", 2, "generated_tokens"),
        (f"0,{'9' * 5_000},1\n", 2, "context_tokens"),
    ],
)
def test_a_line_that_is_none_is_told(tmp_path: Path, text: str, line: int, field: str) -> None:
    (tmp_path / "code.csv.gz").write_bytes(gzip.compress((HEADER + text).encode()))

    with pytest.raises(BadInput) as refusal:
        read_requests(tmp_path, "code")

    assert (line, field) == (refusal.value.line, refusal.value.field)


def test_a_folder_without_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_requests(tmp_path, "conv")
    (tmp_path / "conv.csv.gz").write_bytes(gzip.compress(HEADER.encode()))
    with pytest.raises(BadInput, match="no request in it"):
        read_requests(tmp_path, "conv")
