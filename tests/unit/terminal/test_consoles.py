"""Where a verb says things."""

import json
import math
from pathlib import Path

import pytest

from omega import __version__
from omega.errors import BadInput
from omega.terminal.consoles import Output
from omega.terminal.progress import progress_bar


def write(output: Output) -> None:
    output.console.print("for a person")
    output.document(parameters={"a": 1}, rows=[{"b": 2}], summary={"c": 3})


def test_without_a_document_results_go_to_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Output())

    assert ("for a person\n", "") == capsys.readouterr()


def test_a_document_on_standard_output_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    write(Output("-"))

    out, err = capsys.readouterr()
    document = json.loads(out)
    assert ["parameters", "environment", "rows", "summary"] == list(document)
    assert [{"a": 1}, [{"b": 2}], {"c": 3}] == [
        document[part] for part in ("parameters", "rows", "summary")
    ]
    assert __version__ == document["environment"]["omega"]
    assert "for a person\n" == err


def test_a_number_that_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"x": [math.inf, 1.5], "y": {"z": (-math.inf, math.nan, "NaN")}}]
    Output("-").document(parameters={}, rows=rows, summary={"w": math.inf})
    document = json.loads(capsys.readouterr().out)

    assert [{"x": [None, 1.5], "y": {"z": [None, None, "NaN"]}}] == document["rows"]
    assert {"w": None} == document["summary"]


def test_a_document_in_a_file_leaves_standard_output_to_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Output(str(tmp_path / "out.json")))

    assert {"c": 3} == json.loads((tmp_path / "out.json").read_text())["summary"]
    assert ("for a person\n", "") == capsys.readouterr()


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="field --json: there is no folder"):
        Output(str(tmp_path / "absent" / "out.json"))
    with pytest.raises(BadInput, match="is a folder"):
        Output(str(tmp_path))


def test_progress_is_not_shown_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_bar(Output().console) as progress:
        progress.advance(progress.add_task("Working", total=2), 2)

    assert ("", "") == capsys.readouterr()


def test_a_document_may_have_parts_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    Output("-").document(parameters={}, rows=[], summary={}, digest={"d": 4})

    assert {"d": 4} == json.loads(capsys.readouterr().out)["digest"]
