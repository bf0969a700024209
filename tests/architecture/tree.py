"""The project's own files, as the architecture tests read them."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("omega", "schedulers", "migrations", "benchmarks", "tests")
"""The folders that hold Python."""
GENERATED = re.compile(r"__pycache__|\.(?!ci\b|github\b|gitignore\b|editorconfig\b|dockerignore\b)")
"""Folders and files that are nobody's writing: caches, environments, hidden things but a few."""

BINARY = frozenset({".gz", ".png", ".svg", ".gif", ".whl", ".so"})


@dataclass(frozen=True)
class Source:
    """One text file: where it lies, seen from the project's root, and what it says."""

    path: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's parts, without the suffix of the last."""
        return Path(self.path).with_suffix("").parts

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        """All nodes of the tree by type, but those that say how a name is used."""
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in _walked(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    def nodes_of(self, *types: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes of these types."""
        for each in types:
            yield from self.nodes.get(each, ())

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """Line and full dotted name of everything imported: `omega.clock.Clock`."""
        key = (self.path, self.text)
        if key not in _IMPORTS:
            # A tree that nothing else has asked for is not kept for this alone.
            parsed = "nodes" in vars(self)
            nodes = self.nodes_of(*IMPORTING) if parsed else _walked(ast.parse(self.text))
            _IMPORTS[key] = tuple(_imports_of(nodes))
        return _IMPORTS[key]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()


IMPORTING = (ast.Import, ast.ImportFrom, ast.Call)
_IMPORTS: dict[tuple[str, str], tuple[tuple[int, str], ...]] = {}
"""The imports of each file, which outlive its tree."""


def _walked(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes but contexts, as `ast.walk` does in twice the time."""
    nodes = [tree]
    for node in nodes:
        for name in node._fields:
            if name != "ctx":
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    nodes.append(value)
                elif isinstance(value, list):
                    nodes += [one for one in value if isinstance(one, ast.AST)]
    return nodes


def _imports_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(func=ast.Name("import_module") | ast.Attribute(attr="import_module")):
                if node.args and isinstance(name := node.args[0], ast.Constant):
                    yield node.lineno, str(name.value)


def written_files() -> list[Source]:
    """Return every text file that somebody wrote; environments and caches are left out.

    The files are read once. What is parsed of them goes with who asked for it: the trees of all
    files are two hundred megabytes.
    """
    return [Source(path, text) for path, text in _texts()]


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    paths: list[Path] = []
    for entry in sorted(ROOT.iterdir()):
        if not GENERATED.match(entry.name):
            paths += [entry] if entry.is_file() else sorted(entry.rglob("*"))
    return tuple(
        (path.relative_to(ROOT).as_posix(), path.read_text(errors="replace"))
        for path in paths
        if path.is_file() and path.suffix not in BINARY and "__pycache__" not in path.parts
    )


def code(*suffixes: str, folders: tuple[str, ...] = CODE) -> list[Source]:
    """Return the files of these folders with these suffixes."""
    return [
        source
        for source in written_files()
        if source.path.endswith(suffixes) and source.path.split("/")[0] in folders
    ]
