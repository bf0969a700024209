"""Elastic jobs that go on: what a scheduler plans helpers by.

Goal     One value for what a store knows of an elastic job, for planners and schedulers.
Promise  Frozen.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from dataclasses import dataclass

from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec


@dataclass(frozen=True, eq=False)
class ElasticJob:
    """An elastic job that goes on."""

    id: int
    spec: JobSpec
    runs: bool
    """Whether all of its own tasks run or have ended, and nobody holds a lease of it."""
    helper_jobs: tuple[int, ...]
    """The jobs of its helpers that go on; ascending."""
    helpers: int
    """How many of their tasks are not over."""
    done: tuple[int, ...]
    """By phase, the activities that are done ..."""
    busy_ms: tuple[int, ...]
    """... and the time that workers took for them."""

    @property
    def workers(self) -> Workers:
        """What makes it elastic."""
        assert self.spec.workers is not None
        return self.spec.workers

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Its phases."""
        return self.workers.phases
