"""A figure in a document is what a committed run of a benchmark measured.

Pages with a template have them filled in: `python -m benchmarks findings` writes them.
"""

import re

import pytest

from benchmarks.figures import Results
from benchmarks.layout import WIDTH
from benchmarks.pages import MARK, findings, pages
from tests.architecture.tree import ROOT
from tests.docs.documents import document

RESULTS = ROOT / "benchmarks" / "results"
MEASURED = Results(RESULTS)
PAPER = tuple(
    name
    for name in sorted(MEASURED.names)
    if isinstance(MEASURED.document(name)["summary"].get("claims"), list)
)
"""Results that hold claims of a paper's, which are quoted whole."""


def test_pages_with_templates_are_as_the_command_writes_them() -> None:
    """If not: run `python -m benchmarks findings`."""
    assert [] == [str(problem) for problem in findings(check=True)]


def test_pages_with_templates_fit_a_screen_and_have_no_anchors() -> None:
    for page in pages():
        text = document(page.path).text
        lines = [line for line in text.splitlines() if not line.startswith(("![", MARK))]

        assert [] == [line for line in lines if len(line) > WIDTH], page.path
        assert "<!-- " not in text.partition("\n")[2], page.path


def test_the_pages_quote_each_result() -> None:
    quoted = Results(RESULTS)
    for page in pages():
        page.written(quoted)

    assert quoted.names == quoted.used


def test_the_first_page_is_ten_lines_of_findings_and_names_each_other_page() -> None:
    text = document("benchmarks/FINDINGS.md").text
    lists = [part.splitlines() for part in text.split("\n\n") if part.startswith("* ")]

    assert len(lists[0]) <= 10
    others = {page.path.removeprefix("benchmarks/") for page in pages()} - {"FINDINGS.md"}
    assert {path for path in others if path.startswith("findings/")} == set(
        re.findall(r"\]\((findings/\w+\.md)\)", text)
    )


def test_each_result_has_its_picture_which_a_page_shows() -> None:
    pictures = {path.name for path in RESULTS.glob("*.png")}
    shown = {
        name
        for page in pages()
        for name in re.findall(r"\]\([./]*results/([\w-]+\.png)\)", document(page.path).text)
    }

    assert {f"{name}.png" for name in MEASURED.names} == pictures
    assert set() == pictures - shown


@pytest.mark.parametrize("name", PAPER)
def test_a_page_has_each_claim_of_the_paper_as_it_was_judged(name: str) -> None:
    text = " ".join(" ".join(document(page.path).text.split()) for page in pages())

    for claim in MEASURED.document(name)["summary"]["claims"]:
        holds = "Holds" if claim["holds"] else "Does not hold"
        assert f"**{holds}:** {claim['claim']}. Measured: {claim['measured']}." in text
