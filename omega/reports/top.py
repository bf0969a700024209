"""What `omega top` shows: schedulers, jobs and machines, narrowed and in order.

Goal     Read each second what one screen shows, and no more.
Promise  Figures are those of `omega status`, `jobs` and `cell list`, from the same functions.
         Machines are read as deltas. Each list is bounded, and how many there are is told.
Source   omega.reports.processes; ReaderStore; docs/decisions/0056-usage-and-dashboards.md.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from omega.cell.view import View
from omega.errors import BadInput, did_you_mean, shortened
from omega.lifecycle.states import State
from omega.model.machines import MachineState
from omega.reports.cell import CellReport
from omega.reports.jobs import JobReport
from omega.reports.machine_lines import MachineLine, machine_lines
from omega.reports.machines import MachineReport, snapshot_of, state_name
from omega.reports.processes import ProcessState, SchedulerLine, lines_of
from omega.store.protocols import ReaderStore
from omega.store.status import JobStatus

ROWS_MAX: Final = 200
"""Rows of one list."""
NAMED: Final = ("state", "tenant", "kind")
"""What a filter may say by name."""

_Row = TypeVar("_Row")
Sortable = str | float | None


class Tab(Enum):
    """What is listed."""

    SCHEDULERS = "schedulers"
    JOBS = "jobs"
    MACHINES = "machines"


STATES: Final = {
    Tab.SCHEDULERS: [state.value for state in ProcessState],
    Tab.JOBS: [state.value for state in State],
    Tab.MACHINES: [state_name(state) for state in MachineState],
}


@dataclass(frozen=True)
class Filter:
    """Which rows are shown: those with all of these."""

    name: str = ""
    """A part of the name; a star stands for any text."""
    state: str | None = None
    tenant: str | None = None
    kind: str | None = None
    """Of scheduler."""

    @classmethod
    def parsed(cls, text: str, tab: Tab) -> "Filter":
        """Read `state=parked tenant=ann train`. Raises BadInput."""
        said: dict[str, str] = {}
        words = []
        for word in text.split():
            key, equals, value = word.partition("=")
            if not equals:
                words.append(word)
            elif key not in NAMED:
                known = ", ".join(f"{each}=" for each in NAMED)
                raise BadInput(f"{shortened(key)!r} is none of {known}")
            else:
                said[key] = value
        state = said.get("state")
        if state is not None and state not in STATES[tab]:
            known_states = STATES[tab]
            raise BadInput(
                f"{shortened(state)!r} is no state of {tab.value}"
                f"{did_you_mean(state, known_states)} (there are: {', '.join(known_states)})"
            )
        return cls("*".join(words), **said)

    @property
    def words(self) -> list[str]:
        """The parts of the name, in small letters."""
        return [word for word in self.name.casefold().split("*") if word]

    def is_in(self, name: str) -> bool:
        """Return whether a name has all the parts."""
        folded = name.casefold()
        return all(word in folded for word in self.words)


NO_FILTER: Final = Filter()


@dataclass(frozen=True)
class Wanted:
    """What is to be read."""

    tab: Tab = Tab.SCHEDULERS
    filter: Filter = NO_FILTER
    order: str = "machine"
    """For machines, of which only the first are returned: one of ORDERS of machine_lines.py."""
    descending: bool = False
    job: int | None = None
    """A job to be shown in full ..."""
    machine: int | None = None
    """... or a machine."""


@dataclass(frozen=True)
class TopReport:
    """What was read for a screen."""

    wanted: Wanted
    cell: CellReport
    now_ms: int
    """By the store's clock."""
    schedulers: Sequence[SchedulerLine] = ()
    jobs: Sequence[JobStatus] = ()
    machines: Sequence[MachineLine] = ()
    found: int = 0
    """How many there are; of jobs, how many of the newest."""
    job: JobReport | None = None
    machine: MachineReport | None = None

    @property
    def is_of_table(self) -> bool:
        """Whether it has the rows of a table, and not one job or machine."""
        return self.wanted.job is None and self.wanted.machine is None


@dataclass
class TopReader:
    """Reads one report after another from a store; not for several threads at a time."""

    store: ReaderStore
    startable: Collection[str] = ()
    """The kinds of scheduler that could be started here."""
    _view: View | None = field(default=None, init=False)

    def read(self, wanted: Wanted) -> TopReport:
        """Read what is wanted, as it is now."""
        cell, now_ms = CellReport.read(self.store), self.store.now_ms()
        if wanted.job is not None:
            job = JobReport.read(self.store, wanted.job, startable=self.startable)
            return TopReport(wanted, cell, now_ms, job=job)
        if wanted.machine is not None:
            return TopReport(wanted, cell, now_ms, machine=self._machine(wanted.machine))
        match wanted.tab:
            case Tab.SCHEDULERS:
                lines = [it for it in lines_of(cell.reports) if _is_shown(it, wanted.filter)]
                return TopReport(wanted, cell, now_ms, schedulers=lines, found=len(lines))
            case Tab.JOBS:
                jobs = self._jobs(wanted.filter)
                return TopReport(wanted, cell, now_ms, jobs=jobs, found=len(jobs))
            case Tab.MACHINES:
                asked = wanted.filter
                machines, found = machine_lines(
                    self._caught_up(),
                    state=None if asked.state is None else MachineState[asked.state.upper()],
                    is_named=asked.is_in if asked.words else None,
                    order=wanted.order,
                    descending=wanted.descending,
                    lines_max=ROWS_MAX,
                )
                return TopReport(wanted, cell, now_ms, machines=machines, found=found)

    def _jobs(self, asked: Filter) -> list[JobStatus]:
        return self.store.jobs(
            state=None if asked.state is None else State(asked.state),
            scheduler=asked.kind,
            tenant=asked.tenant,
            name=f"*{asked.name}*" if asked.name else None,
            jobs_max=ROWS_MAX,
        )

    def _machine(self, machine: int) -> MachineReport | None:
        snapshot = snapshot_of(self._caught_up(), machine)
        return None if snapshot is None else MachineReport.read(self.store, snapshot, 0)

    def _caught_up(self) -> View:
        """Return the view of all machines, brought up to date."""
        view = self._view
        if view is not None:
            changes = self.store.changes_since(view.mark)
            if changes.generation == view.generation:
                view.catch_up(changes)
                return view
        self._view = View(self.store.snapshot())
        return self._view


def _is_shown(line: SchedulerLine, asked: Filter) -> bool:
    kind = line.name.partition(" ")[0]
    return (
        asked.is_in(line.name)
        and asked.state in (None, line.state.value)
        and asked.kind in (None, kind)
    )


def in_order(
    rows: Sequence[_Row], value: Callable[[_Row], Sortable], *, descending: bool
) -> list[_Row]:
    """Return rows sorted by a value; those without one come last, and equal ones as they were."""
    known = [row for row in rows if value(row) is not None]
    rest = [row for row in rows if value(row) is None]
    return sorted(known, key=value, reverse=descending) + rest  # type: ignore[arg-type]
