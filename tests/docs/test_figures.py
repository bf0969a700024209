"""A figure in a document is what a committed run of a benchmark measured.

Behind it stands, in a comment that no reader sees, whence it is: `0.93<!-- commit: summary.x.y -->`
is what benchmarks/results/commit.json has there. A list is searched by what an entry holds:
`rows[way=full, machines=10000].p50_ms`. A figure may have fewer digits than the result.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.architecture.tree import ROOT, Source
from tests.docs.documents import document, documents, section

RESULTS = ROOT / "benchmarks" / "results"
_FIGURE = re.compile(r"([\d][\d,]*(?:\.\d+)?)( ?%)?<!-- ([\w-]+): ([^>]+?) -->")
PAPER = tuple(
    sorted(
        path.stem
        for path in RESULTS.glob("*.json")
        if isinstance(json.loads(path.read_text())["summary"].get("claims"), list)
    )
)
"""Results that hold claims of a paper's, which are quoted whole."""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")


def wrong(source: Source) -> Iterator[str]:
    """Complain of each figure that is not what was measured."""
    for shown, percent, name, path in _FIGURE.findall(source.text):
        measured = Decimal(str(found(json.loads((RESULTS / f"{name}.json").read_text()), path)))
        if not is_rounded(shown, measured * 100 if percent else measured):
            yield f"{source.path}: {shown}{percent} is {measured} in {name}, {path}"


def found(part: Any, path: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Walk down a document."""
    for name, terms in _STEP.findall(path):
        if name:
            part = part[name]
        else:
            wanted = dict(term.strip().split("=") for term in terms.split(","))
            (part,) = (
                entry
                for entry in part
                if all(str(entry[key]) == value for key, value in wanted.items())
            )
    return part


def is_rounded(shown: str, measured: Decimal) -> bool:
    """Tell whether a figure is the measured one, rounded to the digits that it has."""
    plain = shown.replace(",", "")
    decimals = len(plain.partition(".")[2])
    zeros = 0 if decimals else len(plain) - len(plain.rstrip("0") or plain)
    return abs(Decimal(plain) - measured) <= Decimal(10) ** (zeros - decimals) / 2


def test_figures_are_what_was_measured() -> None:
    assert [] == [complaint for source in documents() for complaint in wrong(source)]


def test_the_readme_and_the_findings_quote_measurements() -> None:
    readme = section(document("README.md"), "Figures").text
    findings = document("benchmarks/FINDINGS.md").text

    assert len(_FIGURE.findall(readme)) >= 10
    assert len(_FIGURE.findall(findings)) >= 40
    names = {name for *_, name, _ in _FIGURE.findall(readme + findings)}
    assert {path.stem for path in RESULTS.glob("*.json")} == names | set(PAPER)


def test_each_result_has_its_picture_which_the_findings_show() -> None:
    pictures = {path.name for path in RESULTS.glob("*.png")}

    assert {f"{path.stem}.png" for path in RESULTS.glob("*.json")} == pictures
    text = document("benchmarks/FINDINGS.md").text
    assert [] == [name for name in sorted(pictures) if f"](results/{name})" not in text]


@pytest.mark.parametrize("name", PAPER)
def test_the_findings_have_each_claim_of_the_paper_as_it_was_judged(name: str) -> None:
    told = json.loads((RESULTS / f"{name}.json").read_text())
    text = document("benchmarks/FINDINGS.md").text

    for claim in told["summary"]["claims"]:
        holds = "yes" if claim["holds"] else "**no**"
        assert f"| {claim['claim']} | {claim['measured']} | {holds} |" in text


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


def test_entries_are_found_by_what_they_hold() -> None:
    told = {"rows": [{"way": "full", "n": 1, "ms": 2}, {"way": "full", "n": 2, "ms": 3}]}

    assert 3 == found(told, "rows[way=full, n=2].ms")
    with pytest.raises(ValueError, match="too many"):
        found(told, "rows[way=full].ms")
