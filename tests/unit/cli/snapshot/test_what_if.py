"""`omega what-if` on a file: the table, the document and the picture."""

import json
from pathlib import Path

import pytest

from omega.store.saved.writing import write_cell
from omega.testing.builders import a_spec
from tests.fixtures.command_line import Omega, document
from tests.fixtures.saved_cells import a_saved_cell, a_saved_job, a_scheduler, some_machines

JOBS = 12


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cell of four machines, on which two schedulers raced for twelve jobs."""
    cell = a_saved_cell(
        machines=some_machines(4),
        jobs=tuple(
            a_saved_job(
                n, a_spec(cpu_milli=2_000, duration_ms=9_000), submitted_s=1, leased_s=1 + n / 4
            )
            for n in range(1, JOBS + 1)
        ),
        schedulers=(
            a_scheduler(replica="0", parts=[(1, 0), (1, 0), (1, 1)] * 3 + [(1, 0)]),
            a_scheduler(replica="1", parts=[(1, 1), (1, 0), (1, 0)] * 3 + [(1, 0)]),
        ),
    )
    write_cell(cell, path := tmp_path / "cell.snapshot")
    return path


def test_what_happened_stands_beside_what_is_simulated_and_what_would_be(
    omega: Omega, file: Path
) -> None:
    told = document(
        omega(
            *("what-if", file, "--t-job", "0.2", "--rule", "sequence", "--add-machines", 2),
            *("--seeds", 2, "--workers", 1, "--json", "-"),
        )
    )

    assert {"rule": "sequence", "t_job": "0.2", "add_machines": 2} == told["parameters"]["changes"]
    assert [("happened", 12, 0.25), ("simulated", 12), ("what if", 12)] == [
        (row["what"], row["jobs"], *[row["conflict_fraction"]] * (row["what"] == "happened"))
        for row in told["rows"]
    ]
    happened, simulated, _ = told["rows"]
    assert ["conflict_fraction"] == list(happened["deviation"])
    assert set(simulated["deviation"]) == set(happened) - {"what", "kind", "deviation"}
    (agreement,) = told["summary"]["agreement"].values()
    variance = sum(row["deviation"]["conflict_fraction"] ** 2 for row in (happened, simulated))
    off = happened["conflict_fraction"] - simulated["conflict_fraction"]
    assert agreement["conflict_fraction"] == pytest.approx(off / variance**0.5, abs=0.01)
    assert 0.2 == told["summary"]["paces"]["simulated"]["batch"]["t_job_s"]
    assert [0, 1] == told["summary"]["seeds"]


def test_the_same_file_and_seed_give_the_same_figures(omega: Omega, file: Path) -> None:
    asked = ("what-if", file, "--t-job", 1, "--seeds", 2, "--seed", 5, "--workers", 1)

    first, second = (document(omega(*asked, "--json", "-"))["rows"] for _ in range(2))
    assert first == second


def test_a_person_sees_a_table_and_a_picture(omega: Omega, file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "otherwise.png"
    ran = omega(
        *("what-if", file, "--t-job", 0.2, "--schedulers", "batch=4"),
        *("--seeds", 1, "--workers", 1, "--plot", picture),
    )

    lines = [line.split() for line in ran.out.splitlines()]
    assert (0, ["kind", "happened", "simulated", "what", "if"]) == (ran.code, lines[0])
    assert ["batch", "schedulers", "2", "2", "4"] == lines[1]
    (conflicts,) = (line for line in lines if line[:2] == ["conflict", "fraction"])
    assert conflicts[3].startswith("±"), "also of what happened"
    assert "nobody reported what commits of batch took" in ran.out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["missing"], "missing: it cannot be read"),
        ([], "nobody reported how long batch takes to decide"),
        (["--t-job", "0", "--schedulers", "bach=2"], "no scheduler is registered as 'bach'"),
        (["--t-job", "0", "--plot", "a.gif"], "ends in none of"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    omega: Omega, file: Path, asked: list[str], said: str
) -> None:
    ran = omega("what-if", *([file] if asked != ["missing"] else []), *asked)

    assert (2, "") == (ran.code, ran.out)
    assert said in " ".join(ran.err.split())


def test_a_file_that_was_cut_off_is_refused(omega: Omega, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])

    ran = omega("what-if", file)
    assert 2 == ran.code
    assert f"{file}: it is cut off" in " ".join(ran.err.split())


def test_a_document_goes_to_a_file(omega: Omega, file: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    omega("what-if", file, "--t-job", 0.2, "--seeds", 1, "--workers", 1, "--json", told)

    assert ["happened", "simulated"] == [
        row["what"] for row in json.loads(told.read_text())["rows"]
    ]
