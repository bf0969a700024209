"""The house rules hold for every file, and each rule can fail."""

from copy import copy

import pytest

from tests.architecture import tidy
from tests.architecture.tidy import FOR_CODE, FOR_EVERYTHING, FOR_PYTHON, Rule
from tests.architecture.tree import Source, code, written_files

IN_OMEGA = "omega/cell/judge.py"
IN_CLI = "omega/cli/status/command.py"
IN_TESTS = "tests/unit/cell/test_judge.py"


@pytest.fixture(scope="module")
def python_complaints() -> dict[Rule, list[str]]:
    """Complaints by rule. Each file is parsed once for all rules, and its tree is not kept."""
    complaints: dict[Rule, list[str]] = {rule: [] for rule in FOR_PYTHON}
    for file in map(copy, code(".py")):  # of the copies, one at a time has a tree
        for rule in FOR_PYTHON:
            complaints[rule] += rule(file)
    return complaints


@pytest.mark.parametrize("rule", FOR_PYTHON)
def test_python_keeps_the_rule(rule: Rule, python_complaints: dict[Rule, list[str]]) -> None:
    complaints = python_complaints[rule]

    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rule", FOR_CODE)
def test_code_keeps_the_rule(rule: Rule) -> None:
    complaints = [complaint for file in code(".py", ".sql") for complaint in rule(file)]

    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rule", FOR_EVERYTHING)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    complaints = [complaint for file in written_files() for complaint in rule(file)]

    assert not complaints, "\n".join(complaints)


def test_the_rules_see_this_very_file() -> None:
    assert "tests/architecture/test_tidy.py" in {file.path for file in code(".py")}
    assert {"Makefile", "pyproject.toml"} <= {file.path for file in written_files()}


def test_an_exception_is_a_file_that_is_there() -> None:
    exceptions = {tidy.CLOCK, *tidy.GENERATORS_MADE_IN, *tidy.OTHER_RNGS, *tidy.PRINTING}

    assert exceptions <= {file.path for file in code(".py")}


BAD: list[tuple[Rule, str, str]] = [
    (tidy.has_a_docstring, IN_TESTS, "x = 1"),
    (tidy.says_goal_promise_and_source, IN_OMEGA, "def f(): ..."),
    (tidy.says_goal_promise_and_source, IN_OMEGA, '"""A.\n\nGoal     B.\nPromise  C.\n"""\nx = 1'),
    (tidy.says_goal_promise_and_source, "omega/__init__.py", '"""A."""\ndef f(): ...'),
    (tidy.has_short_functions, IN_TESTS, "def f():\n" + "    x = 1\n" * 60),
    (tidy.has_short_functions, IN_TESTS, "async def f():\n" + "    x = 1\n" * 60),
    (tidy.is_not_too_long, "migrations/a.sql", "\n" * 401),
    (tidy.is_named_for_what_it_holds, "omega/cell/utils.py", ""),
    (tidy.is_named_for_what_it_holds, "omega/common/arrays.py", ""),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "import time"),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "from time import monotonic"),
    (tidy.leaves_the_time_to_the_clock, IN_TESTS, "from time import sleep"),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "datetime.now(UTC)"),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "datetime.datetime.utcnow()"),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "date.today()"),
    (tidy.keeps_sql_at_home, IN_OMEGA, "run('SELECT 1')"),
    (tidy.keeps_sql_at_home, IN_OMEGA, 'x = """\n  INSERT INTO machine VALUES (1)"""'),
    (tidy.keeps_sql_at_home, IN_OMEGA, "f'DELETE FROM {table}'"),
    (tidy.keeps_sql_at_home, IN_OMEGA, "'WITH a AS (VALUES (1)) TABLE a'"),
    (tidy.keeps_sql_at_home, IN_OMEGA, "'CREATE UNIQUE INDEX i ON t (a)'"),
    (tidy.keeps_sql_at_home, IN_OMEGA, "'UPDATE job SET state = 1'"),
    (tidy.prints_through_the_terminal, IN_OMEGA, "print('x')"),
    (tidy.prints_through_the_terminal, IN_CLI, "input('x')"),
    (tidy.prints_through_the_terminal, IN_CLI, "from rich.console import Console"),
    (tidy.prints_through_the_terminal, IN_CLI, "rich.console.Console()"),
    (tidy.prints_through_the_terminal, IN_CLI, "import rich"),
    (tidy.prints_through_the_terminal, IN_CLI, "import rich.console as drawing"),
    (tidy.prints_through_the_terminal, IN_CLI, "from rich import print"),
    (tidy.prints_through_the_terminal, IN_CLI, "from rich.prompt import Prompt"),
    (tidy.prints_through_the_terminal, IN_CLI, "typer.echo('x')"),
    (tidy.prints_through_the_terminal, IN_CLI, "from typer import secho"),
    (tidy.prints_through_the_terminal, IN_CLI, "import click"),
    (tidy.prints_through_the_terminal, IN_CLI, "sys.stdout.write('x')"),
    (tidy.prints_through_the_terminal, "schedulers/batch.py", "out = sys.stderr"),
    (tidy.prints_through_the_terminal, "benchmarks/sync.py", "from sys import stdout"),
    (tidy.prints_through_the_terminal, IN_CLI, "Text.from_markup(name)"),
    (tidy.prints_through_the_terminal, IN_CLI, "console.print(name, markup=True)"),
    (
        tidy.prints_through_the_terminal,
        IN_CLI,
        "from rich.live import Live\nwith Live(table, screen=True): ...",
    ),
    (tidy.takes_its_rng_from_outside, IN_OMEGA, "import random"),
    (tidy.takes_its_rng_from_outside, IN_OMEGA, "from random import shuffle"),
    (tidy.takes_its_rng_from_outside, IN_OMEGA, "from numpy.random import default_rng"),
    (tidy.takes_its_rng_from_outside, IN_TESTS, "np.random.rand()"),
    (tidy.takes_its_rng_from_outside, IN_TESTS, "numpy.random.seed(1)"),
    (tidy.takes_its_rng_from_outside, IN_OMEGA, "np.random.default_rng(1)"),
    (tidy.takes_its_rng_from_outside, IN_TESTS, "np.random.default_rng()"),
    (tidy.imports_openly, IN_OMEGA, "from typing import TYPE_CHECKING"),
    (tidy.imports_openly, IN_OMEGA, "if typing.TYPE_CHECKING: pass"),
    (tidy.imports_openly, IN_OMEGA, "from . import view"),
    (tidy.names_nobody_elses_place, "README.md", "see https://pypi" + ".org/simple"),
    (tidy.names_nobody_elses_place, "README.md", "cd /wo" + "rk/main"),
    (tidy.names_nobody_elses_place, "README.md", "cat '/home/" + "me/jobs.yaml'"),
]

