"""Variants of a saved cell, and their simulation by workers.

Goal     Simulate several seeds of several variants on all cores.
Promise  A worker unpacks the cell once. The figures of a run depend only on its `Work`.
Source   omega.sim.sweep, whose trials these are; omega.sim.what_if.
"""

import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from omega.cli.sim.garbage_collection import without_collection
from omega.cli.sim.placing import makers, read_placing
from omega.framework.scheduler import Scheduler
from omega.model.claims import Granularity
from omega.sim.commit_unit import CommitUnit
from omega.sim.what_if import Scenario, simulate
from omega.store.saved.cell import SavedCell


@dataclass(frozen=True)
class Variant:
    """A scenario, and which schedulers place its jobs."""

    scenario: Scenario
    placing: str | None = None
    settings: tuple[str, ...] = ()
    granularity: CommitUnit | None = None
    """None: that of each scheduler."""

    def maker(self) -> Callable[[str], Scheduler]:
        """Return the function that makes the scheduler of a kind of job.

        Raises BadInput, SettingsError or UnknownScheduler for schedulers that cannot be used.
        """
        kinds = sorted(self.scenario.rules)
        made = makers(read_placing(self.placing, kinds), kinds, self.settings)

        def make(kind: str) -> Scheduler:
            scheduler = made[kind]()
            if self.granularity is not None:
                scheduler.granularity = (
                    Granularity.ALL_OR_NOTHING
                    if self.granularity is CommitUnit.ALL_OR_NOTHING
                    else Granularity.INCREMENTAL
                )
            return scheduler

        return make


@dataclass(frozen=True)
class PackedCell:
    """A saved cell, packed to be sent along with each run."""

    packed: bytes = field(repr=False)

    @classmethod
    def of(cls, cell: SavedCell) -> "PackedCell":
        """Pack a cell."""
        return cls(zlib.compress(pickle.dumps(cell), level=1))


@dataclass(frozen=True)
class Work:
    """One run."""

    cell: PackedCell
    variant: Variant
    seed: int


def simulate_work(work: Work) -> dict[str, Any]:
    """Simulate; return the measures by kind, and those of the whole cell."""
    return simulate(
        _unpacked(work.cell), work.variant.scenario, work.variant.maker(), seed=work.seed
    )


@lru_cache(maxsize=1)
def _unpacked(packed: PackedCell) -> SavedCell:
    with without_collection():
        cell: SavedCell = pickle.loads(zlib.decompress(packed.packed))
    return cell
