"""How batch and service jobs are divided among schedulers, as in the paper's experiments.

Goal     Say it once for `omega sim run` and for the figures.
Promise  Every kind of job but service jobs counts as batch. In the monolithic architecture every
         kind has the decision time of service jobs. In all others, multi-path included, batch jobs
         have their own.
Source   Omega (EuroSys 2013), section 4.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omega.framework.scheduler import DecisionTime
from omega.sim.experiment import Architecture
from omega.workload.arrivals import SERVICE


@dataclass(frozen=True, kw_only=True)
class Division:
    """Decision times and schedulers of batch and service jobs."""

    batch: DecisionTime
    service: DecisionTime
    batch_schedulers: int = 1
    service_schedulers: int = 1
    batch_share: float = 0.5
    """Of a static partition: the share of machines for all kinds but service jobs together."""

    def decision_times(
        self, kinds: Iterable[str], architecture: Architecture
    ) -> dict[str, DecisionTime]:
        """Return the decision time of each kind of job."""
        others = self.service if architecture is Architecture.MONOLITHIC else self.batch
        return {SERVICE: self.service, **dict.fromkeys(_but_service(kinds), others)}

    def schedulers(self, kinds: Iterable[str]) -> dict[str, int]:
        """Return the number of schedulers of each kind of job."""
        return {kind: self.replicas(kind) for kind in (SERVICE, *_but_service(kinds))}

    def replicas(self, kind: str) -> int:
        """Return the number of schedulers of a kind of job."""
        return self.service_schedulers if kind == SERVICE else self.batch_schedulers

    def parts(self, kinds: Iterable[str]) -> dict[str, float]:
        """Return the share of machines of each kind of job in a static partition."""
        others = _but_service(kinds)
        share = {kind: self.batch_share / len(others) for kind in others}
        return {SERVICE: 1 - self.batch_share, **share}


def _but_service(kinds: Iterable[str]) -> Sequence[str]:
    return [kind for kind in kinds if kind != SERVICE]
