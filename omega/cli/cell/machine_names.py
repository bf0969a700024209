"""The machines that a command acts on: given by name, or by an attribute that they share.

Goal     Let an operator name one machine, as in `node-7`, or select a whole rack.
Promise  An unknown name or attribute is BadInput before anything changes. A selection by attribute
         leaves out machines that are gone.
Source   omega.model.machines.Catalogue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import typer

from omega.errors import BadInput, did_you_mean
from omega.model.arrays import Ids, Index
from omega.model.machines import MachineRows, MachineState, Snapshot
from omega.reports.printable import short
from omega.reports.wording import things
from omega.terminal.options import read_pairs

HINTS_MAX: Final = 20_000
"""Names that are compared with a wrong one to suggest the nearest: 50,000 of them take a second."""
NAMES_SHOWN: Final = 8

MachineNames = Annotated[
    list[str] | None, typer.Argument(metavar="MACHINE...", help="Their names.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE",
        help="Instead of names: all with this attribute. Said again: with all of these.",
    ),
]


@dataclass(frozen=True, eq=False)
class SelectedMachines:
    """The machines that a command acts on, ascending by id."""

    rows: MachineRows
    names: tuple[str, ...]

    @property
    def id(self) -> Ids:
        """The machines' ids."""
        return self.rows.id

    def __len__(self) -> int:
        return len(self.names)

    def listed(self) -> str:
        """Return their names as text, at most NAMES_SHOWN of them."""
        shown = ", ".join(map(short, self.names[:NAMES_SHOWN]))
        more = len(self.names) - NAMES_SHOWN
        return f"{shown} and {more:,} more" if more > 0 else shown

    def counted(self) -> str:
        """Return their number and names as text: 2 machines (a, b)."""
        return f"{things(len(self), 'machine')} ({self.listed()})"

    def those(self, at: Index) -> "SelectedMachines":
        """Return the machines at these ascending positions."""
        return SelectedMachines(self.rows.take(at), tuple(self.names[one] for one in at.tolist()))


def choose(
    snapshot: Snapshot, names: Sequence[str] | None, where: Sequence[str] | None
) -> SelectedMachines:
    """Return the machines of these names, or those with these attributes.

    Raises BadInput unless exactly one of the two is given, for an unknown name or attribute,
    and if no machine matches.
    """
    if bool(names) == bool(where):
        raise BadInput("name the machines, or say --where attribute=value", field="MACHINE")
    if names:
        return _at(snapshot, _named(snapshot, names))
    return _at(snapshot, _having(snapshot, where or ()))


def select_present(
    snapshot: Snapshot, names: Sequence[str] | None, where: Sequence[str] | None
) -> SelectedMachines:
    """Return the machines as `choose` does; raise BadInput also if one of them is gone."""
    chosen = choose(snapshot, names, where)
    gone = np.flatnonzero(chosen.rows.state == MachineState.GONE)
    if len(gone):
        listed = chosen.those(gone).listed()
        raise BadInput(f"left the cell for good: {listed}", field="MACHINE")
    return chosen


def _at(snapshot: Snapshot, at: Index) -> SelectedMachines:
    return SelectedMachines(snapshot.rows, snapshot.names).those(at)


def _named(snapshot: Snapshot, names: Sequence[str]) -> Index:
    position = {name: at for at, name in enumerate(snapshot.names)}
    for name in names:
        if name not in position:
            hint = did_you_mean(name, snapshot.names[:HINTS_MAX])
            raise BadInput(f"there is no machine {name!r}{hint}", field="MACHINE")
    return np.array(sorted({position[name] for name in names}), dtype=np.intp)


def _having(snapshot: Snapshot, where: Sequence[str]) -> Index:
    mask = snapshot.rows.state != MachineState.GONE
    for name, value in read_pairs(where, option="--where"):
        column = snapshot.catalogue.column(name)
        if column is None:
            hint = did_you_mean(name, snapshot.catalogue.names)
            raise BadInput(f"no machine has an attribute {name!r}{hint}", field="--where")
        mask = mask & np.isin(snapshot.codes[:, column], snapshot.catalogue.codes(column, [value]))
    if not mask.any():
        raise BadInput(f"no machine of the cell has {' and '.join(where)}", field="--where")
    return np.flatnonzero(mask)
