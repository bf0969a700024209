"""These tests import nothing of the product: a shared fault would stay unnoticed."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALLOWED = {"psycopg", "pytest", "numpy", *sys.stdlib_module_names}
"""What this folder may import besides itself; fixtures provide a URL and logins by name."""


def imported(text: str) -> Iterator[str]:
    """Yield every module that a text imports."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module):
                yield str(module)
            case ast.Call(func=ast.Name("__import__") | ast.Attribute(attr="import_module")):
                yield "a dynamic import"


def forbidden_imports(text: str) -> list[str]:
    """Return the imports that are not allowed in this folder."""
    return [
        name
        for name in imported(text)
        if name.split(".")[0] not in ALLOWED and not name.startswith("tests.attack.")
    ]


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.name)
def test_a_module_imports_nothing_of_the_product(path: Path) -> None:
    assert [] == forbidden_imports(path.read_text())


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
def test_each_way_to_import_is_found(text: str) -> None:
    assert forbidden_imports(text)
