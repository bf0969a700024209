"""Pages whose figures come from committed documents: each is written from its template.

The template of a page is the file of its name in the folder `templates` beside it. A template may
hold fields (benchmarks/figures.py), and two kinds of fenced blocks,

    ```table                                                   ```claims
    head: clients                                              figure_9
    cell: "{commit: rows[clients=ROW].COLUMN | .2f}"           ```
    columns: {median: p50_ms, worst: p99_ms}
    rows: [2, 4, 8]
    ```

A table has a cell for each row and column. Its text is `cell`, or if there is none, the column's
value; in it, ROW and COLUMN are replaced by the values of the row and the column. A list of claims
shows the claims of a document's summary.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.text import Text

from benchmarks.environment import ROOT
from benchmarks.figures import NoSuchFigure, Results, filled, found
from benchmarks.layout import FENCE, Block, LayoutError, aligned, blocks, wrapped
from omega.terminal.terminal import PrintableConsole

FOLDERS: Final = ("benchmarks", "benchmarks/findings", "docs/guide")
"""Folders of pages with templates, relative to the project's root."""
COMMAND: Final = "python -m benchmarks findings"
MARK: Final = f"<!-- Written by `{COMMAND}` from "
_PLACE: Final = re.compile(r"ROW|COLUMN")


@dataclass(frozen=True)
class Problem:
    """An error in a template or a page, with its line."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        """Return the problem in the form of a compiler's message."""
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Page:
    """A page and its template."""

    root: Path
    path: str
    """Relative to the root, as is the template's path."""
    template: str

    def written(self, results: Results) -> tuple[str, list[Problem]]:
        """Return the page as it should be, and the problems of its template."""
        lines, problems = [f"{MARK}{self.template}: change that. -->", ""], []
        for block in blocks((self.root / self.template).read_text(encoding="utf-8")):
            try:
                lines += _set(block, results)
            except _Wrong as wrong:
                problems.append(Problem(self.template, wrong.line, str(wrong)))
        return "\n".join(lines) + "\n", problems

    def compared(self, wanted: str) -> Iterator[Problem]:
        """Yield a problem for the first line in which the page differs from `wanted`."""
        path = self.root / self.path
        there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        lines = wanted.splitlines()
        for number in range(max(len(there), len(lines))):
            is_, should = (of[number] if number < len(of) else None for of in (there, lines))
            if is_ != should:
                yield Problem(
                    self.path, number + 1, f"reads {_quoted(is_)}, should be {_quoted(should)}"
                )
                return


class _Wrong(ValueError):
    """An error in a line of a template."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class _Grid(BaseModel):
    """The description of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: str = ""
    cell: str | None = None
    columns: dict[str, str] | list[str]
    rows: dict[str, str] | list[str]


def pages(root: Path = ROOT) -> list[Page]:
    """Return each page that has a template."""
    return [
        Page(root, f"{folder}/{template.name}", template.relative_to(root).as_posix())
        for folder in FOLDERS
        for template in sorted((root / folder / "templates").glob("*.md"))
    ]


def left_over(root: Path = ROOT) -> Iterator[Problem]:
    """Yield the pages whose template is gone."""
    known = {page.path for page in pages(root)}
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.md")):
            name = path.relative_to(root).as_posix()
            if name not in known and path.read_text(encoding="utf-8").startswith(MARK):
                yield Problem(name, 1, "has no template any more: delete it")


def findings(root: Path = ROOT, *, check: bool = False) -> list[Problem]:
    """Write all pages; return the problems.

    With `check`, nothing is written, and pages that would change are problems. If there is a
    problem in any template, nothing is written either.
    """
    results = Results(root / "benchmarks" / "results")
    wanted = {page: page.written(results) for page in pages(root)}
    problems = [problem for _, of_page in wanted.values() for problem in of_page]
    problems += left_over(root)
    if problems:
        return problems
    if check:
        return [one for page, (text, _) in wanted.items() for one in page.compared(text)]
    for page, (text, _) in wanted.items():
        (root / page.path).write_text(text, encoding="utf-8")
    return []


def command(
    check: Annotated[
        bool, typer.Option("--check", help="Only say what would change; exit code 1 if anything.")
    ] = False,
) -> None:
    """Fill in the pages of findings from the committed documents."""
    problems = findings(check=check)
    console = PrintableConsole(stderr=True)
    for problem in problems:
        console.print(Text(str(problem)), soft_wrap=True)
    if problems:
        if check:
            console.print(Text(f"To write the pages anew: {COMMAND}"), soft_wrap=True)
        raise typer.Exit(1)


def _set(block: Block, results: Results) -> Sequence[str]:
    """Return the lines of the page that a block of a template becomes."""
    if block.kind == "fence":
        with _at(block.line):
            return _fence(block, results)
    lines = []
    for number, line in enumerate(block.lines, block.line):
        with _at(number):
            lines.append(filled(line, results))
    with _at(block.line):
        if block.kind == "table":
            return aligned(lines)
        return wrapped(lines) if block.kind == "text" else lines


@contextmanager
def _at(line: int) -> Iterator[None]:
    """Add the line to errors that the block raises."""
    try:
        yield
    except (NoSuchFigure, LayoutError) as error:
        raise _Wrong(line, str(error)) from error


def _fence(block: Block, results: Results) -> Sequence[str]:
    inside = "\n".join(block.lines[1:-1])
    match block.lines[0].removeprefix(FENCE):
        case "table":
            return aligned(list(_table(_grid(inside), results)))
        case "claims":
            return list(_claims(inside, results))
    return block.lines


def _grid(text: str) -> _Grid:
    try:
        return _Grid.model_validate(yaml.load(text, Loader=yaml.BaseLoader))
    except (ValidationError, yaml.YAMLError) as error:
        raise LayoutError(f"this is no table: {' '.join(str(error).split())}") from error


def _table(grid: _Grid, results: Results) -> Iterator[str]:
    """Yield the lines of a table; columns of figures are aligned to the right."""
    columns, rows = _named(grid.columns), _named(grid.rows)
    cells = [
        [
            filled(_replaced(column if grid.cell is None else grid.cell, row, column), results)
            for column in columns.values()
        ]
        for row in rows.values()
    ]
    rulers = [
        "---:" if all(cell[:1].isdigit() for cell in column) else "---"
        for column in zip(*cells, strict=True)
    ]
    for first, others in [(grid.head, columns), ("---", rulers), *zip(rows, cells, strict=True)]:
        yield f"| {' | '.join([first, *others])} |"


def _named(values: Mapping[str, str] | Sequence[str]) -> Mapping[str, str]:
    return values if isinstance(values, Mapping) else {value: value for value in values}


def _replaced(cell: str, row: str, column: str) -> str:
    by = {"ROW": row, "COLUMN": column}
    return _PLACE.sub(lambda place: by[place[0]], cell)


def _claims(name: str, results: Results) -> Iterator[str]:
    claims: list[dict[str, Any]] = found(results.document(name), "summary.claims")
    for number, claim in enumerate(claims, 1):
        holds = "Holds" if claim["holds"] else "Does not hold"
        yield from wrapped([f"{number}. **{holds}:** {claim['claim']}."])
        alone = ""
        if claim.get("seeds", 1) > 1:
            alone = f" It holds in {claim['seeds_held']} of {claim['seeds']} seeds taken alone."
        yield from wrapped([f"Measured: {claim['measured']}.{alone}"], indent="   ")


def _quoted(line: str | None) -> str:
    return "nothing" if line is None else repr(line)
