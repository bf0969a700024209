"""The benchmark of two checkouts at toy size; the other checkout is a folder that runs this one."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.rules import interpreter_of
from omega.errors import BadInput
from tests.benchmarks.conftest import PNG, Bench, a_checkout


def test_both_checkouts_commit_the_same_work(bench_on_server: Bench, tmp_path: Path) -> None:
    ran = bench_on_server("rules", "--before", str(a_checkout(tmp_path / "other")))

    digest = ran.document["digest"]
    assert digest["claims granted, before"] == digest["claims granted, after"] == 200
    assert 40 == digest["transactions"]
    assert 0 == digest["violations"]
    assert [("before", 1), ("before", 2), ("after", 1), ("after", 2)] == [
        (row["checkout"], row["round"]) for row in ran.rows
    ]
    assert all({"accepted": 100} == row["verdicts"] for row in ran.rows)
    summary = ran.document["summary"]
    assert summary["ratio"]["lower"] <= summary["ratio"]["median"] <= summary["ratio"]["upper"]
    assert "x as fast as" in summary["finding"]
    assert ran.picture.startswith(PNG)
    assert "python" not in ran.document["parameters"], "a folder of this machine is nobody's affair"


def test_a_checkout_that_is_not_set_up_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "rules", "--before", str(tmp_path)])

    assert 2 == end.value.code
    assert "run make setup there" in capsys.readouterr().err
    with pytest.raises(BadInput, match="run make setup there"):
        interpreter_of(tmp_path)
