"""The claims of the paper on a figure, with what was measured and whether they hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table
from rich.text import Text

WAIT_TARGET_S: Final = 30.0
"""The paper's target: the time within which the first attempt at a job begins."""
UNSATURATED: Final = 0.9
"""Share of time thinking below which a scheduler keeps up: busyness is compared only there."""
LEFT_MAX: Final = 0.02
"""Share of jobs that may be unfinished at the end, because they have just arrived."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether it holds here."""

    says: str
    measured: str
    """What was measured here, in a few words with figures."""
    holds: bool

    def row(self, alone: Sequence["Claim"] = ()) -> dict[str, Any]:
        """Return the claim for a document; `alone` has it judged by each seed alone, if it was."""
        row = {"claim": self.says, "measured": self.measured, "holds": self.holds}
        if alone:
            row |= {"seeds": len(alone), "seeds_held": sum(claim.holds for claim in alone)}
        return row


def has(row: Row, **wanted: object) -> bool:
    """Return whether a row has these values."""
    return all(row[name] == value for name, value in wanted.items())


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows that have these values, in their order."""
    return [row for row in rows if has(row, **wanted)]


def keeps_up(row: Row, workload: str) -> bool:
    """Return whether a workload's mean wait is within the target, and few jobs are unfinished."""
    told = row[workload]
    wait_s = told["wait_mean_s"]
    left = told["jobs_unfinished"] / max(1, told["jobs"])
    return wait_s is not None and wait_s <= WAIT_TARGET_S and left <= LEFT_MAX


def spread(row: Row, workload: str, measure: str) -> str:
    """Write the mean of a measure over the seeds, and its standard deviation if there is one."""
    mean = row[workload][measure]
    if mean is None:
        return "none"
    deviation = row.get("deviation", {}).get(workload, {}).get(measure)
    return f"{mean:.2g}" if deviation is None else f"{mean:.2g} (sd {deviation:.1g})"


def first_not(rows: Sequence[Row], x: str, holds: Callable[[Row], bool]) -> float | None:
    """Return the least x at which `holds` is false; None if it is true throughout."""
    return next((row[x] for row in sorted(rows, key=lambda row: row[x]) if not holds(row)), None)


def told(value: float | None, most: float) -> str:
    """Write a least x as `first_not` returns it; None is over the largest x."""
    return f"{value:g}" if value is not None else f"over {most:g}"


def table(claims: Sequence[Mapping[str, Any]]) -> Table:
    """Return the claims as a table for a screen."""
    shown = Table(
        "the paper", "measured", "holds", "seeds", box=None, header_style="bold", pad_edge=False
    )
    for claim in claims:
        verdict = Text("yes", "green") if claim["holds"] else Text("no", "red")
        alone = f"{claim['seeds_held']} of {claim['seeds']}" if "seeds" in claim else ""
        shown.add_row(claim["claim"], claim["measured"], verdict, alone)
    return shown
