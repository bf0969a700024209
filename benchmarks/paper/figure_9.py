"""Figure 9 of the Omega paper: many batch schedulers on one cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, first_not, has, keeps_up, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import Setting
from omega.plots.picture import Picture
from omega.reports.wording import things

SCHEDULERS: Final = (1, 2, 4, 8, 16, 32)
RISES: Final = 0.95
"""Share of the previous value from which on a value counts as no fall: single runs vary."""
FACTORS: Final = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Figure9(Figure):
    """Conflicts and busyness of 1 to 32 batch schedulers as jobs come faster. Two minutes."""

    title: ClassVar[str] = "Several batch schedulers"
    x: tuple[float, ...] = FACTORS
    hours: float = 0.5

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(batch_schedulers=number, factor=factor)
            for number in SCHEDULERS
            for factor in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        most = max(self.x)
        busiest = {
            number: where(rows, batch_schedulers=number, factor=most)[0]["batch"]
            for number in SCHEDULERS
        }
        conflicts = [told_["conflict_fraction"] or 0.0 for told_ in busiest.values()]
        spent = [number * one["busy"] for number, one in busiest.items()]
        ends = {
            number: first_not(
                where(rows, batch_schedulers=number), "factor", lambda row: keeps_up(row, "batch")
            )
            for number in SCHEDULERS
        }
        each = [one["busy"] for one in busiest.values()]
        return [
            Claim(
                "conflicts rise with the number of schedulers",
                f"with {most:g} times the jobs: "
                + ", ".join(f"{n}: {c:.3f}" for n, c in zip(SCHEDULERS, conflicts, strict=True)),
                conflicts[0] < conflicts[-1]
                and all(later >= RISES * one for one, later in pairwise(conflicts)),
            ),
            Claim(
                "more schedulers take more jobs, up to 32 at least",
                "each is busy: "
                + ", ".join(f"{n}: {b:.3f}" for n, b in zip(SCHEDULERS, each, strict=True))
                + f"; one keeps up until {told(ends[1], most)}, 32 until {told(ends[32], most)}",
                all(later < earlier for earlier, later in pairwise(each[1:]))
                and ends[1] is not None
                and (ends[32] is None or ends[32] > ends[1]),
            ),
            Claim(
                "what conflicts cost is less than what schedulers add",
                f"all 32 together spend {spent[-1] / max(spent[1], 1e-9):.2f} times what two do",
                spent[-1] < 2 * spent[1],
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the conflict fraction and the busyness of each scheduler."""
        return curves(
            rows,
            title,
            x="factor",
            measures=["conflict_fraction", "busy"],
            columns={"cell B": has},
            lines={
                things(number, "scheduler"): partial(has, batch_schedulers=number)
                for number in SCHEDULERS
            },
            workloads=("batch",),
            logarithmic=False,
        )


command = command_of(Figure9)
