"""One run of a sweep, wherever it is simulated.

Goal     Give a worker all that it needs in one small value: it need share no disk with us.
Promise  A job list or a trace is read once, by us, and unpacked once a worker. The figures of a run
         depend on what it was given alone.
Source   omega.sim.sweep, whose trials these are.
"""

import pickle
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from omega.cli.sim.garbage_collection import without_collection
from omega.cli.sim.plan import Given, SimPlan, kinds_of
from omega.workload.traces.detect import detect

KEPT_MAX: Final = 4
"""Job lists and traces that a worker keeps: as many as a sweep may compare at a time."""


@dataclass(frozen=True)
class Packed:
    """A job list or a trace, packed to be sent along with each run."""

    digest: str
    """Of files and options: two with the same one are the same."""
    packed: bytes = field(compare=False, repr=False)
    kinds: tuple[str, ...] = field(compare=False, default=())
    """Of schedulers that the jobs ask for."""

    @classmethod
    def read(cls, plan: SimPlan) -> "Packed":
        """Read what a plan names. Raises BadInput for what is malformed."""
        with without_collection():
            given = plan.read()
        hashed = sha256()
        for path in _files(plan.source):
            hashed.update(path.read_bytes())
        for option in sorted(plan.trace_option or []):
            hashed.update(option.encode())
        packed = zlib.compress(pickle.dumps(given))
        return cls(hashed.hexdigest(), packed, tuple(kinds_of(given)))


@dataclass(frozen=True)
class Work:
    """What is simulated."""

    plan: SimPlan
    given: Packed


def simulate(work: Work) -> dict[str, Any]:
    """Simulate, and return the figures by workload, and those of all."""
    result = work.plan.begin(_unpacked(work.given)).finish()
    return {
        **result.workloads,
        "utilisation": result.utilisation,
        "locked": result.locked,
        "tasks_placed": result.tasks_placed,
        "tasks_lost": result.tasks_lost,
        "start_tasks_lost": result.start_tasks_lost,
        "events": result.events,
        **({"audited": result.audited} if work.plan.audit else {}),
    }


@lru_cache(maxsize=KEPT_MAX)
def _unpacked(packed: Packed) -> Given:
    with without_collection():
        given: Given = pickle.loads(zlib.decompress(packed.packed))
    return given


def _files(source: Path) -> list[Path]:
    """Return the files that hold what is at this path, in an order that does not change."""
    return sorted(detect(source).find(source).values()) if source.is_dir() else [source]
