"""The page that says which test caught which mutant."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.trial import Disposition, Trial

PAGE = "docs/mutants.md"

HEAD = """\
# The tests are tested

Does a test notice when the commit rule is wrong? `make mutants` plants small faults, one at a time,
in a copy of the project, and runs tests on it until the first fails. It wrote this page. A mutant
counts as caught only if a test that could begin has failed; one that makes the tests hang, or that
cannot even be installed, does not. Before all that, the same tests must pass without any mutant.
Examples are the same in each run: hypothesis draws them from fixed seeds.
"""


def page(trials: Sequence[Trial]) -> str:
    """Return the page, with a table for each part of the project that has mutants."""
    caught = sum(trial.fate is Disposition.CAUGHT for trial in trials)
    parts = dict.fromkeys(part_of(trial.mutant) for trial in trials)
    tables = [
        "\n".join(_table(part, [trial for trial in trials if part_of(trial.mutant) == part]))
        for part in parts
    ]
    return "\n".join([HEAD, f"Caught: {caught} of {len(trials)}.", "", "\n\n".join(tables), ""])


def part_of(mutant: Mutant) -> str:
    """Return the first word of a mutant's name: what it is a fault of."""
    return mutant.name.split(".")[0]


def _table(part: str, trials: Sequence[Trial]) -> Iterator[str]:
    yield f"## {part}"
    yield ""
    yield "| mutant | in | what would come of it | caught by |"
    yield "|---|---|---|---|"
    for trial in trials:
        mutant = trial.mutant
        by = f"`{test_of(trial)}`" if trial.fate is Disposition.CAUGHT else f"**{trial.fate}**"
        yield f"| `{mutant.name}` | `{Path(mutant.file).name}` | {mutant.why} | {by} |"


def test_of(trial: Trial) -> str:
    """Return which test caught a mutant: its file and its own name, whatever its parameters."""
    file, _, inside = trial.by.split("[")[0].partition("::")
    return f"{file}::{inside.split('::')[-1]}" if inside else file
