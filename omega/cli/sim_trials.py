"""One run of a sweep, wherever it is simulated.

Goal     Give a worker all that it needs in one small value: it need share no disk with us.
Promise  A job list is read once, by us, and unpacked once a worker. The figures of a run depend on
         what it was given alone.
Source   omega.sim.sweep, whose trials these are.
"""

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from omega.cli.sim_plan import SimPlan
from omega.workload.arrivals import Arrival
from omega.workload.traces.omega_sim import read_job_list

LISTS_KEPT: Final = 4
"""Job lists that a worker keeps, for as many as a sweep may compare at a time."""


@dataclass(frozen=True)
class JobList:
    """A job list, packed to be sent along with each run."""

    digest: str
    """Of the file: two lists with the same one are the same."""
    packed: bytes = field(compare=False, repr=False)

    @classmethod
    def read(cls, path: Path) -> "JobList":
        """Read it. Raises BadInput for a malformed file."""
        arrivals = read_job_list(path)
        return cls(sha256(path.read_bytes()).hexdigest(), zlib.compress(pickle.dumps(arrivals)))


@dataclass(frozen=True)
class Work:
    """What is simulated."""

    plan: SimPlan
    jobs: JobList


def simulate(work: Work) -> dict[str, Any]:
    """Simulate, and return the figures by workload, and those of all."""
    result = work.plan.experiment(_unpacked(work.jobs)).run()
    return {
        **result.workloads,
        "utilisation": result.utilisation,
        "locked": result.locked,
        "tasks_placed": result.tasks_placed,
        "events": result.events,
        **({"audited": result.audited} if work.plan.audit else {}),
    }


@lru_cache(maxsize=LISTS_KEPT)
def _unpacked(jobs: JobList) -> Sequence[Arrival]:
    arrivals: Sequence[Arrival] = pickle.loads(zlib.decompress(jobs.packed))
    return arrivals
