"""The benchmark of growing cells at toy size."""

from contextlib import closing

import pytest

from benchmarks import growth, turnover
from benchmarks.__main__ import main
from benchmarks.growth import SMOKE, Growth, Step
from benchmarks.postgres import filling, statements
from benchmarks.turnover import CLAIMS, PARTS
from omega.clock import RealClock
from omega.errors import InvariantBroken
from omega.lifecycle.states import State
from omega.store.postgres.store import PostgresStore
from omega.testing.steps import add_a_cell
from tests.benchmarks.conftest import PNG, Bench


def test_each_step_is_compared_with_the_small_cell_and_all_is_valid(bench_on_server: Bench) -> None:
    ran = bench_on_server("growth")

    rows = {(row["step"], row["part"]): row for row in ran.rows}
    assert {(str(step), part) for step in SMOKE.steps for part in PARTS} == set(rows)
    for row in rows.values():
        assert row["samples"] >= growth.ROUNDS_MIN
        assert row["times"]["lower"] <= row["times"]["median"] <= row["times"]["upper"]
    digest = ran.document["digest"]
    turns = 2 * sum(row["samples"] + 1 for row in ran.rows if row["part"] == PARTS[0])
    assert turns * (CLAIMS + 1) == digest["claims granted"] == digest["tasks ended"]
    assert turns * 2 == digest["transactions"]
    assert 3_600 == digest["claims granted, churn"] == digest["tasks ended, churn"]
    assert SMOKE.live[-1] == digest["live in the end"]
    assert 0 == digest["violations"]
    tables = ran.document["summary"]["tables"]
    assert [str(step) for step in SMOKE.steps] == list(tables)
    assert "commits of 1 and of 100 claims cost" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_the_steps_grow_and_then_churn() -> None:
    asked = Growth(live=(100, 2_000), history=(3_000_000,), churn_per_s=10)

    assert [
        Step(100, 0),
        Step(2_000, 0),
        Step(2_000, 3_000_000),
        Step(2_000, 3_000_000, churned=36_000),
    ] == asked.steps
    assert "2k live, 3M over, 36k churned" == str(asked.steps[-1])


@pytest.mark.parametrize("over", [False, True])
def test_what_is_written_in_bulk_is_what_a_valid_cell_holds(
    database_url: str, *, over: bool
) -> None:
    with (
        closing(PostgresStore(database_url)) as store,
        closing(statements.connect(database_url)) as link,
    ):
        machines = add_a_cell(store, 20, cpu_milli=10**6)
        link.call("UPDATE omega.machine SET memory_mib_capacity = 1000000")
        (template,) = store.submit([turnover.a_job("filling", filling.TASKS_PER_JOB)])
        store.cancel(template)
        filling.fill(
            link,
            300,
            over=over,
            template=template,
            machines=len(machines),
            then=lambda: None,
        )
        use = store.use()
        ended = link.call("SELECT count(*) FROM omega.ended_task")

        assert [] == list(store.verify())
        assert 30 == statements.count_transactions(link)
        assert (0 if over else 300) == use.live_allocations == use.used["cpu_milli"] // 1_000
        assert [(300 if over else 0,)] == ended
        assert 3 == use.jobs_by_state[State.SUCCEEDED if over else State.RUNNING]
        assert len(store.allocations()) == use.live_allocations


def test_a_cell_that_holds_too_little_ends_the_run(
    bench_on_server: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "fill", lambda *_, **__: None)

    with pytest.raises(AssertionError, match="allocations were to be live, 0 are"):
        bench_on_server("growth")


def test_a_refused_claim_ends_the_run(database_url: str) -> None:
    with closing(PostgresStore(database_url)) as store:
        add_a_cell(store, 20, cpu_milli=1)
        one = turnover.Turnover(store, RealClock(), 20, seed=0)
        with pytest.raises(InvariantBroken, match="a claim was refused"):
            one.turn()


@pytest.mark.parametrize("text", ["200,100", "150", "0", "many"])
def test_steps_that_do_not_grow_are_bad_usage(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "growth", "--live", text])

    assert 2 == end.value.code
    assert "--live" in capsys.readouterr().err
