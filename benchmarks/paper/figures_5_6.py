"""Figures 5 and 6 of the Omega paper: waits and busyness, by decision time and architecture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import WAIT_TARGET_S, Claim, Row, first_not, has, keeps_up, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import CELLS, Setting
from omega.plots.picture import Picture
from omega.reports.wording import things

SINGLE: Final = "monolithic"
MULTI: Final = "multi-path"
OMEGA: Final = "shared-state"
ARCHITECTURES: Final = (SINGLE, MULTI, OMEGA)
ALIKE: Final = 0.2
"""Allowed difference of the two means; service jobs are few, so theirs is of a few dozen waits."""
FLAT: Final = 1.05
SATURATED: Final = 0.97
BELOW: Final = 0.9
LINEAR: Final = 0.1
"""Allowed relative difference from the busyness that decision times alone give."""


@dataclass(frozen=True, kw_only=True)
class Figures5And6(Figure):
    """Waits and busyness by decision time: one scheduler with one path or two, and Omega.

    Takes three minutes.
    """

    title: ClassVar[str] = "Waits and busyness by decision time"

    def settings(self) -> list[Setting]:
        """Return single path, multi path and Omega on A, B and C.

        With a single path, batch jobs have the decision time of service jobs.
        """
        return [
            Setting(cell=cell, architecture=architecture, t_job_service=t_job)
            for cell in CELLS
            for architecture in ARCHITECTURES
            for t_job in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        return [
            self._alike(rows),
            self._blocked(rows),
            self._missed(rows),
            self._flat(rows),
            self._linear(rows),
            self._lower(rows),
            self._apart(rows),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw waits and busyness over the decision time of service jobs, one column per cell."""
        return curves(
            rows,
            title,
            x="t_job_service",
            measures=["wait_mean_s", "busy"],
            columns={f"cell {cell}": partial(has, cell=cell) for cell in CELLS},
            lines={one: partial(has, architecture=one) for one in reversed(ARCHITECTURES)},
        )

    def _alike(self, rows: Sequence[Row]) -> Claim:
        """Both kinds of jobs wait in one queue, so they wait alike."""
        pairs = [
            (row["batch"]["wait_mean_s"], row["service"]["wait_mean_s"])
            for row in where(rows, architecture=SINGLE)
            if keeps_up(row, "batch") and row["batch"]["wait_mean_s"] > 1
        ]
        off = max((abs(b - s) / b for b, s in pairs), default=0.0)
        return Claim(
            "single path: batch and service jobs wait alike",
            f"at most {off:.0%} apart where the mean is 1 to 30 s: in {things(len(pairs), 'run')}",
            bool(pairs) and off <= ALIKE,
        )

    def _blocked(self, rows: Sequence[Row]) -> Claim:
        """A batch job waits behind a service job with a long decision time."""
        most = max(self.x)
        waits = {
            cell: [
                where(rows, cell=cell, architecture=MULTI, t_job_service=at)[0]["batch"]
                for at in (min(self.x), most)
            ]
            for cell in CELLS
        }
        grown = {c: (a["wait_mean_s"] or 0, b["wait_mean_s"] or 0) for c, (a, b) in waits.items()}
        return Claim(
            "multi path: batch jobs still wait behind slow service jobs",
            "batch, from least to most: "
            + ", ".join(f"{c} {a:.2g} to {b:.3g} s" for c, (a, b) in grown.items()),
            all(b > 10 * a and b > WAIT_TARGET_S for a, b in grown.values()),
        )

    def _missed(self, rows: Sequence[Row]) -> Claim:
        """The multi path keeps the target wait up to longer decisions than the single path."""
        ends = {
            (cell, one): first_not(
                where(rows, cell=cell, architecture=one),
                "t_job_service",
                lambda row: keeps_up(row, "batch"),
            )
            for cell in CELLS
            for one in ARCHITECTURES
        }
        most = max(self.x)
        beyond = float("inf")
        return Claim(
            "batch jobs keep within 30 s: multi path for longer than single, Omega throughout",
            "missed from, in s: "
            + "; ".join(
                f"{cell} " + " / ".join(told(ends[cell, one], most) for one in ARCHITECTURES)
                for cell in CELLS
            ),
            all(
                (ends[cell, SINGLE] or beyond) < (ends[cell, MULTI] or beyond)
                and ends[cell, OMEGA] is None
                for cell in CELLS
            ),
        )

    def _flat(self, rows: Sequence[Row]) -> Claim:
        """Schedulers with separate queues do not delay each other."""
        spread = {}
        for cell in CELLS:
            mine = where(rows, cell=cell, architecture=OMEGA)
            waits = [row["batch"]["wait_mean_s"] or 0.0 for row in mine]
            spread[cell] = max(waits) / max(min(waits), 1e-9) if max(waits) else 1.0
        return Claim(
            "Omega: batch jobs do not wait for service jobs",
            "largest by least mean wait: " + ", ".join(f"{c} {s:.3f}" for c, s in spread.items()),
            all(one <= FLAT for one in spread.values()),
        )

    def _linear(self, rows: Sequence[Row]) -> Claim:
        """One scheduler has no conflicts and decides on each job once: true by construction."""
        offs = []
        for row in where(rows, architecture=SINGLE):
            expected = sum(
                row[name]["jobs"] * row["t_job_service"]
                + row[name]["tasks"] * row["t_task_service"]
                for name in ("batch", "service")
            ) / (self.hours * 3_600)
            if expected < BELOW:  # near saturation some jobs are left at the end
                offs.append(abs(row["batch"]["busy"] / expected - 1))
        return Claim(
            "single path: busyness is linear in the decision time until it saturates",
            f"at most {max(offs, default=0.0):.1%} off what the jobs take, in"
            f" {things(len(offs), 'run')} below {BELOW}; as it must be, for nobody is met",
            bool(offs) and max(offs) <= LINEAR,
        )

    def _lower(self, rows: Sequence[Row]) -> Claim:
        """Only the few service jobs have long decisions with the multi path."""
        pairs = [
            (where(rows, cell=cell, architecture=one, t_job_service=t_job)[0]["batch"]["busy"])
            for cell in CELLS
            for t_job in self.x
            if t_job >= 1
            for one in (SINGLE, MULTI)
        ]
        ratios = [
            multi / single
            for single, multi in zip(pairs[::2], pairs[1::2], strict=True)
            if multi < SATURATED
        ]
        lower = [one < 1 for one in ratios]
        return Claim(
            "multi path: much lower busyness than single path for long service decisions",
            f"lower in {sum(lower)} of {len(lower)} runs with t_job of 1 s and more in which it is"
            f" not saturated, at most {max(ratios, default=1.0):.2f} times",
            bool(lower) and all(lower),
        )

    def _apart(self, rows: Sequence[Row]) -> Claim:
        """Long service decisions keep only the service scheduler busy."""
        spread, saturated = {}, 0
        for cell in CELLS:
            mine = where(rows, cell=cell, architecture=OMEGA)
            busy = [row["batch"]["busy"] for row in mine]
            spread[cell] = max(busy) / max(min(busy), 1e-9)
            saturated += any(row["service"]["busy"] > SATURATED for row in mine)
        return Claim(
            "Omega: the lines of batch and service are independent; only service saturates",
            "batch busyness, largest by least: "
            + ", ".join(f"{cell} {one:.3f}" for cell, one in spread.items())
            + f"; service saturates in {saturated} of {len(CELLS)} cells",
            all(one <= 1 + LINEAR for one in spread.values()) and saturated == len(CELLS),
        )


command = command_of(Figures5And6)
