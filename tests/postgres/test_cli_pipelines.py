"""`omega pipeline` on a real server."""

from pathlib import Path

import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.pipeline_contract import run
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
