"""What is told of quotas."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest
from rich.cells import cell_len
from rich.console import RenderableType

from omega.cli.quota.screens import QUOTAS_SHOWN, quotas_table, used_up_line
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.reports.quotas import NAMES, amount, left_for, row_of, used_up
from omega.terminal.terminal import PrintableConsole

CPU, MEMORY, DISK, GPUS, JOBS = Budget
COLOURED = re.compile("\x1b\\[(3[0-9])m *(-?[0-9]+)\x1b")


def a_use(
    limits: Mapping[Budget, int],
    left: Mapping[Budget, int],
    *,
    scope: QuotaScope = QuotaScope.TENANT,
    name: str = "ann",
) -> QuotaUse:
    return QuotaUse(Quota(scope, name, limits), left)


def drawn(renderable: RenderableType, *, width: int = 80, coloured: bool = False) -> list[str]:
    console = PrintableConsole(width=width, color_system="standard" if coloured else None)
    with console.capture() as capture:
        console.print(renderable)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_every_budget_has_a_name() -> None:
    assert list(Budget) == list(NAMES)


@pytest.mark.parametrize(
    ("budget", "number", "text"),
    [
        (CPU, 100_000, "100"),
        (CPU, 1_234_567, "1,234.567"),
        (CPU, -500, "-0.5"),
        (MEMORY, 0, "0"),
        (MEMORY, 512, "512 MiB"),
        (MEMORY, 409_600, "400 GiB"),
        (MEMORY, -1_536, "-1.5 GiB"),
        (DISK, 1_572_864, "1.5 TiB"),
        (DISK, 12_345 * 1_048_576, "12,345 TiB"),
        (GPUS, 2_500, "2.5"),
        (JOBS, 12_345, "12,345"),
        (JOBS, None, "-"),
    ],
)
def test_amounts_read_as_people_write_them(budget: Budget, number: int | None, text: str) -> None:
    assert text == amount(budget, number)


def test_a_quota_is_what_it_allows_what_is_used_and_what_is_left() -> None:
    use = a_use({CPU: 100_000, MEMORY: 409_600, JOBS: 20}, {CPU: 60_000, MEMORY: 1_024, JOBS: 0})

    assert [
        ["quota", "cpu", "memory", "disk", "gpus", "jobs"],
        ["tenant", "ann", "limit", "100", "400", "GiB", "-", "-", "20"],
        ["used", "40", "399", "GiB", "-", "-", "20"],
        ["left", "60", "1", "GiB", "-", "-", "0"],
    ] == [line.split() for line in drawn(quotas_table([use]))]


def test_what_is_overdrawn_is_red_and_what_is_used_up_yellow() -> None:
    use = a_use({CPU: 1_000, GPUS: 1_000, JOBS: 5}, {CPU: -2_000, GPUS: 0, JOBS: 4})

    *_, left = drawn(quotas_table([use]), coloured=True)

    assert [("31", "-2"), ("33", "0")] == COLOURED.findall(left)


@pytest.mark.parametrize("width", [80, 120])
def test_a_long_name_is_told_whole_and_the_table_fits(width: int) -> None:
    most = {CPU: 99_999_999_999, MEMORY: 2**40, DISK: 2**40, GPUS: 999_999, JOBS: 999_999}
    use = a_use(most, dict.fromkeys(most, -1_023), name="x" * 90)

    lines = drawn(quotas_table([use]), width=width)

    assert max(map(cell_len, lines)) <= width
    assert 90 == "".join(lines).count("x")


def test_a_name_is_shown_as_it_is_written() -> None:
    use = a_use({JOBS: 1}, {JOBS: 1}, name="[red]x[/]")

    assert "[red]x[/]" in "".join(drawn(quotas_table([use])))
    assert ["left for tenant [red]x[/]: jobs 1"] == left_for("[red]x[/]", "batch", [use])


def test_a_job_draws_on_its_tenants_quota_and_on_its_schedulers() -> None:
    uses = [
        a_use({JOBS: 3}, {JOBS: 1}, scope=QuotaScope.SCHEDULER, name="batch"),
        a_use({JOBS: 3}, {JOBS: 2}, scope=QuotaScope.SCHEDULER, name="ann"),
        a_use({CPU: 3_000, MEMORY: 9}, {CPU: 500, MEMORY: 0}),
    ]

    assert [
        "left for scheduler batch: jobs 1",
        "left for tenant ann: cpu 0.5, memory 0",
    ] == left_for("ann", "batch", uses)
    assert [] == left_for("bob", "service", uses)


def test_a_quota_is_used_up_in_some_budgets() -> None:
    uses = [
        a_use({CPU: 1, JOBS: 1}, {CPU: 1, JOBS: 1}),
        a_use({CPU: 1, JOBS: 1, GPUS: 1}, {CPU: 0, JOBS: 1, GPUS: -1}, name="bob"),
    ]

    assert [(uses[1], [CPU, GPUS])] == list(used_up(uses))


def test_only_a_few_of_those_that_are_used_up_are_named() -> None:
    uses = [a_use({JOBS: 1}, {JOBS: 0}, name=f"t{n}") for n in range(QUOTAS_SHOWN + 2)]

    assert used_up_line([]) is None
    assert (
        "used up: tenant t0 (jobs) · tenant t1 (jobs) · tenant t2 (jobs) and 2 more;"
        " see: omega quota list"
    ) == str(used_up_line(uses))


def test_a_row_has_every_budget_exactly() -> None:
    row = row_of(a_use({CPU: 1_500, JOBS: 3}, {CPU: -1, JOBS: 3}))

    nothing = dict.fromkeys(budget.column for budget in Budget)
    assert {
        "scope": "tenant",
        "name": "ann",
        "counted": True,
        "limits": {**nothing, "cpu_milli": 1_500, "jobs": 3},
        "used": {**nothing, "cpu_milli": 1_501, "jobs": 0},
        "left": {**nothing, "cpu_milli": -1, "jobs": 3},
    } == row


def test_of_a_quota_that_is_not_counted_nobody_says_what_is_used() -> None:
    use = replace(a_use({JOBS: 3}, {JOBS: 0}), counted=False)

    limit, used, left = drawn(quotas_table([use]))[1:]
    row = row_of(use)

    assert ["tenant", "ann", "limit", "-", "-", "-", "-", "3"] == limit.split()
    assert "not counted: set it again" in used
    assert ["used", "-", "-", "-", "-", "-"] == used.split()[-6:]
    assert ["left", "-", "-", "-", "-", "0"] == left.split()
    assert "used up: tenant ann (not counted); see: omega quota list" == str(used_up_line([use]))
    assert not row["counted"]
    assert {None} == set(cast("dict[str, object]", row["used"]).values())
