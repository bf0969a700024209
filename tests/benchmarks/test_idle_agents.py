"""The benchmark of idle agents at toy size."""

import pytest

from benchmarks.__main__ import main
from benchmarks.idle_agents import SMOKE
from tests.benchmarks.conftest import PNG, Bench


def test_agents_poll_hold_their_machines_and_report(bench_on_server: Bench) -> None:
    ran = bench_on_server("idle_agents")

    assert [str(arm) for arm in SMOKE.arms] == [row["arm"] for row in ran.rows]
    for row in ran.rows:
        assert {"revision", "hold", "report"} <= set(row["by_call"])
        assert sum(row["by_call"].values()) == row["calls"] == ran.document["digest"][row["arm"]]
    assert ran.picture.startswith(PNG)


@pytest.mark.parametrize("option", ["--agents=0", "--polls=never"])
def test_bad_numbers_are_refused(option: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "idle_agents", option])

    assert 2 == end.value.code
