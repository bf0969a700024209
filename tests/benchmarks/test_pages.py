"""Pages whose figures are filled in from documents, and what is said where that cannot be done."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.__main__ import main
from benchmarks.figures import NoSuchFigure, Results, filled, found
from benchmarks.layout import WIDTH, CannotBeSet, aligned, blocks, wrapped
from benchmarks.pages import MARK, findings

TOLD = {
    "rows": [
        {"way": "full", "n": 1, "ms": 2.25, "note": None},
        {"way": "full", "n": 2, "ms": 3.5, "note": "late"},
    ],
    "summary": {
        "rate": 56978.4,
        "count": 12345,
        "share": 0.949,
        "claims": [
            {"claim": "more is more", "measured": "1.5 times", "holds": True},
            {"claim": "less is less", "measured": "2 times", "holds": False},
        ],
    },
}

Write = Callable[[str], Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one document and no template."""
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "results" / "some-run.json").write_text(json.dumps(TOLD))
    return tmp_path


@pytest.fixture
def results(root: Path) -> Results:
    return Results(root / "benchmarks" / "results")


@pytest.fixture
def write(root: Path) -> Write:
    """Write a template; return where its page lies."""

    def template(text: str) -> Path:
        folder = root / "benchmarks" / "findings"
        (folder / "templates").mkdir(parents=True, exist_ok=True)
        (folder / "templates" / "a.md").write_text(text)
        return folder / "a.md"

    return template


def lines_of(page: Path) -> list[str]:
    return page.read_text().splitlines()[2:]


@pytest.mark.parametrize(
    ("field", "figure"),
    [
        ("{some-run: summary.rate | ,.0f}", "56,978"),
        ("{some-run: summary.count}", "12,345"),
        ("{some-run: summary.share | .1%}", "94.9%"),
        ("{some-run: rows[way=full, n=2].ms | .2f} ms", "3.50 ms"),
        ("{some-run: rows[n=2].note | .2}", "la"),
        ("no field", "no field"),
    ],
)
def test_a_field_becomes_the_figure_in_its_format(
    field: str, figure: str, results: Results
) -> None:
    assert figure == filled(field, results)


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("{other: summary.rate}", "results has no other.json"),
        ("{some-run: summary.rat | .1f}", "summary has no 'rat', but rate, count, share, claims"),
        ("{some-run: total}", "the document has no 'total'"),
        ("{some-run: summary.count.more}", "summary.count has no 'more', but int"),
        ("{some-run: rows[way=full].ms}", "2 entries of rows match [way=full], not 1"),
        ("{some-run: rows[n=3].ms}", "0 entries of rows match"),
        ("{some-run: summary[n=3]}", "summary is no list"),
        ("{some-run: summary.rate}", "56978.4 needs a format"),
        ("{some-run: summary.rate | .1x}", "cannot be written as .1x"),
        ("{some-run: rows[n=1].note}", "there is nothing there"),
        ("{some-run: summary}", "there is no single figure there"),
        ("{some-run summary.rate}", "is no field"),
        ("an open { brace", "is no field"),
    ],
)
def test_what_is_no_figure_is_told(field: str, problem: str, results: Results) -> None:
    with pytest.raises(NoSuchFigure) as caught:
        filled(field, results)

    assert problem in str(caught.value)


def test_entries_are_found_by_what_they_hold() -> None:
    assert 3.5 == found(TOLD, "rows[way=full, n=2].ms")


def test_a_page_has_a_mark_figures_tables_and_claims(root: Path, write: Write) -> None:
    page = write(
        "# Title\n\nIt takes\n{some-run: rows[n=1].ms | .1f} ms.\n\n"
        "```table\nhead: n\ncell: '{some-run: rows[n=ROW].COLUMN | .2f}'\n"
        "columns: {time: ms}\nrows: [1, 2]\n```\n\n"
        "```claims\nsome-run\n```\n\n```sh\necho {as it is}\n```\n"
    )

    assert [] == findings(root)
    assert page.read_text().startswith(f"{MARK}benchmarks/findings/templates/a.md")
    assert lines_of(page) == [
        "# Title",
        "",
        "It takes 2.2 ms.",
        "",
        "| n   | time |",
        "| --- | ---: |",
        "| 1   | 2.25 |",
        "| 2   | 3.50 |",
        "",
        "1. **Holds:** more is more.",
        "   Measured: 1.5 times.",
        "2. **Does not hold:** less is less.",
        "   Measured: 2 times.",
        "",
        "```sh",
        "echo {as it is}",
        "```",
    ]
    assert [] == findings(root, check=True)


