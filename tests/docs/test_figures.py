"""A figure in a document is what a committed run of a benchmark measured.

Pages with a template have them filled in: `python -m benchmarks findings` writes them. In the other
documents there stands behind a figure, in a comment that no reader sees, whence it is:
`0.93<!-- commit: summary.x.y -->` is what benchmarks/results/commit.json has there. A figure may
have fewer digits than the result.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest

from benchmarks.figures import Results, found
from benchmarks.layout import WIDTH
from benchmarks.pages import MARK, findings, pages
from tests.architecture.tree import ROOT, Source
from tests.docs.documents import document, documents, section

RESULTS = ROOT / "benchmarks" / "results"
_FIGURE = re.compile(r"([\d][\d,]*(?:\.\d+)?)( ?%)?<!-- ([\w-]+): ([^>]+?) -->")
MEASURED = Results(RESULTS)
PAPER = tuple(
    name
    for name in sorted(MEASURED.names)
    if isinstance(MEASURED.document(name)["summary"].get("claims"), list)
)
"""Results that hold claims of a paper's, which are quoted whole."""


def wrong(source: Source) -> Iterator[str]:
    """Complain of each figure that is not what was measured."""
    for shown, percent, name, path in _FIGURE.findall(source.text):
        measured = Decimal(str(found(MEASURED.document(name), path)))
        if not is_rounded(shown, measured * 100 if percent else measured):
            yield f"{source.path}: {shown}{percent} is {measured} in {name}, {path}"


def is_rounded(shown: str, measured: Decimal) -> bool:
    """Tell whether a figure is the measured one, rounded to the digits that it has."""
    plain = shown.replace(",", "")
    decimals = len(plain.partition(".")[2])
    zeros = 0 if decimals else len(plain) - len(plain.rstrip("0") or plain)
    return abs(Decimal(plain) - measured) <= Decimal(10) ** (zeros - decimals) / 2


def test_figures_are_what_was_measured() -> None:
    assert [] == [complaint for source in documents() for complaint in wrong(source)]


def test_pages_with_templates_are_as_the_command_writes_them() -> None:
    """If not: run `python -m benchmarks findings`."""
    assert [] == [str(problem) for problem in findings(check=True)]


def test_pages_with_templates_fit_a_screen_and_have_no_anchors() -> None:
    for page in pages():
        text = document(page.path).text
        lines = [line for line in text.splitlines() if not line.startswith(("![", MARK))]

        assert [] == [line for line in lines if len(line) > WIDTH], page.path
        assert not _FIGURE.search(text), page.path


def test_the_pages_quote_each_result() -> None:
    quoted = Results(RESULTS)
    for page in pages():
        page.written(quoted)

    assert quoted.names == quoted.used


def test_the_readme_quotes_measurements() -> None:
    assert len(_FIGURE.findall(section(document("README.md"), "Figures").text)) >= 10


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


@pytest.mark.parametrize(
    ("shown", "measured"),
    [("0.93", "0.9251"), ("20,000", "19512.4"), ("19,500", "19512.4"), ("7", "7.49"), ("0", "0.4")],
)
def test_a_figure_may_be_rounded(shown: str, measured: str) -> None:
    assert is_rounded(shown, Decimal(measured))


@pytest.mark.parametrize(
    ("shown", "measured"),
    [("0.93", "0.9351"), ("19,510", "19516"), ("8", "7.49"), ("0.930", "0.9311")],
)
def test_a_figure_may_not_be_bent(shown: str, measured: str) -> None:
    assert not is_rounded(shown, Decimal(measured))
