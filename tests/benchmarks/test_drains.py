"""The benchmark of drains of two checkouts at toy size; the other checkout is this one again."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.drains import Drains, Slice
from benchmarks.workers import ClientProcess
from tests.benchmarks.conftest import PNG, Bench, a_checkout

TASKS_A_DRAIN = 12


def test_both_checkouts_drain_by_turns(bench_on_server: Bench, tmp_path: Path) -> None:
    other, ran_there = a_checkout(tmp_path / "other"), tmp_path / "ran"
    python = other / ".venv" / "bin" / "python"
    python.write_text(python.read_text().replace("\n", f'\necho "$*" >> {ran_there}\n', 1))

    ran = bench_on_server("drains", "--before", str(other))

    schedulers = sorted(it for it in ran_there.read_text().splitlines() if "scheduler" in it)
    expected = [f"-P -m omega.cli scheduler run batch --replica={n}" for n in (0, 1)]
    assert expected == [it.removesuffix(" --end-with-parent") for it in schedulers]
    placed = 3 * TASKS_A_DRAIN
    assert {"tasks placed, before": placed, "tasks placed, after": placed} == ran.document["digest"]
    assert [("before", 1), ("before", 2), ("after", 1), ("after", 2)] == [
        (row["checkout"], row["round"]) for row in ran.rows
    ]
    assert all(row["seconds"] > 0 for row in ran.rows)
    summary = ran.document["summary"]
    ratio = summary["ratio"]["seconds"]
    assert ratio["lower"] <= ratio["median"] <= ratio["upper"]
    assert "2 schedulers of" in summary["finding"]
    assert ran.picture.startswith(PNG)
    assert "python" not in ran.document["parameters"], "a folder of this machine is nobody's affair"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({"live": TASKS_A_DRAIN - 1}, "12 tasks were due, 11 run"),
        ({"violations": ["used: machine 1"]}, "the cell is broken"),
    ],
)
def test_a_cell_that_is_wrong_ends_the_run(
    answer: dict[str, object],
    complaint: str,
    bench_on_server: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ClientProcess.ask

    def ask(client: ClientProcess, what: str, **message: object) -> dict[str, Any]:
        found = asked(client, what, **message)
        return {**found, **answer} if what == "check" else found

    monkeypatch.setattr(ClientProcess, "ask", ask)

    with pytest.raises(AssertionError, match=complaint):
        bench_on_server("drains", "--before", str(a_checkout(tmp_path / "other")))


def test_a_ratio_above_one_says_that_this_checkout_is_faster() -> None:
    slices = {"before": [Slice(2.0, 1.0, 0.0)] * 3, "after": [Slice(1.0, 2.0, 0.0)] * 3}
    summary = Drains(before="old", after="new").summary(slices)

    assert 2.0 == summary["ratio"]["seconds"]["median"]
    assert 0.5 == summary["ratio"]["schedulers_cpu_s"]["median"]
    assert summary["ratio"]["server_cpu_s"] is None
    assert (60_000, 120_000) == tuple(summary[it]["tasks_per_s"] for it in ("before", "after"))


def test_a_checkout_that_is_not_set_up_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "drains", "--before", str(tmp_path)])

    assert "--before" in capsys.readouterr().err
