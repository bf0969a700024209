"""Whether a mutant was caught is not a matter of opinion: tried on a project of one function."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import Clock, ManualClock, RealClock
from tests.architecture.tree import ROOT
from tests.mutants.trial import Court, Disposition, copied
from tests.unit.mutants.small_project import ADD, mutant

pytestmark = pytest.mark.slow


def court(sound: Path, clock: Clock | None = None, *, limit_s: float = 300.0) -> Court:
    clock = clock or RealClock()
    return Court(sound, clock, ["postgresql://nowhere"], stop=threading.Event(), limit_s=limit_s)


def test_the_sound_tree_passes(sound: Path) -> None:
    run = court(sound).unmutated(["tests/test_sums.py"])

    assert run.passed, run.output
    assert run.failure is None


def test_a_tree_without_tests_does_not_pass(sound: Path) -> None:
    (sound / "tests/test_sums.py").write_text("")

    assert not court(sound).unmutated(["tests/test_sums.py"]).passed


def test_a_mutant_that_a_test_notices_is_caught_by_the_first_that_does(sound: Path) -> None:
    trial = court(sound).trial(mutant("a + b - (a == 2)"))

    assert (Disposition.CAUGHT, "tests/test_sums.py::test_a_sum") == (trial.fate, trial.by)
    assert "assert 3 == 4" in trial.said
    assert ADD == (sound / "omega/sums.py").read_text(), "it was planted in a copy"


def test_one_that_only_the_books_show_is_caught(sound: Path) -> None:
    trial = court(sound).trial(mutant("a + b if a != 1 else 60"))

    assert (Disposition.CAUGHT, "tests/test_sums.py::test_a_sum") == (trial.fate, trial.by)
    assert "the books afterwards" in trial.said


def test_one_that_no_test_notices_survives(sound: Path) -> None:
    assert Disposition.SURVIVED is court(sound).trial(mutant("a + b if a < 9 else 0")).fate


@pytest.mark.parametrize("after", ["a + ", "nobody_knows", "100"])
def test_one_that_no_test_gets_to_judge_is_stillborn(sound: Path, after: str) -> None:
    before = "def add(a, b):" if after == "nobody_knows" else "a + b"

    trial = court(sound).trial(mutant(after, before=before))

    assert Disposition.STILLBORN is trial.fate
    assert trial.said


class LeapingClock(ManualClock):
    """A clock on which any time is up as soon as somebody looks again."""

    def now(self) -> float:
        self.advance(1_000.0)
        return super().now()


def test_one_that_no_test_notices_in_time_hangs(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.trial.GRACE_S", 0.5)  # Ctrl-C does not end such a sum
    trial = court(sound, LeapingClock()).trial(mutant("sum(iter(int, 1))"))

    assert Disposition.HUNG is trial.fate


def test_one_that_fits_nowhere_or_twice_cannot_be_tried(sound: Path) -> None:
    for before in ("a - b", "a"):
        with pytest.raises(ValueError, match=r"sums\.wrong: omega/sums\.py holds it"):
            court(sound).trial(mutant("0", before=before))


def test_a_tree_that_imports_omega_from_elsewhere_is_not_tested(sound: Path) -> None:
    (sound / "omega/sums.py").unlink()
    (sound / "omega/__init__.py").unlink()
    (sound / "omega").rmdir()
    run = court(sound).unmutated(["tests/test_sums.py"])

    assert not run.passed
    assert "omega is imported from" in run.output


@pytest.fixture
def copy() -> Iterator[Path]:
    with copied(ROOT) as tree:
        yield tree


def test_a_copy_holds_what_the_tests_need_and_no_environment(copy: Path) -> None:
    assert (copy / "omega/cell/judge.py").read_text() == (ROOT / "omega/cell/judge.py").read_text()
    assert {"migrations", "omega", "pyproject.toml", "schedulers", "tests"} == {
        entry.name for entry in copy.iterdir()
    }
