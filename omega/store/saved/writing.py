"""Writes a saved cell into a file: JSON lines, gzipped.

Goal     A file of a few bytes a task that standard tools can read: `zcat FILE | jq`.
Promise  The same cell gives the same bytes. The file is there whole or not at all, and only its
         owner may read it, because programs of jobs may have secrets in their environments. An
         exception, such as that of an interrupt, leaves nothing behind.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.store.saved.lines.
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pydantic import ValidationError

from omega import __version__
from omega.errors import BadInput
from omega.model.arrays import Amounts
from omega.model.resources import Kind
from omega.model.wire import spec_to_wire
from omega.store.saved.cell import PastTasks, RunningTasks, SavedCell, SavedJob, SavedMachines
from omega.store.saved.lines import (
    ROWS_A_LINE,
    CellLine,
    EndLine,
    JobLine,
    Line,
    MachinesLine,
    PastLine,
    ProcessLine,
    QuotaLine,
    RunningLine,
    SchedulerLine,
    TenantLine,
)
from omega.store.saved.reading import LINE_BYTES_MAX, read_cell

ONLY_OURS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
SHOWN: Final = 40
"""How much of the file's name a part of it has, whose own name may not get too long."""


def write_cell(cell: SavedCell, path: Path) -> int:
    """Write a cell into a file, and replace one that is there; return the bytes written.

    The file is read again before it has its name: what `read_cell` would refuse is no copy of a
    cell. Raises BadInput if it cannot be written, or not be read.
    """
    if path.exists() and not path.is_file():
        raise BadInput("it is there, and no file", file=str(path))
    # Of its own name: another snapshot may be written there meanwhile. The name is known before the
    # file is made, so that an interrupt at any moment removes it.
    beside = path.absolute().with_name(f".{path.name[:SHOWN]}.{uuid4().hex}")
    try:
        try:
            with (
                os.fdopen(os.open(beside, ONLY_OURS, 0o600), "wb") as raw,
                gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
            ):
                for line in lines_of(cell):
                    packed.write(line)
            read_cell(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        return path.stat().st_size
    except OSError as error:
        raise BadInput(f"it cannot be written: {error.strerror}", file=str(path)) from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadInput("the cell has a value that no file may have", field=where) from error


def lines_of(cell: SavedCell) -> Iterator[bytes]:
    """Yield the lines of a cell's file."""
    written = 0
    for line in _lines(cell):
        yield line.text()
        written += 1
    yield EndLine(lines=written).text()


def _lines(cell: SavedCell) -> Iterator[Line]:
    yield CellLine(
        omega=__version__,
        taken_ms=cell.taken_ms,
        begin_ms=cell.begin_ms,
        precedence_gap=cell.precedence_gap,
    )
    for part in _parts(cell.machines):
        yield from _machine_lines(cell.machines, part)
    for quota in cell.quotas:
        limits = {budget.column: limit for budget, limit in sorted(quota.limits.items())}
        yield QuotaLine(scope=quota.scope.value, name=quota.name, limits=limits)
    for tenant in cell.tenants:
        yield TenantLine(**vars(tenant))
    for job in cell.jobs:
        yield _job(job)
    for part in _parts(cell.running):
        yield _running(cell.running, part)
    for part in _parts(cell.past):
        yield _past(cell.past, part)
    for one in cell.schedulers:
        yield SchedulerLine(**{**vars(one), "rule": one.rule.value, "parts": list(one.parts)})
    for process in cell.processes:
        yield ProcessLine(**vars(process))


def _parts(rows: SavedMachines | RunningTasks | PastTasks) -> Iterator[slice]:
    for first in range(0, len(rows), ROWS_A_LINE):
        yield slice(first, first + ROWS_A_LINE)


def _machine_lines(of: SavedMachines, part: slice) -> Iterator[MachinesLine]:
    """Yield lines that are not too long to be read: attributes may be many and long."""
    line, half = _machines(of, part), (part.start + part.stop) // 2
    if len(line.id) > 1 and len(line.text()) > LINE_BYTES_MAX:
        yield from _machine_lines(of, slice(part.start, half))
        yield from _machine_lines(of, slice(half, part.stop))
    else:
        yield line


def _machines(of: SavedMachines, part: slice) -> MachinesLine:
    return MachinesLine(
        id=of.id[part].tolist(),
        name=list(of.machines.names[part]),
        state=of.state[part].tolist(),
        sequence=of.sequence[part].tolist(),
        revision=of.revision[part].tolist(),
        address=list(of.address[part]),
        notice_ends_ms=list(of.notice_ends_ms[part]),
        capacity=_by_kind(of.machines.capacity[part]),
        notice=_by_kind(of.notice[part]),
        attributes={
            name: list(values[part]) for name, values in sorted(of.machines.attributes.items())
        },
    )


def _job(job: SavedJob) -> JobLine:
    told: dict[str, Any] = {
        **vars(job),
        "spec": spec_to_wire(job.spec),
        "state": job.state.value,
        "unplaced": list(job.unplaced),
        "park_reason": None if job.park_reason is None else job.park_reason.value,
        "phases": list(job.phases),
    }
    return JobLine(**told)


def _running(of: RunningTasks, part: slice) -> RunningLine:
    return RunningLine(
        job=of.job[part].tolist(),
        task=of.task[part].tolist(),
        machine=of.machine[part].tolist(),
        started_ms=of.started_ms[part].tolist(),
        amounts=_by_kind(of.amounts[part]),
    )


def _past(of: PastTasks, part: slice) -> PastLine:
    return PastLine(
        job=of.job[part].tolist(),
        task=of.task[part].tolist(),
        machine=of.machine[part].tolist(),
        started_ms=of.started_ms[part].tolist(),
        ended_ms=of.ended_ms[part].tolist(),
        cause=list(of.cause[part]),
    )


def _by_kind(amounts: Amounts) -> dict[str, list[int]]:
    """Return the columns that are not zero everywhere, by the kind's name."""
    return {kind.column: amounts[:, kind].tolist() for kind in Kind if amounts[:, kind].any()}
