"""`omega cell add` and `resize`: machines that join, and machines that grow or shrink.

Goal     Let an operator add and resize single machines, without a list or a trace.
Promise  All options are read before anything is changed. A capacity below what is used applies to
         new claims at once; tasks are ended only when the notice is over. Repeating a resize
         restarts the notice.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import numpy as np
import typer

from omega.cli.cell.machine_names import (
    NAMES_SHOWN,
    MachineNames,
    SelectedMachines,
    Where,
    select_present,
)
from omega.cli.cell_access import DemoOption, cell_store
from omega.errors import BadInput
from omega.model.arrays import Amounts
from omega.model.machines import Machines
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES, KINDS, Kind, named
from omega.reports.machines import notice_line
from omega.reports.printable import short
from omega.reports.wording import amounts, things
from omega.store.protocols import OwnerStore
from omega.store.status import Notice
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, read_pairs
from omega.terminal.progress import progress_bar
from omega.workload.machines_file import problem_with_name
from omega.workload.quantities import cpu_milli, disk_mib, duration_ms, memory_mib, shown

NOTICE_MS_MAX: Final = 366 * 24 * 3_600_000
"""A year. For a longer notice, resize the machine later."""

Cpu = Annotated[str | None, typer.Option(metavar="CORES", help="As in 8, 0.5 or 500m.")]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="As in 512MiB or 64GiB.")]
Disk = Annotated[str | None, typer.Option(metavar="SIZE", help="As in 100GiB or 2TiB.")]
Gpus = Annotated[
    int | None,
    typer.Option(min=0, max=DEVICES_MAX, metavar="N", help="Whole GPUs, from the first."),
]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Size:
    """The amounts that the options give for a machine; None where an option is left out."""

    cpu_milli: int | None
    memory_mib: int | None
    disk_mib: int | None
    gpus: int | None

    @classmethod
    def read(
        cls, cpu: str | None, memory: str | None, disk: str | None, gpus: int | None
    ) -> "Size":
        """Read the values of the options. Raises BadInput."""
        return cls(
            _read(cpu_milli, cpu, "--cpu"),
            _read(memory_mib, memory, "--memory"),
            _read(disk_mib, disk, "--disk"),
            gpus,
        )

    def of(self, capacity: Amounts) -> Amounts:
        """Return a copy of the capacity (kinds,) with the given amounts in it."""
        row = capacity.copy()
        for kind in (Kind.CPU_MILLI, Kind.MEMORY_MIB, Kind.DISK_MIB):
            amount: int | None = getattr(self, kind.column)
            row[kind] = row[kind] if amount is None else amount
        if self.gpus is not None:
            row[DEVICES] = np.where(np.arange(DEVICES_MAX) < self.gpus, GPU_SLICES, 0)
        return row


def add(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[list[str], typer.Argument(metavar="MACHINE...", help="Their names.")],
    cpu: Annotated[str, typer.Option(metavar="CORES", help="As in 8, 0.5 or 500m.")],
    memory: Annotated[str, typer.Option(metavar="SIZE", help="As in 512MiB or 64GiB.")],
    disk: Disk = None,
    gpus: Gpus = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="NAME=VALUE",
            help="What constraints can name, as in zone=z1; can be said again.",
        ),
    ] = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Add machines of one size; many of several sizes come from a list: omega cell load.

    For example [bold]omega cell add m1 m2 --cpu 8 --memory 32GiB --attribute zone=z1[/]
    """
    output = Output(json_to)
    capacity = Size.read(cpu, memory, disk, gpus).of(np.zeros(KINDS, dtype=np.int64))
    pairs = read_attributes(attributes or [])
    for name in machines:
        refuse_bad_name(name, field="MACHINE")
    added = Machines(
        tuple(machines),
        np.tile(capacity, (len(machines), 1)),
        {name: [value] * len(machines) for name, value in pairs.items()},
    )
    with cell_store(data_dir, demo=demo) as store:
        ids = store.add_machines(added).tolist()
    output.document(
        parameters={"machines": machines, "attributes": pairs, "demo": demo},
        rows=[
            {"machine": name, "id": number, "capacity": named(capacity)}
            for name, number in zip(machines, ids, strict=True)
        ],
        summary={"machines": len(ids)},
    )
    each = " each" if len(ids) > 1 else ""
    output.console.print(
        f"{things(len(ids), 'machine')} added, with {amounts(named(capacity))}{each}.",
        highlight=False,
    )


