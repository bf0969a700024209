"""The paper's figures at toy size: every setting is simulated, every claim is judged."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.paper import COMMANDS
from benchmarks.paper.claims import Row, first_not, keeps_up, told
from tests.benchmarks.conftest import PNG, Bench, Ran

TRACE = Path(__file__).parents[1] / "samples" / "google-2011"


def check_claims(ran: Ran) -> None:
    """Assert that a picture was drawn and that every claim was judged and counted."""
    assert ran.picture.startswith(PNG)
    claims = ran.document["summary"]["claims"]
    assert claims
    for claim in claims:
        assert claim["claim"]
        assert claim["measured"]
        assert claim["holds"] in {True, False}
    held = sum(claim["holds"] for claim in claims)
    assert f"{held} of {len(claims)} claims hold" in ran.document["summary"]["finding"]


def test_the_shares_of_batch_and_service_jobs_are_drawn_and_judged(bench: Bench) -> None:
    """In the sample, each kind submits one job within the window."""
    ran = bench("figures_2_4", "--trace", str(TRACE))

    check_claims(ran)
    assert [
        ("production", "batch"),
        ("production", "service"),
        ("class", "batch"),
        ("class", "service"),
    ] == [(row["service"], row["workload"]) for row in ran.rows]
    for row in ran.rows:
        assert (1, 0.5) == (row["jobs"], row["jobs_share"])


@pytest.mark.parametrize("figure", [figure for figure in COMMANDS if figure != "figures_2_4"])
def test_a_figure_is_simulated_judged_and_drawn(bench: Bench, figure: str) -> None:
    ran = bench(figure, "--trace", str(TRACE))

    check_claims(ran)
    assert len(ran.rows) == ran.document["digest"]["runs"]
    assert (
        0 < ran.document["digest"]["tasks_placed"] == sum(row["tasks_placed"] for row in ran.rows)
    )
    for row in ran.rows:
        assert row["batch"]["jobs"] > 0


def test_without_the_trace_its_figures_are_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["run", "figure_13", "--smoke"])

    assert 2 == end.value.code
    assert "--trace: name the folder of the trace google-2011" in capsys.readouterr().err


def a_row(x: float, *, wait_s: float | None, left: int = 0) -> Row:
    told = {"wait_mean_s": wait_s, "jobs_unfinished": left, "jobs": 100}
    return {"x": x, "batch": told}


def test_the_first_that_no_longer_keeps_up_is_found_whatever_the_order() -> None:
    rows = [a_row(3, wait_s=31), a_row(1, wait_s=1), a_row(2, wait_s=1, left=3)]

    found = first_not(rows, "x", lambda row: keeps_up(row, "batch"))

    assert 2 == found
    assert "2" == told(found, 3)


def test_what_keeps_up_to_the_end_is_told_as_more() -> None:
    found = first_not([a_row(1, wait_s=30)], "x", lambda row: keeps_up(row, "batch"))

    assert found is None
    assert "over 1" == told(found, 1)


def test_jobs_of_which_none_was_begun_do_not_keep_up() -> None:
    assert not keeps_up(a_row(1, wait_s=None), "batch")
