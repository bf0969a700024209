"""Use in hours, and as a table for spreadsheets."""

import csv
import io

import pytest

from omega.reports.usage import UsageReport
from omega.store.usage import Consumer, Usage, UsageBy, Used

HOUR_US = 3_600 * 1_000_000


def a_report(
    *rows: tuple[Consumer, Used], by: UsageBy = UsageBy.TENANT, oldest_ms: int | None = None
) -> UsageReport:
    return UsageReport(Usage(by, 1_000, 2_000, rows, Used(), oldest_ms=oldest_ms))


def test_hours_are_amounts_times_time() -> None:
    # Two cores and half a GPU for an hour and a half, 3 GiB for two hours, no disk.
    held_us = (2_000 * 3 * HOUR_US // 2, 3 * 1_024 * 2 * HOUR_US, 0, 500 * 3 * HOUR_US // 2)

    (row,) = a_report((Consumer("ann"), Used(runs=1, held_us=held_us))).rows()

    hours = {name: its for name, its in row.items() if name.endswith("_hours")}
    assert hours == {
        "core_hours": 3.0,
        "gpu_hours": 0.75,
        "memory_gib_hours": 6.0,
        "disk_gib_hours": 0.0,
    }
    assert row["held_us"] == {
        "cpu_milli": held_us[0],
        "memory_mib": held_us[1],
        "disk_mib": 0,
        "gpu_slices": held_us[3],
    }


def test_amounts_beyond_64_bits_do_not_overflow() -> None:
    held_us = (10**9 * 10**6 * HOUR_US, 0, 0, 0)

    (row,) = a_report((Consumer("ann"), Used(held_us=held_us))).rows()

    assert 10.0**12 == row["core_hours"]


def test_waits_are_those_of_jobs_that_had_an_attempt() -> None:
    waited = Used(attempted=2, waited_us=3_000_000, waited_longest_us=2_500_000, unattempted=4)
    rows = a_report((Consumer("ann"), waited), (Consumer("bob"), Used(unattempted=1))).rows()

    told = [(row["wait_mean_s"], row["wait_longest_s"], row["unattempted"]) for row in rows]
    assert [(1.5, 2.5, 4), (None, None, 1)] == told


def test_csv_reads_back() -> None:
    waited = Used(attempted=1, waited_us=1, runs=7, held_us=(HOUR_US, 0, 0, 0))
    report = a_report(
        (Consumer('a "b", c', 5, "ann", "batch"), waited),
        (Consumer("plain", 6, "bob", "batch"), Used()),
        by=UsageBy.JOB,
    )

    first, second = csv.DictReader(io.StringIO(report.csv_text()))

    assert ("5", 'a "b", c', "ann", "batch") == tuple(first.values())[:4]
    assert ("0.001000", "7", "0.000001") == (
        first["core_hours"],
        first["runs"],
        first["wait_mean_s"],
    )
    assert "" == second["wait_mean_s"], "nothing is known of it"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_name_is_a_formula(name: str) -> None:
    (row,) = csv.DictReader(io.StringIO(a_report((Consumer(name), Used())).csv_text()))

    assert f"'{name}" == row["tenant"]
    assert name == a_report((Consumer(name), Used())).rows()[0]["tenant"]


def test_a_name_cannot_end_a_line() -> None:
    text = a_report((Consumer("a\r\nb\x1b[2J"), Used())).csv_text()

    assert 1 == text.count("\n")
    assert text.isascii()
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(("oldest_ms", "cut"), [(None, False), (900, False), (1_500, True)])
def test_a_record_that_begins_within_the_time_is_told(oldest_ms: int | None, cut: bool) -> None:  # noqa: FBT001 - yes or no
    report = a_report(oldest_ms=oldest_ms)

    assert (cut, oldest_ms) == (report.is_cut, report.summary()["oldest_end_ms"])
