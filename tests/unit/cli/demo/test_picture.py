"""The picture of a demo."""

import re
from pathlib import Path
from xml.etree import ElementTree

from rich.text import Text

from omega.cli.demo.picture import draw, titled
from tests.architecture.tree import ROOT

PUBLISHED = ROOT / "docs" / "demo.svg"
ELSEWHERE = re.compile(r"""url\((?!["']?#)|@import|\bhref=|src:""")


def test_the_parts_are_drawn_one_below_the_other(tmp_path: Path) -> None:
    path = tmp_path / "demo.svg"
    draw(path, "a title", [Text("the screen"), titled(Text("the end"), "results")])

    words = " ".join(ElementTree.parse(path).getroot().itertext()).replace("\xa0", " ")
    assert words.index("a title") < words.index("the screen") < words.index("results")
    assert words.index("results") < words.index("the end")


def test_a_picture_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    path = tmp_path / "demo.svg"
    draw(path, "a title", [Text("the screen", "bold red")])

    assert None is ELSEWHERE.search(path.read_text())


def test_the_same_is_drawn_alike(tmp_path: Path) -> None:
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    for path in (one, two):
        draw(path, "a title", [Text("the screen")])

    assert one.read_text() == two.read_text()


def test_the_picture_in_the_documents_is_one_of_ours() -> None:
    text = PUBLISHED.read_text()
    words = " ".join(ElementTree.fromstring(text).itertext()).replace("\xa0", " ")

    assert None is ELSEWHERE.search(text)
    for word in ("jobs arrive", "conflicts", "batch 1", "ml-gpu 0", "every invariant holds"):
        assert word in words
