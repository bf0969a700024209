"""The page that `make mutants` writes."""

from tests.architecture.tree import Source
from tests.docs.documents import section, table
from tests.mutants.mutant import Mutant
from tests.mutants.page import page
from tests.mutants.runner import Result, Status


def result(name: str, status: Status, test: str = "") -> Result:
    mutant = Mutant(
        name=name,
        file="omega/a.py",
        function="",
        before="a",
        after="b",
        why="It is wrong.",
        tests=(),
    )
    return Result(mutant, status, test)


def test_each_mutant_has_a_line_that_says_what_killed_it() -> None:
    killed = result("sums.off", Status.KILLED, "tests/a.py::TestSums::test_a_sum[given-1::2]")
    survived = result("sums.odd", Status.SURVIVED)
    timed_out = result("sets.wild", Status.TIMED_OUT)
    told = page([killed, survived, timed_out])

    assert "Killed: 1 of 3." in told
    assert [
        ("`sums.off`", "`a.py`", "It is wrong.", "`tests/a.py::test_a_sum`"),
        ("`sums.odd`", "`a.py`", "It is wrong.", "**survived**"),
    ] == table(section(Source("a.md", told), "sums"))
    assert ["**timed out**"] == [row[-1] for row in table(section(Source("a.md", told), "sets"))]