@pytest.mark.parametrize(
    ("template", "line", "problem"),
    [
        (
            "# Title\n\nOne\ntwo {some-run: summary.x | .1f}\n",
            4,
            "some-run: summary.x: summary has",
        ),
        ("\n```table\nhead: n\ncolumns: {a: b}\n```\n", 2, "this is no table"),
        ("\n```table\ncell: 'x'\ncolumns: [a]\nrows: {[\n```\n", 2, "this is no table"),
        ("\n\n```claims\nother\n```\n", 3, "results has no other.json"),
        (f"| a |\n|---|\n| {'x' * WIDTH} |\n", 1, f"wide, over {WIDTH}"),
    ],
)
def test_a_problem_names_template_and_line_and_nothing_is_written(
    template: str, line: int, problem: str, root: Path, write: Write
) -> None:
    page = write(template)

    (said,) = findings(root)

    assert f"benchmarks/findings/templates/a.md:{line}: " in str(said)
    assert problem in str(said)
    assert not page.exists()


def test_a_page_that_was_changed_by_hand_is_named_with_its_line(root: Path, write: Write) -> None:
    page = write("One.\n\nTwo {some-run: summary.count}.\n")
    findings(root)
    page.write_text(page.read_text().replace("12,345", "12,346"))

    (said,) = findings(root, check=True)

    assert str(said) == ("benchmarks/findings/a.md:5: reads 'Two 12,346.', should be 'Two 12,345.'")
    assert "12,346" in page.read_text()


def test_a_page_that_is_missing_or_has_no_template_is_named(root: Path, write: Write) -> None:
    page = write("One.\n")
    (missing,) = findings(root, check=True)
    findings(root)
    (root / "benchmarks" / "findings" / "templates" / "a.md").unlink()
    (left_over,) = findings(root, check=True)

    assert "a.md:1: reads nothing, should be " in str(missing)
    assert "a.md:1: has no template any more" in str(left_over)
    assert page.exists()


def test_the_command_checks_with_exit_code_1_and_says_what_to_do(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("One.\n")
    monkeypatch.setattr(pages, "findings", lambda *, check: findings(root, check=check))
    codes = []
    for arguments in (["--check"], [], ["--check"]):
        with pytest.raises(SystemExit) as end:
            main(["findings", *arguments])
        codes.append(end.value.code)

    said = capsys.readouterr().err
    assert [1, 0, 0] == codes
    assert "benchmarks/findings/a.md:1: reads nothing" in said
    assert f"To write the pages anew: {pages.COMMAND}" in said


def test_every_line_of_a_template_is_in_one_block() -> None:
    text = "# a\none\ntwo\n* item\n  more\n* item\n\n| a |\n|---|\n```sh\n* b\n```\n![p](q)\n"
    kinds = [(block.kind, block.line, len(block.lines)) for block in blocks(text)]

    assert kinds == [
        ("line", 1, 1),
        ("text", 2, 2),
        ("text", 4, 2),
        ("text", 6, 1),
        ("line", 7, 1),
        ("table", 8, 2),
        ("fence", 10, 3),
        ("line", 13, 1),
    ]


def test_items_of_lists_are_indented_and_words_stay_whole() -> None:
    word = "x" * 60

    assert [f"* {word}", f"  {word}"] == wrapped([f"* {word}", f"  {word}"])
    assert [f"12. {word}", f"    {word}"] == wrapped([f"12. {word} {word}"])
    assert ["y" * 200] == wrapped(["y" * 200])


def test_text_that_would_turn_into_a_list_is_refused() -> None:
    with pytest.raises(CannotBeSet, match="reword"):
        wrapped([f"{'x' * WIDTH} 3. is a number"])


def test_tables_are_aligned_and_have_as_many_columns_in_each_row() -> None:
    assert ["| a   |     b |", "| --- | ----: |", "| cc  | 1,000 |"] == aligned(
        ["|a|b|", "|---|---:|", "|cc|1,000|"]
    )
    with pytest.raises(CannotBeSet, match="different numbers of columns"):
        aligned(["|a|b|", "|---|---|", "|c|"])
