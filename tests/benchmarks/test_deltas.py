"""The benchmark of deltas of two checkouts at toy size; the other checkout is this one again."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.deltas import Deltas, Slice
from benchmarks.postgres import statements
from benchmarks.workers import SCRIPT, ClientProcess
from tests.benchmarks.conftest import PNG, Bench, a_checkout


def test_both_checkouts_refresh_by_turns(bench_on_server: Bench, tmp_path: Path) -> None:
    ran = bench_on_server("deltas", "--before", str(a_checkout(tmp_path / "other")))

    assert {"changes, before": 4, "changes, after": 4} == ran.document["digest"]
    assert [("before", 1), ("before", 2), ("after", 1), ("after", 2)] == [
        (row["checkout"], row["round"]) for row in ran.rows
    ]
    assert all(row[name] > 0 for row in ran.rows for name in ("empty_ms", "changed_ms"))
    summary = ran.document["summary"]
    for kind in ("empty", "changed"):
        ratio = summary["ratio"][kind]
        assert ratio["lower"] <= ratio["median"] <= ratio["upper"]
    assert "reads an empty delta" in summary["finding"]
    assert ran.picture.startswith(PNG)
    assert "python" not in ran.document["parameters"], "a folder of this machine is nobody's affair"


@pytest.mark.parametrize(
    ("do", "answer", "complaint"),
    [
        ("refresh", {"rows": 4}, "5 rows changed, 4 were read"),
        ("refresh", {"full_reads": 1}, "a delta was a full read"),
        ("compare", {"are_equal": False}, "the view is not as the rows are stored"),
    ],
)
def test_a_view_that_is_wrong_ends_the_run(
    do: str,
    answer: dict[str, object],
    complaint: str,
    bench_on_server: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ClientProcess.ask

    def ask(client: ClientProcess, what: str, **message: object) -> dict[str, Any]:
        found = asked(client, what, **message)
        return {**found, **answer} if what == do else found

    monkeypatch.setattr(ClientProcess, "ask", ask)

    with pytest.raises(AssertionError, match=complaint):
        bench_on_server("deltas", "--before", str(a_checkout(tmp_path / "other")))


def test_a_client_knows_a_view_that_is_not_as_stored(database_url: str) -> None:
    with ClientProcess(sys.executable, SCRIPT) as client:
        client.ask("make_cell", url=database_url, machines=4)
        client.ask("open", url=database_url, name="client")
        client.ask("watch")
        before = client.ask("compare")
        with closing(statements.connect(database_url)) as link:  # the change is not on record
            link.call("UPDATE omega.machine SET cpu_milli_used = 1 WHERE id = 2")
        after = client.ask("compare")

    assert ({"are_equal": True}, {"are_equal": False}) == (before, after)


def test_a_ratio_above_one_says_that_this_checkout_is_faster() -> None:
    slices = {"before": [Slice(2.0, 6.0)] * 3, "after": [Slice(1.0, 4.0)] * 3}

    summary = Deltas(before=None, after=None).summary(slices)

    assert (2.0, 1.5) == tuple(summary["ratio"][kind]["median"] for kind in ("empty", "changed"))
    assert {"empty": 1.0, "changed": 4.0} == summary["after"]


def test_a_checkout_that_is_not_set_up_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "deltas", "--before", str(tmp_path)])

    assert 2 == end.value.code
    assert "run make setup there" in capsys.readouterr().err


def test_more_rows_than_there_are_cannot_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_checkout(tmp_path / "other")
    with pytest.raises(SystemExit) as end:
        main(["run", "deltas", "--before", str(other), "--machines", "50"])

    assert 2 == end.value.code
    assert "of 50 machines not 100 can change" in capsys.readouterr().err
