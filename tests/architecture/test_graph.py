"""The graph of modules has no circle, and nothing in it is used by nobody.

A function or class that only its own test uses is dead: delete it, or wire it. The few that wait
for somebody are listed here with what they wait for.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cache
from graphlib import CycleError, TopologicalSorter

from tests.architecture.tree import ROOT, Source, code

FOLDERS = ("omega", "schedulers", "benchmarks")

WAITING: Mapping[str, str] = {}
"""Modules that only tests use, each with what it is."""

SHIPPED = ("omega/testing/",)
"""For tests of users' own: what is there is used by tests alone."""

_WORD = re.compile(r"\w+")
_REFERENCE = re.compile(r"[\w.:]+|[A-Z]\w*(\[[\w, \[\]]+\])?( \| \w+)*")
"""A string that names code: `package.module:name`, an attribute, or a quoted annotation."""

CALLED_FROM_OUTSIDE = frozenset({"__getattr__"})


def graph(sources: Iterable[Source]) -> dict[str, set[str]]:
    """Return the modules that each module imports, lazily too."""
    by_name = {name_of(source): source for source in sources}
    imports: dict[str, set[str]] = {}
    for name, source in by_name.items():
        found = {module_in(by_name, each) for _, each in source.imports}
        imports[name] = {each for each in found if each and each != name}
    return imports


def name_of(source: Source) -> str:
    """Return the dotted name of a module."""
    return ".".join(source.parts).removesuffix(".__init__")


def module_in(names: Mapping[str, Source], imported: str) -> str | None:
    """Return the module that an import of a name reaches; None if it is none of these."""
    while imported and imported not in names:
        imported = imported.rpartition(".")[0]
    return imported or None


def circle_in(imports: Mapping[str, set[str]]) -> Sequence[str] | None:
    """Return a circle of modules; None if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return None


def defined(source: Source) -> list[str]:
    """Return the functions, classes and constants of a module."""
    names: list[str] = []
    for node in source.tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                if not node.decorator_list or not _registers(node.decorator_list):
                    names.append(name)
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                names.append(name)
    return [name for name in names if not name.startswith("__")]


def _registers(decorators: Sequence[ast.expr]) -> bool:
    """Say whether a decorator hands the function on, as an app's `command` does."""
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) for each in decorators
    )


def used_in(source: Source) -> set[str]:
    """Return every name that a module uses; not those that it only defines."""
    used: set[str] = set()
    for node in source.nodes_of(ast.Name, ast.Attribute, ast.ImportFrom, ast.Constant):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                used.add(name)
            case ast.ImportFrom(names=names):
                used |= {alias.name for alias in names}
            case ast.Constant(value=str(text)) if _REFERENCE.fullmatch(text):
                used |= set(_WORD.findall(text))
    return used


@cache
def names_in(source: Source) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return what a module uses and what it defines; its imports are found on the way.

    A file is parsed once for all tests here: to parse them all takes more than a second.
    """
    parsed = copy(source)  # a tree is not kept: it goes with the copy
    names = frozenset(used_in(parsed)), tuple(defined(parsed))
    list(parsed.imports)  # noted for all sources of this text
    return names


def product() -> list[Source]:
    """Return the files whose graph this is, each of them looked through."""
    files = code(".py", folders=FOLDERS)
    for file in files:
        names_in(file)
    return files


def unused(sources: Sequence[Source], elsewhere: str) -> list[str]:
    """Name what is defined in these files and used in none of them, nor named `elsewhere`."""
    users: dict[str, int] = defaultdict(int)
    there: list[tuple[str, tuple[str, ...]]] = []
    for source in sources:
        used, names_there = names_in(source)
        for name in used:
            users[name] += 1
        there.append((source.path, names_there))
    words = set(re.findall(r"\w+", elsewhere))
    return [
        f"{path}: {name}"
        for path, names in there
        if not path.startswith((*SHIPPED, *WAITING))
        for name in names
        if not users[name] and name not in words and name not in CALLED_FROM_OUTSIDE
    ]


def unimported(sources: Sequence[Source], elsewhere: str) -> list[str]:
    """Name the modules that none of the others imports and that are not named `elsewhere`."""
    imports = graph(sources)
    reached = {each for found in imports.values() for each in found}
    return [
        source.path
        for source in sources
        if not source.path.startswith((*SHIPPED, *WAITING))
        and name_of(source) not in reached
        and source.parts[-1] not in {"__init__", "__main__"}
        and name_of(source) not in elsewhere
    ]


def texts() -> str:
    """Return what names code without importing it: entry points, verbs, scripts, the guide.

    A function that the guide names for schedulers of other packages has users that are not here.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    registered = [project["scripts"], *project["entry-points"].values()]
    verbs = re.findall(r'Verb\(\s*"([\w.]+)"', (ROOT / "omega/cli/main.py").read_text())
    hosts = ("execution.hosts.dask_host", "execution.hosts.ray_host")
    started = ("simulate_once", "postgres.client", "postgres.one_committer", *hosts)
    guide = (ROOT / "docs/guide/schedulers.md").read_text()
    return "\n".join(
        [
            *(place for group in registered for place in group.values()),
            *(f"omega.cli.{verb}" for verb in verbs),
            *(f"benchmarks.{name}" for name in started),
            *re.findall(r"`(\w+)`", guide),
        ]
    )


def test_modules_import_each_other_in_no_circle() -> None:
    assert circle_in(graph(product())) is None


def test_a_circle_is_found() -> None:
    circle = circle_in(
        graph(
            [
                Source("omega/a.py", "def f():\n    from omega import b"),
                Source("omega/b.py", "import omega.c"),
                Source("omega/c.py", "from omega.a import f"),
            ]
        )
    )

    assert circle is not None
    assert {"omega.a", "omega.b", "omega.c"} == set(circle)


def test_no_module_is_used_by_tests_alone() -> None:
    assert [] == unimported(product(), texts())


def test_nothing_is_used_by_tests_alone() -> None:
    assert [] == unused(product(), texts())


def test_what_waits_is_still_used_by_nobody() -> None:
    """So that the list is shortened when somebody comes to use it."""
    waiting = [Source(path, "") for path in WAITING]
    others = [one for one in product() if one.path not in WAITING]
    used = {each for found in graph([*others, *waiting]).values() for each in found}

    assert not {name_of(one) for one in waiting} & used


def test_dead_code_is_found() -> None:
    module = Source("omega/a.py", "LIVE = 1\nDEAD = 2\ndef live(): return LIVE\ndef dead(): pass")
    user = Source("omega/b.py", "from omega.a import live\nlive()")

    assert ["omega/a.py: DEAD", "omega/a.py: dead"] == unused([module, user], "")
    assert ["omega/b.py"] == unimported([module, user], "")
