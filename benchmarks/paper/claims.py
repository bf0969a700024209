"""What the paper says of a figure, and what we measured: it holds, or it does not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table
from rich.text import Text

WAIT_AIM_S: Final = 30.0
"""What the paper aims at: the time within which an attempt at a job is begun."""
LEFT_MAX: Final = 0.02
"""Share of jobs not placed whole at the end; some have come just then."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper."""

    says: str
    measured: str
    """Ours, in a few words with their figures."""
    holds: bool

    def row(self) -> dict[str, Any]:
        """Return it for a document."""
        return {"claim": self.says, "measured": self.measured, "holds": self.holds}


def has(row: Row, **wanted: object) -> bool:
    """Say whether a row has these values."""
    return all(row[name] == value for name, value in wanted.items())


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows that have these values, in their order."""
    return [row for row in rows if has(row, **wanted)]


def keeps_up(row: Row, workload: str) -> bool:
    """Say whether its jobs are begun within the aim, and do not pile up."""
    told = row[workload]
    wait_s = told["wait_mean_s"]
    left = told["jobs_unfinished"] / max(1, told["jobs"])
    return wait_s is not None and wait_s <= WAIT_AIM_S and left <= LEFT_MAX


def first_not(rows: Sequence[Row], x: str, holds: Callable[[Row], bool]) -> float | None:
    """Return the least x at which something no longer holds; None if it holds to the end."""
    return next((row[x] for row in sorted(rows, key=lambda row: row[x]) if not holds(row)), None)


def told(value: float | None, most: float) -> str:
    """Write a least x; one that was not met lies beyond the last."""
    return f"{value:g}" if value is not None else f"over {most:g}"


def table(claims: Sequence[Mapping[str, Any]]) -> Table:
    """Return the claims for a screen."""
    shown = Table("the paper", "measured", "holds", box=None, header_style="bold", pad_edge=False)
    for claim in claims:
        verdict = Text("yes", "green") if claim["holds"] else Text("no", "red")
        shown.add_row(claim["claim"], claim["measured"], verdict)
    return shown
