"""The page that `make mutants` wrote is that of the mutants there are, and all were caught."""

import re

from tests.architecture.tree import code
from tests.docs.documents import document
from tests.mutants.everywhere import MUTANTS
from tests.mutants.page import PAGE

ROW = re.compile(r"^\| `(.+?)` \| `.+?` \| .+ \| (.+) \|$", re.MULTILINE)
BY_A_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS: list[tuple[str, str]] = ROW.findall(document(PAGE).text)


def test_every_mutant_is_on_the_page() -> None:
    """If not: run `make mutants`, which writes it anew."""
    assert [mutant.name for mutant in MUTANTS] == [name for name, _ in ROWS]


def test_every_mutant_was_caught_by_a_test_that_is_there() -> None:
    files = {source.path: source.text for source in code(".py")}
    written = {name for text in files.values() for name in re.findall(r"def (test_\w+)", text)}
    for mutant, by in ROWS:
        match = BY_A_TEST.fullmatch(by)

        assert match, f"{mutant}: {by}"
        assert match[1] in files, mutant
        assert match[2] in written | {"runTest"}, mutant  # the latter is a state machine's
