"""Elastic jobs for figures 15 and 16: a generator whose share of gaining jobs is an input.

The paper says how many workers its users choose, and that half to two thirds of MapReduce jobs gain
from more. How many activities the jobs have it does not say. Here the share of jobs that gain is an
input, and so is the law of activities for each worker: from 1 to `RATIO_MAX`, log-uniform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec, TaskGroup
from omega.workload.arrivals import Arrival

ELASTIC: Final = "elastic"
CHOSEN: Final[Mapping[int, float]] = {5: 0.45, 11: 0.40, 200: 0.13, 1_000: 0.02}
"""The workers that users of the paper mostly choose; their weights are ours."""
RATIO_MAX: Final = 8.0
"""The most activities for each worker wanted, of a job that gains."""
REDUCES: Final = 0.05
"""Reduces for each map."""
PROGRAMS: Final = 20
"""Names of jobs: each program is run again and again, with activities of one length."""
MAP_S: Final = (20.0, 60.0)
"""The shortest and the longest mean of a program's maps; a reduce takes half as long."""


@dataclass(frozen=True, kw_only=True)
class ElasticJobs:
    """A stream of elastic jobs."""

    gap_mean_s: float
    gains: float
    """The share of jobs with more activities than workers wanted."""

    def durations_ms(self, rng: np.random.Generator) -> list[dict[str, int]]:
        """Return, by program, how long an activity of each phase takes."""
        maps = np.rint(rng.uniform(*MAP_S, PROGRAMS) * 1_000).astype(np.int64).tolist()
        return [{"map": its, "reduce": max(1, its // 2)} for its in maps]

    def arrivals(self, horizon_s: float, rng: np.random.Generator) -> list[Arrival]:
        """Draw the jobs that are submitted up to the horizon, the first one among the first."""
        durations = self.durations_ms(rng)
        drawn: list[Arrival] = []
        submit_s = float(rng.uniform(0, min(self.gap_mean_s, horizon_s)))
        while submit_s <= horizon_s:
            drawn.append(Arrival(submit_s, self._spec(durations, rng)))
            submit_s += float(rng.exponential(self.gap_mean_s))
        return drawn

    def _spec(self, durations: Sequence[Mapping[str, int]], rng: np.random.Generator) -> JobSpec:
        program = int(rng.integers(PROGRAMS))
        wanted = int(rng.choice(list(CHOSEN), p=list(CHOSEN.values())))
        ratio = RATIO_MAX ** rng.random() if rng.random() < self.gains else rng.uniform(0.2, 1.0)
        maps = max(1, int(np.ceil(wanted * ratio)))
        reduces = max(1, round(REDUCES * maps))
        its = durations[program]
        phases = (
            Phase("map", maps, its["map"]),
            Phase("reduce", reduces, its["reduce"], after="map"),
        )
        return JobSpec(
            name=f"program {program}",
            scheduler=ELASTIC,
            groups=(TaskGroup(tasks=wanted, cpu_milli=1_000, memory_mib=2_048),),
            workers=Workers(max(wanted, maps), phases),
        )


def memo_of(durations: Sequence[Mapping[str, int]]) -> Mapping[str, object]:
    """Return the memo of a scheduler that has seen each program once before."""
    history = [
        [f"program {program}", {phase: [1, lasts] for phase, lasts in its.items()}]
        for program, its in enumerate(durations)
    ]
    return {"jobs": [], "plan": {"history": history, "seen": []}}
