"""Machines that are closed or on notice, and everything about one of them.

Goal     Show why capacity is missing, and what will happen to the tasks of a machine.
Promise  The tasks of a machine are in the order in which they would be ended if it became too
         small: lowest precedence first, then those started last. A row is a task.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omega.cell.view import View
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, integers
from omega.model.machines import MachineRows, MachineState, Snapshot
from omega.model.resources import Kind, named
from omega.reports.processes import live_kinds
from omega.reports.wording import amounts, duration, things
from omega.store.protocols import ReaderStore
from omega.store.status import CellUse, JobStatus, Notice, ProcessReport


def state_name(state: int) -> str:
    """Return the name of a state as people and scripts read it."""
    return MachineState(state).name.lower()


def states_of(use: CellUse) -> dict[str, int]:
    """Return the number of machines by state, for the states that occur."""
    counted = sorted(use.machines_by_state.items())
    return {state_name(state): machines for state, machines in counted if machines}


def notice_line(notice: Notice) -> str:
    """Return a sentence on what is used above a machine's capacity, and on what will happen."""
    excess = amounts(named(notice.excess))
    if notice.ends_in_ms <= 0:
        return f"{excess} too much in use; the next scheduler that looks ends what is too much"
    left = duration(notice.ends_in_ms / 1_000)
    return f"{excess} too much in use; in {left}, tasks of the lowest precedence end first"


def notices_summary(notices: Sequence[Notice]) -> dict[str, int | None]:
    """Return the number of notices that run and that are over, and when the next one ends."""
    running = [notice.ends_in_ms for notice in notices if notice.ends_in_ms > 0]
    return {
        "running": len(running),
        "over": len(notices) - len(running),
        "next_ends_in_ms": min(running, default=None),
    }


def overdue(use: CellUse, notices: Sequence[Notice], reports: Sequence[ProcessReport]) -> list[str]:
    """Return sentences on overdue work of schedulers; none if a scheduler has reported lately."""
    if live_kinds(reports):
        return []
    nobody = "and no scheduler has been heard of lately that would end them"
    said = []
    if use.stranded:
        said.append(f"Tasks are still on {things(use.stranded, 'machine')} down or gone, {nobody}.")
    if over := notices_summary(notices)["over"]:
        said.append(f"Tasks are left that {things(over, 'notice')} told to end, {nobody}.")
    return said


def snapshot_of(view: View, machine: int) -> Snapshot | None:
    """Return what a view has of one machine; None if it does not know it."""
    at = view.where(np.array([machine], dtype=np.int64))
    if at[0] < 0:
        return None
    return Snapshot(
        rows=MachineRows(
            id=view.id[at],
            capacity=view.capacity[at],
            used=view.capacity[at] - view.free[at],
            sequence=view.sequence[at],
            revision=view.revision[at],
            state=view.state[at],
        ),
        names=(view.names[int(at[0])],),
        catalogue=view.catalogue,
        codes=view.codes[at].copy(),
        mark=view.mark,
        generation=view.generation,
    )


@dataclass(frozen=True, eq=False)
class MachineReport:
    """One machine with its tasks, jobs and notice, at one moment or nearly so."""

    name: str
    row: MachineRows
    attributes: Mapping[str, str]
    live: Allocations
    jobs: Mapping[int, JobStatus]
    """The jobs of the tasks that run there, by id."""
    notice: Notice | None

    @classmethod
    def read(cls, store: ReaderStore, snapshot: Snapshot, at: int) -> "MachineReport":
        """Read all about the machine in this row of a snapshot."""
        row = snapshot.rows.take(np.array([at]))
        live = store.allocations_on(row.id)
        jobs = {job: store.job(job) for job in sorted(set(live.job.tolist()))}
        notices = {notice.machine: notice for notice in store.notices()}
        codes = zip(snapshot.catalogue.names, snapshot.codes[at].tolist(), strict=True)
        values = {
            attribute: snapshot.catalogue.value(column, code)
            for column, (attribute, code) in enumerate(codes)
        }
        return cls(
            name=snapshot.names[at],
            row=row,
            attributes={each: value for each, value in values.items() if value is not None},
            live=live,
            jobs={job: status for job, status in jobs.items() if status is not None},
            notice=notices.get(int(row.id[0])),
        )

    @property
    def id(self) -> int:
        """The machine's number."""
        return int(self.row.id[0])

    @property
    def state(self) -> MachineState:
        """The machine's state, which decides whether it takes claims."""
        return MachineState(int(self.row.state[0]))

    def rows(self) -> list[dict[str, object]]:
        """Return one row per task, in the order in which the tasks would be ended."""
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
            for at, job in self.in_order()
        ]

    def summary(self) -> dict[str, object]:
        """Return the facts on the machine itself, as JSON types."""
        return {
            "machine": self.name,
            "id": self.id,
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

    def kinds(self) -> list[Kind]:
        """Return the kinds of resource that the machine has, or that are used on it."""
        there = (self.row.capacity[0] > 0) | (self.row.used[0] > 0)
        return [kind for kind in Kind if there[kind]]

    def _by_kind(self, row: Amounts) -> dict[str, int]:
        return {kind.column: int(row[0, kind]) for kind in self.kinds()}

    def in_order(self) -> list[tuple[int, JobStatus]]:
        """Return (position in `live`, job) pairs, in the order in which tasks would be ended."""
        live = self.live
        precedence = integers([self.jobs[job].precedence for job in live.job.tolist()])
        order = np.lexsort((-live.task, -live.job, -live.started_ms, precedence))
        return [(at, self.jobs[int(live.job[at])]) for at in order.tolist()]
