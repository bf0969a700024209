"""Imports point down: the table that a newcomer reads, and the test that keeps it true.

To put a new package into the house, add it to a row below; it may then import whatever stands in
lower rows, and nothing in its own. What two packages of one row both need belongs below them.
"""

from collections.abc import Iterator

import pytest

from tests.architecture.tree import Source, code

ROWS: tuple[frozenset[str], ...] = (
    frozenset({"ground"}),
    frozenset({"model"}),
    frozenset({"cell", "lifecycle", "ordering", "workload", "metrics"}),
    frozenset({"placement", "store"}),
    frozenset({"sync", "reports"}),
    frozenset({"framework", "terminal"}),
    frozenset({"nodes", "web", "testing", "processes"}),
    frozenset({"sim"}),
    frozenset({"plots"}),
    frozenset({"cli"}),
)
HEIGHT = {package: height for height, row in enumerate(ROWS) for package in row}

GROUND = frozenset({"errors", "clock", "events", "limits", "config", "task"})
"""Modules directly in omega/, one package as far as imports go."""

FOR_SCHEDULERS = frozenset({"model", "cell", "workload", "placement", "ordering", "framework"})
"""What a scheduler may import of omega, besides its errors: a view comes in, claims go out."""
NOT_FOR_SCHEDULERS = frozenset({"sqlalchemy", "psycopg", "psycopg_pool", "alembic", "socket"})
"""Ways around the view."""


def package_of(module: str) -> str:
    """Return the package of the table that `omega.<…>` belongs to."""
    parts = module.split(".")
    if parts[1:] == ["__main__"]:
        return "cli"  # as python -m omega
    if len(parts) == 1 or parts[1] in GROUND or parts[1].startswith("__"):
        return "ground"
    return parts[1]


def upward_imports(source: Source) -> Iterator[str]:
    """Complain of each import in omega that does not point down."""
    here = package_of(".".join(source.parts))
    if here not in HEIGHT:
        yield (
            f"{source.path}: {here!r} is in no row. Put the file into a package of the table in"
            " tests/architecture/test_layers.py, or add the package to the row it belongs to"
        )
        return
    for line, name in source.imports:
        root = name.split(".")[0]
        if root in {"schedulers", "tests", "benchmarks", "migrations"}:
            yield (
                f"{source.path}:{line} imports {name}. omega knows none of {root}: look schedulers"
                " up by name in the registry, and keep what tests share in omega.testing"
            )
        if root != "omega":
            continue
        there = package_of(name)
        if there not in HEIGHT:
            yield f"{source.path}:{line} imports {name}, and {there!r} is in no row of the table"
        elif there != here and HEIGHT[there] >= HEIGHT[here]:
            yield (
                f"{source.path}:{line} imports {name}, but {there} does not stand below {here}."
                " Move what both need further down, or pass it in"
            )


def reaches_around(source: Source) -> Iterator[str]:
    """Complain of each import by which a scheduler could cheat; its command line is none."""
    if source.parts[-1] == "__main__" or "cli" in source.parts:
        return
    for line, name in source.imports:
        parts = name.split(".")
        if parts[0] in NOT_FOR_SCHEDULERS:
            yield f"{source.path}:{line} imports {name}. A scheduler sees a view, not a database"
        if parts[0] != "omega":
            continue
        if package_of(name) not in FOR_SCHEDULERS and parts[:2] != ["omega", "errors"]:
            yield (
                f"{source.path}:{line} imports {name}. A scheduler may import"
                f" {', '.join(f'omega.{package}' for package in sorted(FOR_SCHEDULERS))}, as any"
                " stranger's may; what it lacks belongs on their public face"
            )
        elif any(part.startswith("_") for part in parts):
            yield f"{source.path}:{line} imports {name}, which is private. Ask for a public one"


