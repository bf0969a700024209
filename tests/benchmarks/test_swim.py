"""The jobs of a MapReduce trace, by hand: 1, 10, 20 and 1,000 maps, one with three reduces."""

import gzip
from pathlib import Path

import pytest

from benchmarks.swim import read_jobs
from omega.errors import BadInput
from tests.benchmarks.conftest import PNG, Bench

TRACE = Path(__file__).parents[1] / "samples" / "swim-facebook-2009"
HEADER = "job,map_input_bytes,shuffle_bytes\n"


def test_who_gains_is_counted_for_each_number_of_workers(bench: Bench) -> None:
    ran = bench("swim", "--trace", str(TRACE))

    assert [(5, 0.75), (11, 0.5), (200, 0.25), (1_000, 0.0)] == [
        (row["wanted"], row["gains"]) for row in ran.rows
    ]
    # With five workers: 1, 2, 4 + 1 and 200 waves; with as many as help 1, 1, 1 + 1 and 1.
    assert (
        "Of 4 jobs 75% have more than 5 maps; with 5 workers 75% gain from more, with 11 50%"
        == ran.document["summary"]["finding"]
    )
    # With four times five: 1, 1, 1 + 1 and 50. So the speed-ups are 1, 2, 2.5 and 4.
    assert pytest.approx(2.5 + 0.85 * 1.5) == ran.rows[0]["relative_p95"]
    assert ran.picture.startswith(PNG)


def test_maps_read_blocks_and_reduces_gigabytes() -> None:
    maps, reduces = read_jobs(TRACE)

    assert [1, 10, 20, 1_000] == maps.tolist()
    assert [0, 0, 3, 0] == reduces.tolist()


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("job0,-1,0\n", 2, "map_input_bytes"),
        ("job0,1,0\njob1,5,many\n", 3, "shuffle_bytes"),
        ("job0,1\n", 2, "shuffle_bytes"),
        (f"job0,{'9' * 5_000},1\n", 2, "map_input_bytes"),
        ("job0,9223372036854775807,1\n", 2, "map_input_bytes"),
    ],
)
def test_a_line_that_is_none_is_told(tmp_path: Path, text: str, line: int, field: str) -> None:
    (tmp_path / "fb2009_0.csv.gz").write_bytes(gzip.compress((HEADER + text).encode()))

    with pytest.raises(BadInput) as refusal:
        read_jobs(tmp_path)

    assert (line, field) == (refusal.value.line, refusal.value.field)


def test_a_folder_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no fb2009"):
        read_jobs(tmp_path)
    (tmp_path / "fb2009_0.csv.gz").write_bytes(gzip.compress(HEADER.encode()))
    with pytest.raises(BadInput, match="no job in it"):
        read_jobs(tmp_path)
    (tmp_path / "fb2009_0.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(BadInput, match="cannot be read"):
        read_jobs(tmp_path)