GOOD: list[tuple[Rule, str, str]] = [
    (tidy.has_a_docstring, IN_TESTS, '"""What the judge does."""'),
    (tidy.says_goal_promise_and_source, IN_TESTS, "x = 1"),
    (tidy.says_goal_promise_and_source, "omega/cell/__init__.py", '"""A."""'),
    (
        tidy.says_goal_promise_and_source,
        IN_OMEGA,
        '"""A.\n\nGoal B.\nPromise C.\nSource D.\n"""\nx = 1',
    ),
    (tidy.has_short_functions, IN_TESTS, "def f():\n" + "    x = 1\n" * 59),
    (tidy.is_not_too_long, "migrations/a.sql", "\n" * 400),
    (tidy.is_named_for_what_it_holds, "omega/cell/commonplace.py", ""),
    (tidy.leaves_the_time_to_the_clock, "omega/clock.py", "import time\ndatetime.now(UTC)"),
    (tidy.leaves_the_time_to_the_clock, IN_OMEGA, "from datetime import timedelta\nclock.now()"),
    (tidy.keeps_sql_at_home, "omega/store/postgres/cell.py", "run('SELECT 1')"),
    (tidy.keeps_sql_at_home, IN_OMEGA, "'WITH great care'; 'CREATE a job'; 'select one'"),
    (tidy.prints_through_the_terminal, "omega/terminal/terminal.py", "sys.stderr.write('x')"),
    (tidy.prints_through_the_terminal, IN_TESTS, "from rich.console import Console\nprint('x')"),
    (tidy.prints_through_the_terminal, IN_CLI, "from rich.console import Group\nconsole.print(1)"),
    (
        tidy.prints_through_the_terminal,
        IN_CLI,
        "import typer\ntyper.Typer(rich_markup_mode='rich')",
    ),
    (
        tidy.prints_through_the_terminal,
        IN_CLI,
        "from rich.live import Live\nwith Live(table, console=output.console): ...",
    ),
    (tidy.takes_its_rng_from_outside, IN_OMEGA, "def f(rng: np.random.Generator): rng.random()"),
    (tidy.takes_its_rng_from_outside, IN_TESTS, "np.random.default_rng(1)"),
    (tidy.imports_openly, IN_OMEGA, "from omega.cell import view"),
    (
        tidy.names_nobody_elses_place,
        "README.md",
        "docs/wo" + "rk/index.md and $HOME/wo" + "rk/ and ~/ro" + "ot/",
    ),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_a_rule_finds_what_breaks_it(rule: Rule, path: str, text: str) -> None:
    (complaint,) = rule(Source(path, text))

    assert path in complaint
    assert complaint.rstrip().count(" ") > 4, "a complaint says what to do instead"


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_a_rule_lets_through_what_keeps_it(rule: Rule, path: str, text: str) -> None:
    assert [] == list(rule(Source(path, text)))


def test_every_rule_has_been_seen_to_fail() -> None:
    assert {*FOR_PYTHON, *FOR_CODE, *FOR_EVERYTHING} == {rule for rule, _, _ in BAD}
