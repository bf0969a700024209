"""The columns of `omega top`: what each shows, and what it is sorted by.

Goal     One list of columns for each tab, on wide and on narrow terminals.
Promise  Figures are written as `omega status`, `jobs` and `cell show` write them. Names are
         printable. Drawn from values alone.
Source   omega/reports/top.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from omega.cli.cell.machine_lines import STATE_COLOURS
from omega.cli.job.screens import COLOURS
from omega.cli.screens import BUSY, FULL, PROCESS_COLOURS, conflict_colour
from omega.lifecycle.states import FINAL
from omega.reports.machine_lines import FREE, RESOURCES, MachineLine
from omega.reports.machines import state_name
from omega.reports.printable import printable
from omega.reports.processes import SchedulerLine
from omega.reports.top import Sortable, Tab
from omega.reports.wording import UNKNOWN, count, duration, fraction, share
from omega.store.status import JobStatus

NAME_COLUMNS: Final = 24
"""The longest name that a table shows."""
FREE_TITLES: Final = {
    "cpu": "cores free",
    "memory": "GiB free",
    "disk": "disk free",
    "gpu": "GPUs free",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    key: str
    title: str
    value: Callable[[Any], Sortable]
    """What rows are sorted by."""
    text: Callable[[Any, int], Text]
    """What is shown of a row, at a time of the store's clock in milliseconds."""
    is_text: bool = False
    """Sorted from a to z at first; numbers from the largest on."""
    is_wide: bool = False
    """Left out on a narrow terminal."""


def name_text(name: str) -> Text:
    """Return a name for a table: printable, on one line, cut to NAME_COLUMNS."""
    return Text(printable(name, NAME_COLUMNS), no_wrap=True)


def _named(key: str, of: Callable[[Any], str], *, wide: bool = False) -> Column:
    def text(row: Any, _: int) -> Text:  # noqa: ANN401 - a row of any tab
        return name_text(of(row))

    return Column(key=key, title=key, value=of, text=text, is_text=True, is_wide=wide)


def _figure(
    key: str,
    of: Callable[[Any], float | None],
    write: Callable[[float | None], str],
    *,
    colour: Callable[[float | None], str] = lambda _: "",
    wide: bool = False,
) -> Column:
    def text(row: Any, _: int) -> Text:  # noqa: ANN401 - a row of any tab
        number = of(row)
        return Text(write(number), colour(number), justify="right")

    return Column(key=key, title=key, value=of, text=text, is_wide=wide)


def _state(of: Callable[[Any], tuple[str, str]]) -> Column:
    """Return the column of states, each with its colour."""

    def text(row: Any, _: int) -> Text:  # noqa: ANN401 - a row of any tab
        return Text(*of(row))

    return Column(key="state", title="state", value=lambda row: of(row)[0], text=text, is_text=True)


def _of_scheduler(line: SchedulerLine) -> tuple[str, str]:
    return line.state.value, PROCESS_COLOURS[line.state]


SCHEDULERS: Final = (
    _named("scheduler", lambda it: str(it.name)),
    _state(_of_scheduler),
    _figure("jobs/s", lambda it: it.jobs_per_second, count),
    _figure("tasks/s", lambda it: it.tasks_per_second, count),
    _figure("conflicts", lambda it: it.conflict_fraction, fraction, colour=conflict_colour),
    _figure(
        "busy",
        lambda it: it.busyness,
        share,
        colour=lambda part: "yellow" if (part or 0.0) > BUSY else "",
    ),
    _figure("wait p50", lambda it: it.wait_p50_s, duration, wide=True),
    _figure("wait p90", lambda it: it.wait_p90_s, duration, wide=True),
    _figure("view age", lambda it: it.view_age_s, duration),
)


def _age(key: str, since_ms: Callable[[JobStatus], int | None]) -> Column:
    """Return a column of the time since a moment: the longest ago is the largest."""

    def value(job: JobStatus) -> float | None:
        moment = since_ms(job)
        return None if moment is None else -moment

    def text(job: JobStatus, now_ms: int) -> Text:
        moment = since_ms(job)
        ago = UNKNOWN if moment is None else duration(max(0, now_ms - moment) / 1_000)
        return Text(ago, justify="right")

    return Column(key=key, title=key, value=value, text=text)


def _waiting_since(job: JobStatus) -> int | None:
    """Return when a job that lacks places was submitted; None for others."""
    is_whole = job.state in FINAL or job.placed == job.tasks
    return None if is_whole else job.submitted_ms


def _of_job(job: JobStatus) -> tuple[str, str]:
    return job.state.value, COLOURS[job.state]


def _placed(job: JobStatus, _: int) -> Text:
    return Text(f"{job.placed:,}/{job.tasks:,}", justify="right")


JOBS: Final = (
    _figure("job", lambda it: it.id, str),
    _named("name", lambda it: str(it.name)),
    _state(_of_job),
    Column(key="placed", title="placed", value=lambda it: it.placed / it.tasks, text=_placed),
    _age("waits", _waiting_since),
    _named("why", lambda it: "" if it.park_reason is None else str(it.park_reason.value)),
    _named("tenant", lambda it: str(it.tenant), wide=True),
    _named("kind", lambda it: str(it.scheduler), wide=True),
    _figure("precedence", lambda it: it.precedence, str, wide=True),
    _figure("attempts", lambda it: it.attempts, count, wide=True),
    _age("age", lambda it: it.submitted_ms),
)


def _of_machine(line: MachineLine) -> tuple[str, str]:
    return state_name(line.state), STATE_COLOURS[line.state]


def _used(at: int, key: str) -> Column:
    def colour(part: float | None) -> str:
        return "yellow" if (part or 0.0) > FULL else ""

    return _figure(key, lambda it: it.used[at], share, colour=colour)


def _free(at: int, key: str) -> Column:
    def write(number: float | None) -> str:
        return UNKNOWN if number is None else f"{number:,.4g}"

    figure = _figure(f"{FREE}{key}", lambda it: it.free[at], write, wide=True)
    return Column(
        key=figure.key,
        title=FREE_TITLES[key],
        value=figure.value,
        text=figure.text,
        is_wide=True,
    )


MACHINES: Final = (
    Column(
        key="machine",
        title="machine",
        value=lambda it: it.id,
        text=lambda it, _: name_text(it.name),
        is_text=True,
    ),
    _state(_of_machine),
    *(_used(at, key) for at, (key, *_) in enumerate(RESOURCES)),
    *(_free(at, key) for at, (key, *_) in enumerate(RESOURCES)),
)

COLUMNS: Final[Mapping[Tab, Sequence[Column]]] = {
    Tab.SCHEDULERS: SCHEDULERS,
    Tab.JOBS: JOBS,
    Tab.MACHINES: MACHINES,
}


def shown(tab: Tab, *, is_wide: bool) -> list[Column]:
    """Return the columns of a tab that a terminal has room for."""
    return [it for it in COLUMNS[tab] if is_wide or not it.is_wide]
