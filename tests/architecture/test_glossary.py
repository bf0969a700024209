"""The words that the glossary replaces do not come back.

Read are identifiers and string keys of Python, identifiers of SQL, options and the names of files.
Sentences are not: the name of a test is one, and so are comments.
"""

import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.architecture.tree import Source, code, written_files

PAGE = "docs/glossary.md"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEY = re.compile(r"[a-z][a-z0-9_.\-]*")
_OPTION = re.compile(r"--([a-z][a-z\-]+)")
_COMMENT = re.compile(r"--[^\n]*")


def replaced(page: str) -> frozenset[str]:
    """Return the words in italics in the last column of the glossary's tables."""
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    last = [row.rstrip().rstrip("|").rpartition("|")[2] for row in rows]
    return frozenset(word for cell in last for word in re.findall(r"\*(\w+)\*", cell))


def words_of(name: str) -> set[str]:
    """Return the words of an identifier, in lower case: `aRoundTrip` and `a_round_trip` alike."""
    return {part.lower() for part in _PARTS.findall(name)}


def names_in(source: Source) -> Iterator[tuple[str, str]]:
    """Yield each name that a file holds, and where."""
    yield source.path, source.path
    if source.path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            where = f"{source.path}:{token.start[0]}"
            if token.type == tokenize.NAME and not token.string.startswith("test_"):
                yield where, token.string
            elif token.type == tokenize.STRING and "\n" not in token.string:
                text = token.string.strip("rbf").strip("\"'")
                yield from ((where, key) for key in ([text] if _KEY.fullmatch(text) else []))
                yield from ((where, option) for option in _OPTION.findall(text))
    elif source.path.endswith(".sql"):
        for number, line in enumerate(source.text.splitlines(), 1):
            code_ = _COMMENT.sub("", line)
            yield from ((f"{source.path}:{number}", name) for name in _NAME.findall(code_))


def old_words(source: Source, old: frozenset[str]) -> list[str]:
    """Complain of each name with a word that the glossary replaces."""
    if not any(word in f"{source.path} {source.text}".lower() for word in old):
        return []  # nor has one of its names: to look at them takes a hundred times as long
    return [
        f"{where}: {name} has the word {', '.join(sorted(words_of(name) & old))}; see {PAGE}"
        for where, name in names_in(source)
        if words_of(name) & old
    ]


@pytest.fixture(scope="module")
def old() -> frozenset[str]:
    (page,) = [source for source in written_files() if source.path == PAGE]
    return replaced(page.text)


def test_no_name_has_a_word_that_the_glossary_replaces(old: frozenset[str]) -> None:
    complaints = [each for source in code(".py", ".sql") for each in old_words(source, old)]

    assert len(old) > 20
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("omega/framework/loop.py", "def place(view, chance): pass"),
        ("omega/framework/loop.py", "class OldStanding: pass"),
        ("omega/cli/demo.py", "row = {'seats': 3}"),
        ("omega/cli/demo.py", f"typer.Option('--{'CREW'.lower()}')"),
        ("omega/store/postgres/functions/a.sql", "SELECT senses FROM job"),
        ("omega/framework/aftermath.py", ""),
    ],
)
def test_an_old_word_is_found(path: str, text: str, old: frozenset[str]) -> None:
    assert 1 == len(old_words(Source(path, text), old))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("omega/framework/loop.py", "# by chance\nrng = 1\n'''A standing order.'''"),
        ("tests/unit/test_a.py", "def test_ties_are_broken_by_chance(): pass"),
        ("omega/store/postgres/functions/a.sql", "SELECT 1 -- senses"),
    ],
)
def test_sentences_may_have_any_words(path: str, text: str, old: frozenset[str]) -> None:
    assert [] == old_words(Source(path, text), old)
