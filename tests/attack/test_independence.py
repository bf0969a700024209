"""The attack shares nothing with what it attacks: what is wrong in both would not be seen."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALLOWED = {"psycopg", "pytest", "numpy", *sys.stdlib_module_names}
"""What the attack may import besides itself. A URL and logins come from fixtures by their names."""


def imported(text: str) -> Iterator[str]:
    """Yield every module that a text imports, and from which it takes names."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module):
                yield str(module)
            case ast.Call(func=ast.Name("__import__") | ast.Attribute(attr="import_module")):
                yield "whatever is named"


def strangers(text: str) -> list[str]:
    """Return what a module of this folder may not import."""
    return [
        name
        for name in imported(text)
        if name.split(".")[0] not in ALLOWED and not name.startswith("tests.attack.")
    ]


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.name)
def test_nothing_of_the_product_is_imported(path: Path) -> None:
    assert [] == strangers(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "from omega.limits import LIMITS",
        "import schedulers.batch",
        "from tests.fixtures.at_work import wait_until",
        "from . import sessions",
        "__import__('omega')",
        "import importlib\nimportlib.import_module('omega')",
    ],
)
def test_what_is_imported_is_noticed(text: str) -> None:
    assert strangers(text)