def uses_the_command_line(source: Source) -> Iterator[str]:
    """Complain of each import of omega's own verbs by what is not one of them."""
    for line, name in source.imports:
        if name == "omega.cli" or name.startswith("omega.cli."):
            yield (
                f"{source.path}:{line} imports {name}. Verbs are for users: take values from"
                " omega.reports, pictures from omega.plots, and consoles and options from"
                " omega.terminal"
            )


def test_imports_point_down() -> None:
    files = code(".py", folders=("omega",))
    complaints = [complaint for file in files for complaint in upward_imports(file)]

    assert not complaints, "\n".join(complaints)


def test_schedulers_use_the_strangers_door() -> None:
    files = code(".py", folders=("schedulers",))
    complaints = [complaint for file in files for complaint in reaches_around(file)]

    assert not complaints, "\n".join(complaints)


def test_the_command_line_is_imported_by_nobody() -> None:
    files = code(".py", folders=("benchmarks", "schedulers", "migrations"))
    complaints = [complaint for file in files for complaint in uses_the_command_line(file)]

    assert not complaints, "\n".join(complaints)
    assert 1 == len(
        list(uses_the_command_line(Source("benchmarks/x.py", "from omega.cli.main import main")))
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("omega/model/jobs.py", "from omega.cell import judge"),
        ("omega/model/jobs.py", "import omega.cell.judge"),
        ("omega/cell/judge.py", "from omega.ordering.precedence import precedence"),
        ("omega/cell/judge.py", "from omega import lifecycle"),
        ("omega/limits.py", "from omega.model import jobs"),
        ("omega/framework/runner.py", "from omega.cli.main import main"),
        ("omega/framework/registry.py", "import schedulers.batch"),
        ("omega/framework/registry.py", "import_module('schedulers.batch')"),
        ("omega/testing/builders.py", "from tests.conftest import settings"),
        ("omega/model/jobs.py", "def f():\n    from omega.cell import judge"),
        ("omega/odds/ends.py", "import os"),
        ("omega/loose.py", "import os"),
        ("omega/cell/judge.py", "from omega.odds import ends"),
    ],
)
def test_an_import_that_does_not_point_down_is_found(path: str, text: str) -> None:
    assert 1 == len(list(upward_imports(Source(path, text))))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "omega/cell/judge.py",
            "from omega.model.claims import Claim\nfrom omega.cell import view",
        ),
        ("omega/config.py", "from omega.errors import SettingsError\nimport omega"),
        ("omega/cli/main.py", "from omega.sim import engine\nfrom omega import __version__"),
    ],
)
def test_an_import_that_points_down_is_let_through(path: str, text: str) -> None:
    assert [] == list(upward_imports(Source(path, text)))


@pytest.mark.parametrize(
    "text",
    [
        "from omega.store.protocols import ViewSource",
        "from omega import store",
        "import omega.sync",
        "import psycopg",
        "from sqlalchemy import select",
        "from omega.cell._inside import trick",
        "from omega.cell.view import _trick",
    ],
)
def test_a_scheduler_that_reaches_around_its_view_is_found(text: str) -> None:
    assert 1 == len(list(reaches_around(Source("schedulers/batch.py", text))))


def test_a_scheduler_may_use_the_public_face() -> None:
    text = (
        "import numpy\nfrom omega.model.claims import Claim\nfrom omega.framework import Scheduler"
        "\nfrom omega.errors import BadInput"
    )

    assert [] == list(reaches_around(Source("schedulers/batch.py", text)))


def test_the_command_line_of_a_scheduler_is_one_of_ours() -> None:
    text = "from omega.terminal.consoles import Output"

    assert [] == list(reaches_around(Source("schedulers/ml_gpu/cli/solve.py", text)))
    assert 1 == len(list(reaches_around(Source("schedulers/ml_gpu/rounds.py", text))))


def test_the_table_names_each_package_once() -> None:
    assert sum(len(row) for row in ROWS) == len(HEIGHT)
    assert HEIGHT.keys() >= FOR_SCHEDULERS
