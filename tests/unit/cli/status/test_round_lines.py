"""The lines of `omega status` about rounds."""

from dataclasses import replace

from omega.cli.status.round_lines import TYPES_SHOWN, round_lines
from omega.model.round_summary import RoundSummary, TypeUse
from omega.reports.cell import CellReport
from tests.unit.cli.test_screens import a_use
from tests.unit.reports.test_work import ROUND, SHARE


def test_a_round_tells_its_number_policy_and_gpus_by_type() -> None:
    lost = replace(SHARE, job=8, type=None)
    summary = RoundSummary("fifo", [TypeUse("", 2, 1), TypeUse("v100", 4, 4)], [SHARE, lost])
    lines = [line.plain for line in round_lines([replace(ROUND, summary=summary)], 1_120_000)]

    assert [
        "round  batch 12, next in 4 min · fifo · 1 train, 1 wait, 1 preempted",
        "GPUs   other 1 of 2 (50%) · v100 4 of 4 (100%)",
    ] == lines


def test_kinds_that_tell_nothing_have_no_line() -> None:
    assert [] == list(round_lines([replace(ROUND, summary=None)], 0))


def test_of_many_types_the_rest_is_counted() -> None:
    many = [TypeUse(f"t{number}", 1, 0) for number in range(TYPES_SHOWN + 5)]
    _, line = round_lines([replace(ROUND, summary=RoundSummary("fifo", many, []))], 9_000_000)

    assert line.plain.endswith("t11 0 of 1 (0%) and 5 more")


def test_the_document_of_the_cell_has_the_rounds_that_tell_something() -> None:
    rounds = [ROUND, replace(ROUND, scheduler="elastic", summary=None)]
    summary = CellReport([], a_use(), rounds=rounds).summary()

    assert [
        {
            "scheduler": "batch",
            "number": 12,
            "began_ms": 1_000_000,
            "length_ms": 360_000,
            "policy": "fifo",
            "types": [
                {"name": "k80", "gpus": 4, "used": 0},
                {"name": "v100", "gpus": 4, "used": 4},
            ],
            "jobs": 1,
            "training": 1,
            "preempted": 0,
        }
    ] == summary["rounds"]
