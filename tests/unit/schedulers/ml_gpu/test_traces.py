"""Traces of training jobs as files."""

from pathlib import Path

import pytest

from omega.errors import BadInput
from schedulers.ml_gpu.throughputs import Throughputs, read_throughputs
from schedulers.ml_gpu.traces import read_trace

HEADER = "job_type,scale_factor,total_steps,priority_weight,arrival_s\n"


@pytest.fixture
def table(samples: Path) -> Throughputs:
    return read_throughputs(samples / "gavel" / "simulation_throughputs.json")


def test_jobs_come_in_order_of_arrival(table: Throughputs, tmp_path: Path) -> None:
    path = tmp_path / "jobs.trace"
    late = ["B", "run", "dir", "-n", "0", "10", "1", "5", "-1.0", "60.5"]
    early = ["A", "run", "dir", "-n", "0", "20", "1", "1", "-1.0", "0"]
    path.write_text("\n".join("\t".join(row) for row in (late, early)))
    trace = read_trace(path, table)

    assert [("A", 1), ("B", 1)] == [table.kinds[row] for row in trace.row]
    assert [20, 10] == trace.steps.tolist()
    assert [1, 5] == trace.weight.tolist()
    assert [0, 60.5] == trace.arrival_s.tolist()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("A,1,10,1,-3", "line 2, field arrival_s: '-3' is not a number from 0"),
        ("A,1,10,0,0", "line 2, field priority_weight: '0' is not"),
        ("A,1,0,1,0", "line 2, field total_steps: '0' is not"),
        ("A,x,10,1,0", "line 2, field scale_factor: 'x' is not"),
        ("A,1.5,10,1,0", "line 2, field scale_factor: '1.5' is not a whole number"),
        ("A,true,10,1,0", "line 2, field scale_factor: 'true' is not a whole number"),
        ("A,1,10.5,1,0", "line 2, field total_steps: '10.5' is not a whole number"),
        ("A,1,nan,1,0", "line 2, field total_steps: 'nan' is not"),
        ("A,1,10", "line 2, field priority_weight: it is missing"),
        (",1,10,1,0", "line 2, field job_type: it is missing"),
        ("Z,1,10,1,0", "no rates are known of Z on 1 GPUs"),
        ("", "holds no jobs"),
    ],
)
def test_what_is_malformed_is_refused(
    table: Throughputs, tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + line)

    with pytest.raises(BadInput) as refused:
        read_trace(path, table)

    assert words in str(refused.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00\x00"])
def test_what_is_no_text_is_refused(table: Throughputs, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(content)

    with pytest.raises(BadInput):
        read_trace(path, table)


def test_a_file_that_is_not_there_is_refused(table: Throughputs, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_trace(tmp_path / "none.csv", table)
