"""The documents, as their tests read them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.architecture.tree import Source, written_files

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
_RULER = re.compile(r"[-:| ]+")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    path: str
    line: int
    language: str
    text: str


def is_document(source: Source) -> bool:
    """Tell whether a file is a document; its template is read as the page that it becomes."""
    return source.path.endswith(".md") and source.parts[-2:-1] != ("templates",)


def documents() -> list[Source]:
    """Return every document in Markdown."""
    return [source for source in written_files() if is_document(source)]


def document(path: str) -> Source:
    """Return one document."""
    (found,) = (source for source in documents() if source.path == path)
    return found


def blocks(source: Source, *languages: str) -> Iterator[Block]:
    """Yield the fenced blocks, those in these languages or all of them."""
    for match in _FENCE.finditer(source.text):
        if match[1] in languages or not languages:
            line = source.text.count("\n", 0, match.start()) + 1
            yield Block(source.path, line, match[1], match[2])


def marked(source: Source, mark: str) -> list[Block]:
    """Return the blocks that stand right behind a comment that begins with this mark."""
    lines = source.text.splitlines()
    comment = f"<!-- {mark}: "
    return [block for block in blocks(source) if lines[block.line - 2].startswith(comment)]


def section(source: Source, heading: str) -> Source:
    """Return what stands under a heading of the second level."""
    parts = re.split(r"^## (.+)$", source.text, flags=re.MULTILINE)
    return Source(source.path, dict(zip(parts[1::2], parts[2::2], strict=True))[heading])


def table(source: Source) -> list[tuple[str, ...]]:
    """Return the rows of the first table, without its head."""
    text = source.text[source.text.index("\n|") :].split("\n\n")[0]
    rows = [tuple(cell.strip() for cell in row.split("|")) for row in _ROW.findall(text)]
    return [row for row in rows[1:] if not _RULER.fullmatch("|".join(row))]
