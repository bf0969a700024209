"""Amounts as people write them."""

from collections.abc import Callable

import pytest

from omega.model.quotas import UNLIMITED, Budget
from omega.workload.quantities import (
    cpu_milli,
    disk_mib,
    duration_ms,
    gpus_and_slices,
    limit_of,
    memory_mib,
    shown,
)


@pytest.mark.parametrize(
    ("written", "milli"),
    [(2, 2_000), (0.5, 500), ("500m", 500), ("0.25", 250), ("1.001", 1_001), (0, 0), ("3 ", 3_000)],
)
def test_cores_become_thousandths(written: object, milli: int) -> None:
    assert milli == cpu_milli(written)


@pytest.mark.parametrize(
    ("written", "amount"),
    [("512MiB", 512), ("4GiB", 4_096), ("1.5 TiB", 1_572_864), ("0.5GiB", 512), (0, 0)],
)
def test_memory_and_disk_become_mebibytes(written: object, amount: int) -> None:
    assert amount == memory_mib(written)
    assert amount == disk_mib(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(2, (2, 1_000)), (0.5, (1, 500)), ("0.25", (1, 250)), (0, (0, 1_000)), (1.0, (1, 1_000))],
)
def test_gpus_are_whole_or_a_share_of_one(written: object, meant: tuple[int, int]) -> None:
    assert meant == gpus_and_slices(written)


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        (90, 90_000),
        (0.5, 500),
        ("250ms", 250),
        ("30s", 30_000),
        ("10m", 600_000),
        ("1.5h", 5_400_000),
        ("2d", 172_800_000),
        ("7", 7_000),
        (None, None),
    ],
)
def test_times_become_milliseconds(written: object, milliseconds: int | None) -> None:
    assert milliseconds == duration_ms(written)


@pytest.mark.parametrize(
    ("read", "written", "said"),
    [
        (cpu_milli, "2 cores", "not an amount of CPU; write for example 2, 0.5 or 500m"),
        (cpu_milli, -1, "not an amount of CPU"),
        (cpu_milli, True, "true is not an amount of CPU"),
        (cpu_milli, [1], "not an amount of CPU"),
        (cpu_milli, 0.0005, "finer than"),
        (cpu_milli, 1e-7, "not an amount of CPU"),
        (cpu_milli, 3_000_000, "more than any machine"),
        (memory_mib, 4, "4 is not an amount of memory; write for example 512MiB or 4GiB"),
        (memory_mib, "4GB?", r"'4GB\?' is not an amount of memory"),
        (memory_mib, "0.1MiB", "finer than"),
        (memory_mib, "9" * 15 + "TiB", "more than any machine"),
        (disk_mib, "10 gigs", "not an amount of disk"),
        (disk_mib, False, "false is not an amount of disk"),
        (gpus_and_slices, 1.5, "only a single GPU can be shared"),
        (gpus_and_slices, 9, "more than the 8 GPUs of one machine"),
        (gpus_and_slices, 0.0005, "finer than 1/1000"),
        (gpus_and_slices, "two", "not a number of GPUs"),
        (duration_ms, "soon", "not a duration; write seconds, or for example 30s, 10m or 2h"),
        (duration_ms, "5M", "not a duration"),
        (duration_ms, "0.0001s", "finer than a millisecond"),
        (duration_ms, "40000d", "more than a century"),
    ],
)
def test_what_cannot_be_read_says_what_to_write(
    read: Callable[[object], object], written: object, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        read(written)


@pytest.mark.parametrize(
    ("budget", "written", "limit"),
    [
        (Budget.CPU_MILLI, "100", 100_000),
        (Budget.CPU_MILLI, "500m", 500),
        (Budget.CPU_MILLI, "99000000", 99_000_000_000),
        (Budget.MEMORY_MIB, "400GiB", 409_600),
        (Budget.DISK_MIB, "9000TiB", 9_437_184_000),
        (Budget.GPU_SLICES, "2.5", 2_500),
        (Budget.GPU_SLICES, "1000", 1_000_000),
        (Budget.JOBS, "20", 20),
    ],
)
def test_limits_are_as_large_as_a_cell(budget: Budget, written: str, limit: int) -> None:
    assert limit == limit_of(budget, written)


@pytest.mark.parametrize("budget", Budget)
def test_nothing_at_all_can_be_allowed_of_each_budget(budget: Budget) -> None:
    assert 0 == limit_of(budget, "0")


@pytest.mark.parametrize(
    ("budget", "written", "said"),
    [
        (Budget.CPU_MILLI, "many", "'many' is not an amount of CPU; write for example 2, 0.5"),
        (Budget.CPU_MILLI, "0.0001", "finer than"),
        (Budget.MEMORY_MIB, "4", "'4' is not an amount of memory; write for example 512MiB"),
        (Budget.MEMORY_MIB, "9" * 12 + "TiB", "more than any cell has; leave it out"),
        (Budget.DISK_MIB, "", "'' is not an amount of disk"),
        (Budget.GPU_SLICES, "0.0001", "finer than"),
        (Budget.GPU_SLICES, "8GPU", "not an amount of GPUs; write for example 8 or 2.5"),
        (Budget.JOBS, "1.5", "finer than"),
        (Budget.JOBS, "-1", "'-1' is not an amount of jobs; write for example 20"),
        (Budget.JOBS, str(UNLIMITED), "not an amount of jobs"),
        (Budget.JOBS, "9" * 5_000, "not an amount of jobs"),
    ],
)
def test_what_is_no_limit_says_what_to_write(budget: Budget, written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        limit_of(budget, written)


def test_what_is_shown_reads_like_yaml_and_is_short() -> None:
    assert ["'a'", "true", "2"] == [shown(value) for value in ("a", True, 2)]
    assert len(shown("x" * 1_000)) < 70
    assert len(shown(["x"] * 1_000)) < 70
