"""`omega pipeline` on a real server."""

from pathlib import Path

import pytest

from omega.cli.pipeline.cancel import cancel_pipeline
from omega.errors import OmegaError
from omega.store.pipelines import StageEnd
from omega.store.postgres.store import PostgresStore
from omega.testing.pipeline_contract import DIAMOND, a_pipeline, queued, run, stages
from omega.testing.steps import add_a_cell
from tests.fixtures.command_line import Omega, document
from tests.unit.workload.test_pipeline_spec import CHAT

pytestmark = pytest.mark.usefixtures("kept_sessions")


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def test_a_pipeline_is_submitted_and_its_stages_are_shown(
    omega: Omega, store: PostgresStore, tmp_path: Path
) -> None:
    add_a_cell(store)
    spec = tmp_path / "chat.yaml"
    spec.write_text(
        CHAT.replace("minimum: all\n      groups: [{cpu: 2, tasks: 3}]", "groups: [{cpu: 2}]")
    )
    submitted = document(omega("pipeline", "submit", str(spec), "--json", "-"))
    (number,) = [row["pipeline"] for row in submitted["rows"]]
    run(store, number, "prefill")
    one = document(omega("pipeline", "status", str(number), "--json", "-"))
    shown = omega("pipeline", "status", str(number))
    listed = omega("pipeline", "status")

    assert [("prefill", "succeeded", False), ("decode", "pending", False)] == [
        (row["stage"], row["state"], row["late"]) for row in one["rows"]
    ]
    assert ("going on", 1) == (one["summary"]["state"], one["summary"]["ended"])
    assert f"Pipeline {number}, chat of tenant default: going on" in shown.out
    assert "1 of 2" in listed.out


def test_a_cancelled_pipeline_ends_at_once_and_only_once(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store)
    first, other = store.submit_pipelines([a_pipeline(DIAMOND), a_pipeline()])
    run(store, first, "read")
    ran = omega("pipeline", "cancel", str(first), "7", str(first))
    again = omega("pipeline", "cancel", str(first))

    assert (1, f"Pipeline {first} is cancelled; 1 of 4 stages had succeeded.") == (
        ran.code,
        ran.out.strip(),
    )
    assert "there is no pipeline 7" in ran.err
    assert (1, "") == (again.code, again.out)
    assert f"pipeline {first} is over already" in again.err
    assert {
        "read": StageEnd.SUCCEEDED,
        "fast": StageEnd.CANCELLED,
        "slow": StageEnd.CANCELLED,
        "join": StageEnd.SKIPPED,
    } == {name: stage.end for name, stage in stages(store, first).items()}
    assert ["first"] == queued(store, other)


def test_stages_that_follow_while_a_pipeline_is_cancelled_are_cancelled_too(
    store: PostgresStore,
) -> None:
    add_a_cell(store)
    (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])
    before = store.pipeline(pipeline)
    assert before is not None
    run(store, pipeline, "read")  # after the stages were read

    after = cancel_pipeline(store, before)

    assert after.finished_ms is not None
    assert [] == queued(store, pipeline)
    with pytest.raises(OmegaError, match="is over already"):
        cancel_pipeline(store, before)


def test_bad_input_is_one_sentence_and_nothing_is_stored(
    omega: Omega, store: PostgresStore, tmp_path: Path
) -> None:
    spec = tmp_path / "chat.yaml"
    for right, wrong in (
        ("after: prefill", "after: prefil"),
        ("after: prefill", "after: decode"),
        ("within: 30s", "within: 0"),
    ):
        spec.write_text(CHAT.replace(right, wrong))
        ran = omega("pipeline", "submit", str(spec))

        assert 2 == ran.code
        assert f"{spec}, line " in ran.err.replace("\n", "")
        assert [] == store.pipelines()
        assert [] == store.jobs()


def test_a_pipeline_that_never_was_is_told(omega: Omega) -> None:
    ran = omega("pipeline", "status", "7")

    assert 1 == ran.code
    assert "there is no pipeline 7" in ran.err
    assert "No pipeline was submitted" in omega("pipeline", "status").out
