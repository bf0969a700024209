"""The page that `make mutants` wrote is that of the mutants there are, and all were killed."""

import re

from tests.architecture.tree import code
from tests.docs.documents import document
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.page import PAGE, killers

KILLERS = killers(document(PAGE).text)


def test_every_mutant_is_on_the_page() -> None:
    """If not: run `make mutants`, which writes it anew."""
    assert [mutant.name for mutant in MUTANTS] == list(KILLERS)


def test_every_mutant_was_killed_by_a_test_that_is_there() -> None:
    files = {source.path: source.text for source in code(".py")}
    written = {name for text in files.values() for name in re.findall(r"def (test_\w+)", text)}
    for mutant, killer in KILLERS.items():
        assert killer, mutant
        file, test = killer
        assert file in files, mutant
        assert test in written | {"runTest"}, mutant  # the latter is a state machine's