def resize(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: MachineNames = None,
    where: Where = None,
    cpu: Cpu = None,
    memory: Memory = None,
    disk: Disk = None,
    gpus: Gpus = None,
    notice: Annotated[
        str, typer.Option(metavar="TIME", help="How long more may still be used: 30s, 5m, 2h.")
    ] = "5m",
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Change what machines have; what is not said stays as it is.

    Tasks that no longer fit get notice. When it is over, those of lowest precedence end first until
    the rest fits, and wait to be placed elsewhere.

    For example [bold]omega cell resize m1 --cpu 4 --notice 10m[/]
    """
    output = Output(json_to)
    size = Size.read(cpu, memory, disk, gpus)
    if size == Size(None, None, None, None):
        raise BadInput("say at least one of --cpu, --memory, --disk and --gpus")
    notice_ms = _read_notice(notice)
    with cell_store(data_dir, demo=demo) as store:
        chosen = select_present(store.snapshot(), machines, where)
        capacity = [size.of(before) for before in chosen.rows.capacity]
        _resize(store, output, chosen, capacity, notice_ms)
        ended = 0 if notice_ms else store.enforce_notices()
        notices = {one.machine: one for one in store.notices()}
    pending = {
        n: notices[i] for n, i in zip(chosen.names, chosen.id.tolist(), strict=True) if i in notices
    }
    output.document(
        parameters={"machines": machines, "where": where, "notice_ms": notice_ms, "demo": demo},
        rows=[
            {
                "machine": name,
                "id": number,
                "before": named(before),
                "capacity": named(after),
                "excess": named(notices[number].excess) if number in notices else {},
            }
            for name, number, before, after in zip(
                chosen.names, chosen.id.tolist(), chosen.rows.capacity, capacity, strict=True
            )
        ],
        summary={"machines": len(chosen), "on_notice": len(pending), "tasks_lost": ended},
    )
    _tell(output, chosen, pending, ended)


def read_attributes(said: Sequence[str]) -> dict[str, str]:
    """Read the `NAME=VALUE` pairs of `--attribute`. Raises BadInput."""
    pairs = dict(read_pairs(said, option="--attribute"))
    for pair in pairs.items():
        for text in pair:
            refuse_bad_name(text, field="--attribute")
    return pairs


def refuse_bad_name(text: str, *, field: str) -> None:
    """Raise BadInput for what cannot name a machine or an attribute."""
    if problem := problem_with_name(text) if text.strip() else "is empty":
        raise BadInput(f"{shown(text)} {problem}", field=field)


def _resize(
    store: OwnerStore,
    output: Output,
    chosen: SelectedMachines,
    capacity: Sequence[Amounts],
    notice_ms: int,
) -> None:
    """Resize one machine after the other: each is a transaction of its own."""
    with progress_bar(output.console) as progress:
        bar = progress.add_task("Resizing", total=len(chosen))
        for machine, row in zip(chosen.id.tolist(), capacity, strict=True):
            store.resize(machine, row, notice_ms=notice_ms)
            progress.advance(bar)


def _tell(output: Output, chosen: SelectedMachines, pending: dict[str, Notice], ended: int) -> None:
    lines = [f"{things(len(chosen), 'machine')} resized: {chosen.listed()}."]
    lines += [f"{short(name)}: {notice_line(notice)}." for name, notice in pending.items()][
        :NAMES_SHOWN
    ]
    if (more := len(pending) - NAMES_SHOWN) > 0:
        lines.append(f"{things(more, 'more machine')} on notice; all of them: omega cell show.")
    if ended:
        lines.append(f"{things(ended, 'task')} lost, to be placed again.")
    for line in lines:
        output.console.print(line, highlight=False, soft_wrap=True)


def _read(reader: Callable[[object], _T], text: str | None, option: str) -> _T | None:
    """Read an amount as a job's spec would; a bare 0 needs no unit."""
    if text is None:
        return None
    try:
        return reader(0 if text.strip() == "0" else text)
    except ValueError as error:
        raise BadInput(str(error), field=option) from None


def _read_notice(text: str) -> int:
    notice_ms = _read(duration_ms, text, "--notice")
    assert notice_ms is not None, "only what is not there is no duration"
    if notice_ms > NOTICE_MS_MAX:
        raise BadInput(f"{shown(text)} is more than a year", field="--notice")
    return notice_ms
