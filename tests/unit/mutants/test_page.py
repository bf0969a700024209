"""The page that `make mutants` writes."""

from tests.architecture.tree import Source
from tests.docs.documents import section, table
from tests.mutants.mutant import Mutant
from tests.mutants.page import page
from tests.mutants.trial import Disposition, Trial


def trial(name: str, fate: Disposition, by: str = "") -> Trial:
    mutant = Mutant(
        name=name, file="omega/a.py", before="a", after="b", why="It is wrong.", tests=()
    )
    return Trial(mutant, fate, by)


def test_each_mutant_has_a_line_that_says_what_caught_it() -> None:
    caught = trial("sums.off", Disposition.CAUGHT, "tests/a.py::TestSums::test_a_sum[given-1::2]")
    survived = trial("sums.odd", Disposition.SURVIVED)
    hung = trial("sets.wild", Disposition.HUNG)
    told = page([caught, survived, hung])

    assert "Caught: 1 of 3." in told
    assert [
        ("`sums.off`", "`a.py`", "It is wrong.", "`tests/a.py::test_a_sum`"),
        ("`sums.odd`", "`a.py`", "It is wrong.", "**survived**"),
    ] == table(section(Source("a.md", told), "sums"))
    assert ["**hung**"] == [row[-1] for row in table(section(Source("a.md", told), "sets"))]
