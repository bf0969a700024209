"""The command: what it says, what it writes, and how it ends."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import tests.mutants.__main__ as command
from tests.mutants.page import PAGE
from tests.unit.mutants.small_project import mutant

pytestmark = pytest.mark.slow

KILLED = mutant("a - b", name="sums.a-difference")
SURVIVOR = mutant("a + b if a < 9 else 0", name="sums.wrong-from-nine-on")


@pytest.fixture
def project(original: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small project, in place of ours, and no server for it."""
    (original / "docs").mkdir()
    monkeypatch.setattr(command, "ROOT", original)
    monkeypatch.setattr(command, "servers", lambda number: nullcontext(["nowhere"] * number))
    monkeypatch.setattr(command, "MUTANTS", (SURVIVOR, KILLED))
    return original


def run(*words: str) -> Result:
    app = typer.Typer()
    app.command()(command.main)
    return CliRunner().invoke(app, words)


def test_a_mutant_that_survives_is_a_failure_and_is_on_the_page(project: Path) -> None:
    ended = run("--json", str(project / "out.json"))
    told = json.loads((project / "out.json").read_text())
    page = (project / PAGE).read_text()

    assert 1 == ended.exit_code, ended.output
    assert "1 of 2 killed" in ended.output
    assert (1, 1) == (told["summary"]["killed"], told["summary"]["survived"])
    assert [SURVIVOR.name, KILLED.name] == [row["mutant"] for row in told["rows"]]
    assert page.index(f"`{SURVIVOR.name}`") < page.index("**survived**") < page.index(KILLED.name)


def test_one_mutant_is_tested_alone_and_the_page_stays_as_it_was(project: Path) -> None:
    ended = run("--only", KILLED.name)

    assert 0 == ended.exit_code, ended.output
    assert "1 of 1 killed" in ended.output
    assert not (project / PAGE).exists()


def test_the_test_that_killed_a_mutant_last_is_asked_first(project: Path) -> None:
    run()
    written = (project / PAGE).read_text()
    (project / PAGE).write_text(written.replace("test_a_sum`", "test_a_sum_with_nothing`"))

    assert "1 of 2 killed" in run().output
    assert "tests/test_sums.py::test_a_sum_with_nothing" in (project / PAGE).read_text()


def test_a_mutant_that_its_last_killer_lets_pass_is_tried_with_all_tests(project: Path) -> None:
    run()
    written = (project / PAGE).read_text()
    (project / PAGE).write_text(written.replace("test_a_sum`", "test_a_sum_of_old`"))

    assert "1 of 2 killed" in run().output
    assert written == (project / PAGE).read_text()


def test_a_test_that_fails_without_a_mutant_kills_none(project: Path) -> None:
    run()
    tests = project / "tests/test_sums.py"
    passes = "def test_that_passes():\n    pass\n"
    tests.write_text(f"{passes}\ndef test_that_fails():\n    assert False\n{tests.read_text()}")
    written = (project / PAGE).read_text()
    (project / PAGE).write_text(
        written.replace("test_a_sum`", "test_that_passes`").replace(
            "**survived**", "`tests/test_sums.py::test_that_passes`"
        )
    )

    ended = run()

    assert 1 == ended.exit_code
    assert "0 of 2 killed" in ended.output
    assert 2 == (project / PAGE).read_text().count("**invalid**")


def test_tests_that_fail_without_a_mutant_prove_nothing(project: Path) -> None:
    (project / "omega/sums.py").write_text("def add(a, b):\n    return 3 + 0 * (a + b)\n")

    ended = run()

    assert 1 == ended.exit_code
    assert "tests/test_sums.py::test_a_sum fails without a mutant" in ended.output
    assert not (project / PAGE).exists()


def test_a_mutant_that_is_not_there_is_told_with_those_that_are(project: Path) -> None:
    ended = run("--only", "sums.right")

    assert 2 == ended.exit_code
    assert "there is no mutant sums.right" in ended.output
    assert KILLED.name in ended.output
