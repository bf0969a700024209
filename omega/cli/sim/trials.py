"""One run of a sweep, as a worker simulates it.

Goal     Send a worker all that it needs in one small value, so that it needs no shared disk.
Promise  A job list or a trace is read once, by the sender, and unpacked once per worker. The
         figures of a run depend only on its `Work`.
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
"""Job lists and traces that a worker keeps unpacked, for a sweep that compares several."""


@dataclass(frozen=True)
class Packed:
    """A job list or a trace, packed to be sent along with each run."""

    digest: str
    """SHA-256 of files and options: equal digests mean equal jobs."""
    packed: bytes = field(compare=False, repr=False)
    kinds: tuple[str, ...] = field(compare=False, default=())
    """Kinds of schedulers that the jobs ask for."""

    @classmethod
    def read(cls, plan: SimPlan) -> "Packed":
        """Read the job list or trace that a plan names. Raises BadInput if it is malformed."""
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
    """One run: its plan, and its jobs."""

    plan: SimPlan
    given: Packed


def simulate(work: Work) -> dict[str, Any]:
    """Simulate; return the figures by workload, and those of the whole run."""
    result = work.plan.begin(_unpacked(work.given)).finish()
    return result.summary(with_audited=work.plan.audit)


@lru_cache(maxsize=KEPT_MAX)
def _unpacked(packed: Packed) -> Given:
    with without_collection():
        given: Given = pickle.loads(zlib.decompress(packed.packed))
    return given


def _files(source: Path) -> list[Path]:
    """Return the files of the job list or trace at this path, in a fixed order."""
    return sorted(detect(source).find(source).values()) if source.is_dir() else [source]
