"""The status of a mutant, on a project of one function."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import Clock, ManualClock, RealClock
from tests.architecture.tree import ROOT
from tests.mutants.runner import MutantRunner, Selection, Status, copied
from tests.unit.mutants.small_project import ADD, mutant

pytestmark = pytest.mark.slow

SUMS = Selection(("tests/test_sums.py",))


def runner(original: Path, clock: Clock | None = None, *, limit_s: float = 300.0) -> MutantRunner:
    clock = clock or RealClock()
    return MutantRunner(
        original, clock, ["postgresql://nowhere"], stop=threading.Event(), limit_s=limit_s
    )


def test_the_tree_without_a_mutant_passes(original: Path) -> None:
    run = runner(original).unmutated(SUMS)

    assert run.passed, run.output
    assert run.failure is None


def test_a_tree_without_tests_does_not_pass(original: Path) -> None:
    (original / "tests/test_sums.py").write_text("")

    assert not runner(original).unmutated(SUMS).passed


def test_a_mutant_that_a_test_notices_is_killed_by_the_first_that_does(original: Path) -> None:
    result = runner(original).test(mutant("a + b - (a == 2)"))

    assert (Status.KILLED, "tests/test_sums.py::test_a_sum") == (result.status, result.test)
    assert "assert 3 == 4" in result.message
    assert ADD == (original / "omega/sums.py").read_text(), "it was planted in a copy"


def test_tests_that_are_first_are_asked_before_the_others(original: Path) -> None:
    first = Selection(SUMS.paths, ("test_a_sum_with_nothing",))

    by_first = runner(original).test(mutant("a - b"), first)
    by_another = runner(original).test(mutant("a + b - (a == 2)"), first)

    assert (Status.KILLED, "tests/test_sums.py::test_a_sum_with_nothing") == (
        by_first.status,
        by_first.test,
    )
    assert (Status.KILLED, "tests/test_sums.py::test_a_sum") == (
        by_another.status,
        by_another.test,
    )


def test_a_first_test_that_is_not_there_any_more_leaves_it_to_the_others(original: Path) -> None:
    result = runner(original).test(mutant("a - b"), Selection(SUMS.paths, ("test_a_product",)))

    assert (Status.KILLED, "tests/test_sums.py::test_a_sum") == (result.status, result.test)


def test_one_that_only_a_teardown_notices_is_killed(original: Path) -> None:
    result = runner(original).test(mutant("a + b if a != 1 else 60"))

    assert (Status.KILLED, "tests/test_sums.py::test_a_sum") == (result.status, result.test)
    assert "the teardown checks too" in result.message


def test_one_that_no_test_notices_survives(original: Path) -> None:
    assert Status.SURVIVED is runner(original).test(mutant("a + b if a < 9 else 0")).status


@pytest.mark.parametrize("after", ["a + ", "nobody_knows", "100"])
def test_one_under_which_no_test_can_begin_is_invalid(original: Path, after: str) -> None:
    before = "def add(a, b):" if after == "nobody_knows" else "a + b"

    result = runner(original).test(mutant(after, before=before))

    assert Status.INVALID is result.status
    assert result.message


class LeapingClock(ManualClock):
    """A clock on which any time is up as soon as somebody looks again."""

    def now(self) -> float:
        self.advance(1_000.0)
        return super().now()


def test_one_that_no_test_notices_in_time_is_timed_out(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.runner.GRACE_S", 0.5)  # Ctrl-C does not end such a sum
    result = runner(original, LeapingClock()).test(mutant("sum(iter(int, 1))"))

    assert Status.TIMED_OUT is result.status


def test_one_that_has_no_place_or_two_is_an_error(original: Path) -> None:
    for before, where in (("a - b - a", "nowhere"), ("a", "in lines 2, 3")):
        with pytest.raises(ValueError, match=rf"sums\.wrong: .*omega/sums\.py holds it {where}"):
            runner(original).test(mutant("0", before=before))


def test_a_tree_that_imports_omega_from_elsewhere_is_not_tested(original: Path) -> None:
    (original / "omega/sums.py").unlink()
    (original / "omega/__init__.py").unlink()
    (original / "omega").rmdir()
    run = runner(original).unmutated(SUMS)

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
