"""`omega cell show MACHINE`: everything about one machine.

Goal     Answer "what runs there, and what would have to go first?" in one look.
Promise  The tasks in the order in which they would end if the machine became too small: lowest
         precedence first, then those started last. The document has a row a task.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job_screens import cut, moment, ranges
from omega.cli.machine_lines import STATE_COLOURS, notice_line, state_name
from omega.cli.machine_names import choose
from omega.cli.printable import short
from omega.cli.wording import amounts, share, things
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, integers
from omega.model.machines import MachineRows, MachineState
from omega.model.resources import GPU_SLICES, Kind, named
from omega.store.protocols import ReaderStore
from omega.store.status import JobStatus, Notice

JOBS_SHOWN: Final = 30
UNITS: Final = {
    Kind.CPU_MILLI: ("cpu", 1_000, " cores"),
    Kind.MEMORY_MIB: ("memory", 1_024, " GiB"),
    Kind.DISK_MIB: ("disk", 1_024, " GiB"),
}


@dataclass(frozen=True, eq=False)
class OneMachine:
    """A machine, and what is known of it at one moment or nearly so."""

    name: str
    row: MachineRows
    attributes: Mapping[str, str]
    live: Allocations
    jobs: Mapping[int, JobStatus]
    """The jobs of what runs there."""
    notice: Notice | None

    @classmethod
    def read(cls, store: ReaderStore, name: str) -> "OneMachine":
        """Read all about a machine. Raises BadInput if there is none of this name."""
        snapshot = store.snapshot()
        chosen = choose(snapshot, [name], None)
        (at,) = snapshot.rows.where(chosen.id).tolist()
        live = store.allocations_on(chosen.id)
        jobs = {job: store.job(job) for job in sorted(set(live.job.tolist()))}
        notices = {notice.machine: notice for notice in store.notices()}
        codes = zip(snapshot.catalogue.names, snapshot.codes[at].tolist(), strict=True)
        values = {
            attribute: snapshot.catalogue.value(column, code)
            for column, (attribute, code) in enumerate(codes)
        }
        return cls(
            name=name,
            row=chosen.rows,
            attributes={each: value for each, value in values.items() if value is not None},
            live=live,
            jobs={job: status for job, status in jobs.items() if status is not None},
            notice=notices.get(int(chosen.id[0])),
        )

    @property
    def state(self) -> MachineState:
        """Whether it takes claims."""
        return MachineState(int(self.row.state[0]))

    def rows(self) -> list[dict[str, object]]:
        """Return a row a task, those first that would end first."""
        return [
            {
                "job": job.id,
                "name": job.name,
                "task": int(self.live.task[at]),
                "precedence": job.precedence,
                "scheduler": job.scheduler,
                "tenant": job.tenant,
                "started_ms": int(self.live.started_ms[at]),
                "amounts": named(self.live.amounts[at]),
            }
            for at, job in self._in_order()
        ]

    def summary(self) -> dict[str, object]:
        """Return what there is to say of the machine itself."""
        return {
            "machine": self.name,
            "id": int(self.row.id[0]),
            "state": state_name(self.state),
            "capacity": self._by_kind(self.row.capacity),
            "used": self._by_kind(self.row.used),
            "free": self._by_kind(self.row.free),
            "sequence": int(self.row.sequence[0]),
            "revision": int(self.row.revision[0]),
            "attributes": dict(self.attributes),
            "notice": None
            if self.notice is None
            else {
                "excess": named(self.notice.excess),
                "ends_in_ms": self.notice.ends_in_ms,
            },
            "tasks": len(self.live),
        }

    def screen(self) -> RenderableType:
        """Return it all for a person."""
        facts = Table(box=None, pad_edge=False, show_header=False)
        facts.add_column(style="bold")
        facts.add_column(overflow="fold")
        facts.add_row("machine", Text(f"{self.row.id[0]}  {short(self.name)}"))
        facts.add_row("state", Text(state_name(self.state), STATE_COLOURS[self.state]))
        if self.attributes:
            pairs = self.attributes.items()
            listed = ", ".join(f"{short(name)}={short(value)}" for name, value in pairs)
            facts.add_row("attributes", Text(listed))
        facts.add_row("sequence", f"{self.row.sequence[0]:,}, revision {self.row.revision[0]:,}")
        if self.notice is not None:
            facts.add_row("on notice", Text(notice_line(self.notice), "yellow"))
        runs = [self._tasks()] if len(self.live) else [Text("Nothing runs on it.", "dim")]
        return Group(facts, Text(), self._amounts(), Text(), *runs)

    def _amounts(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("")
        for header in ("has", "used", "free", "share"):
            table.add_column(header, justify="right")
        capacity, used, free = self.row.capacity[0], self.row.used[0], self.row.free[0]
        for kind in self._kinds():
            label, unit, plural = UNITS.get(kind, (kind.column, GPU_SLICES, ""))
            figures = [f"{one[kind] / unit:,.5g}{plural}" for one in (capacity, used, free)]
            part = used[kind] / capacity[kind] if capacity[kind] else None
            table.add_row(Text(label, "bold"), *figures, share(part))
        return table

    def _kinds(self) -> list[Kind]:
        """Return the kinds of which it has any, or of which any is used."""
        there = (self.row.capacity[0] > 0) | (self.row.used[0] > 0)
        return [kind for kind in Kind if there[kind]]

    def _by_kind(self, row: Amounts) -> dict[str, int]:
        return {kind.column: int(row[0, kind]) for kind in self._kinds()}

    def _tasks(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("job", "precedence"):
            table.add_column(header, justify="right", no_wrap=True)
        table.add_column("name")
        for header in ("tasks", "each", "since"):
            table.add_column(header, overflow="fold")
        alike: dict[tuple[int, bytes], list[int]] = {}
        for at, job in self._in_order():
            alike.setdefault((job.id, self.live.amounts[at].tobytes()), []).append(at)
        for (number, _), those in list(alike.items())[:JOBS_SHOWN]:
            job = self.jobs[number]
            table.add_row(
                str(number),
                str(job.precedence),
                cut(job.name),
                ranges(sorted(self.live.task[those].tolist())),
                amounts(named(self.live.amounts[those[0]])),
                moment(int(self.live.started_ms[those].min())),
            )
        if (more := len(alike) - JOBS_SHOWN) > 0:
            table.caption = f"and tasks of {things(more, 'job')} more; --json has all"
        return table

    def _in_order(self) -> list[tuple[int, JobStatus]]:
        """Return where the allocations are, with their jobs, those first that would end first."""
        live = self.live
        precedence = integers([self.jobs[job].precedence for job in live.job.tolist()])
        order = np.lexsort((-live.task, -live.job, -live.started_ms, precedence))
        return [(at, self.jobs[int(live.job[at])]) for at in order.tolist()]
