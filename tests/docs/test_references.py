"""What points to a document finds it, and each decision says what it has to."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.architecture.tree import ROOT, Source, written_files
from tests.docs.documents import documents, is_document

IN_DOCS = re.compile(r"(?<![\w/.<…-])docs/[\w./-]*\w(?:\.md|\.svg)")
FOLLOWING = re.compile(r"docs/decisions/[\w-]+\.md((?:, \d{4}-[\w-]+\.md)+)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TO_A_HEADING = re.compile(r"\]\(([^)#\s]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ENVIRONMENT = re.compile(r"\bOMEGA_[A-Z_]+[A-Z]\b")
DECISION = ("Context", "Decision", "Price", "How we would notice it was wrong")
PAPER = ("Taken", "Changed", "Measured")


def cited(source: Source) -> Iterator[str]:
    """Yield each page in docs/ that a file names by its path."""
    yield from IN_DOCS.findall(source.text)
    for more in FOLLOWING.findall(source.text):
        yield from (f"docs/decisions/{page}" for page in more.split(", ")[1:])


def links(source: Source) -> Iterator[str]:
    """Yield, seen from the project's root, each file that a document links to."""
    for target in LINK.findall(source.text):
        if "://" not in target:
            path = (ROOT / PurePosixPath(source.path).parent / target).resolve()
            yield path.relative_to(ROOT).as_posix()


def missing(source: Source) -> list[str]:
    """Complain of each reference that leads nowhere."""
    named = [*cited(source), *(links(source) if is_document(source) else ())]
    return [
        f"{source.path} names {path}, which is not there"
        for path in named
        if not (ROOT / path).exists()
    ]


def lost(source: Source) -> list[str]:
    """Complain of each link to a heading that the page does not have."""
    found = []
    for target, anchor in TO_A_HEADING.findall(source.text):
        path = ROOT / PurePosixPath(source.path).parent / target if target else ROOT / source.path
        if "://" not in target and anchor not in anchors(path.read_text()):
            found.append(f"{source.path} links to {target}#{anchor}, which is not there")
    return found


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are linked to by."""
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


def test_every_heading_that_is_linked_to_is_there() -> None:
    assert [] == [complaint for source in documents() for complaint in lost(source)]
    assert len([link for source in documents() for link in TO_A_HEADING.findall(source.text)]) > 3
    assert lost(Source("README.md", "[it](docs/decisions/0003-the-commit-rule.md#prices)"))


def test_every_page_that_is_named_is_there() -> None:
    ours = [source for source in written_files() if not source.path.startswith("tests/")]

    assert [] == [complaint for source in ours for complaint in missing(source)]
    assert len([path for source in ours for path in cited(source)]) > 20


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("omega/a.py", "Source   docs/decisions/0999-nothing.md."),
        ("omega/a.py", "see docs/decisions/0003-the-commit-rule.md, 0999-nothing.md."),
        ("README.md", "![It](docs/nothing.svg)"),
        ("README.md", "[it](ARCHITECTUR.md)"),
        ("docs/decisions/0001.md", "[it](0999-nothing.md#price)"),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(path: str, text: str) -> None:
    assert missing(Source(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("omega/a.py", "docs/decisions, and the tree below"),
        ("README.md", "[it](https://example.org/docs/nothing.md) and [that](docs/decisions)"),
        ("docs/papers/a.md", "[it](../decisions/0003-the-commit-rule.md#price)"),
    ],
)
def test_a_reference_that_leads_somewhere_is_let_through(path: str, text: str) -> None:
    assert [] == missing(Source(path, text))


def headings(source: Source) -> tuple[str, ...]:
    return tuple(re.findall(r"^## (.+)$", source.text, re.MULTILINE))


def pages(folder: str) -> list[Source]:
    return [
        source
        for source in documents()
        if source.path.startswith(f"docs/{folder}/") and not source.path.endswith("/README.md")
    ]


def test_each_decision_has_its_four_parts_in_order() -> None:
    assert [] == [page.path for page in pages("decisions") if headings(page) != DECISION]


def test_each_paper_has_its_three_parts_in_order() -> None:
    assert [] == [page.path for page in pages("papers") if headings(page) != PAPER]


def test_the_list_of_decisions_names_each_once() -> None:
    (listing,) = (source for source in documents() if source.path == "docs/decisions/README.md")

    assert sorted(page.path for page in pages("decisions")) == sorted(links(listing))
