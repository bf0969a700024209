"""A plot of a run: how full the cell is and how many jobs wait, over time.

Goal     Show whether a run is in balance, or its queues grow towards the horizon.
Promise  There is one sample per minute of virtual time, and sampling does not change the run. While
         no machine is up, the shares are unknown and the line has a gap.
Source   Omega (EuroSys 2013), figure 16, which shows utilisation over time.
"""

from math import isnan, nan
from typing import Final

from omega.plots.picture import COLOURS, Picture
from omega.sim.experiment import Run
from omega.sim.live_run import LiveRun

SAMPLE_S: Final = 60.0
S_PER_H: Final = 3_600.0


class Series:
    """Samples of a run over time."""

    def __init__(self) -> None:
        self._hours: list[float] = []
        self._used: list[float] = []
        self._locked: list[float] = []
        self._waiting: dict[str, list[int]] = {}

    def sample(self, run: Run | LiveRun, now_s: float) -> None:
        """Take a sample of a run at the first call, and at each whole minute of virtual time."""
        if self._hours and now_s % SAMPLE_S:
            return
        use = run.use
        self._hours.append(now_s / S_PER_H)
        self._used.append(use.used / use.there if use.there else nan)
        self._locked.append(use.locked / use.there if use.there else nan)
        for workload, jobs in run.waiting.items():
            self._waiting.setdefault(workload, []).append(jobs)

    def draw(self, note: str) -> Picture:
        """Draw the samples: utilisation above, jobs that wait below."""
        picture = Picture(self._finding(), rows=2, note=note)
        above, below = picture.panels[:, 0]
        above.plot(self._hours, self._used, label="CPU used by tasks", color=COLOURS[0])
        if any(share > 0 for share in self._locked):
            above.plot(self._hours, self._locked, label="CPU locked by offers", color=COLOURS[3])
        above.set_ylim(0, 1)
        above.set_ylabel("share of all CPU")
        for (workload, jobs), colour, style in zip(
            self._waiting.items(), COLOURS[1:5:3], ("-", "--"), strict=False
        ):
            below.plot(
                self._hours,
                jobs,
                label=f"{workload} jobs",
                color=colour,
                linestyle=style,
                drawstyle="steps-post",
            )
        below.set_ylim(bottom=0)
        below.set_ylabel("jobs in queues")
        below.set_xlabel("hours")
        return picture

    def _finding(self) -> str:
        waits = [
            f"{jobs[-1]:,} {workload} jobs wait at the end, at most {max(jobs):,}"
            for workload, jobs in self._waiting.items()
        ]
        known = [share for share in self._used if not isnan(share)]
        used = f"At most {max(known):.0%} of all CPU is used" if known else "No machine is ever up"
        return "; ".join([used, *waits])
