"""Who gets workers beyond those wanted: three policies, and the greedy division among jobs.

Goal     Spend what idles on the jobs that gain most from it.
Promise  No job gets more than its `at_most`, and all together no more than the room of any kind.
         Each growth chosen has the largest gain for each worker of all that fit at that moment.
Source   Omega (EuroSys 2013), section 6: max-parallelism, global cap, relative job size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from heapq import heapify, heappop, heappush
from re import fullmatch
from typing import Final

import numpy as np

from omega.errors import BadInput, did_you_mean
from omega.model.arrays import Amounts
from schedulers.elastic.model import Growth, PhaseLeft, best_growth
from schedulers.settings import refuse_unknown

GROWTHS_MAX: Final = 2_000
"""Growths of one tick, so that it does not take longer than a tick."""
SETTINGS: Final = ("policy", "target", "helper_precedence")
"""The settings of the elastic scheduler; the last one is read by itself."""
WORKERS_MAX: Final = 2**31 - 1


class PolicyName(Enum):
    """The policies of the paper."""

    MAX = "max"  # as long as it helps
    CAP = "cap"  # until the use of the cell reaches the target
    RELATIVE = "relative"  # up to so many times the workers wanted


TARGETS: Final[Mapping[PolicyName, Fraction]] = {
    PolicyName.CAP: Fraction(6, 10),
    PolicyName.RELATIVE: Fraction(4),
}
"""The paper's targets. The policy `max` has none."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A job that may get more workers."""

    job: int
    phases: tuple[PhaseLeft, ...]
    wanted: int
    """The workers that its user chose."""
    at_most: int
    """The most that it may have."""
    workers: int
    """Those that it has now, helpers included."""
    demand: Amounts
    """What a worker needs: (kinds,)."""


@dataclass(frozen=True)
class Policy:
    """How many workers a job may have, and how much of the cell all jobs may use."""

    name: PolicyName = PolicyName.MAX
    target: Fraction | None = None

    def __post_init__(self) -> None:
        assert (self.target is None) == (self.name not in TARGETS)

    def workers_max(self, candidate: Candidate) -> int:
        """Return the most workers that a job may have."""
        if self.name is PolicyName.RELATIVE and self.target is not None:
            return min(candidate.at_most, int(candidate.wanted * self.target))
        return candidate.at_most

    def room(self, capacity: Amounts, used: Amounts) -> Amounts:
        """Return what may be given to workers, of each kind: (kinds,).

        `capacity` and `used` are of the whole cell.
        """
        return np.asarray(np.maximum(self._limit(capacity) - used, 0))

    def excess(self, capacity: Amounts, used: Amounts) -> Amounts:
        """Return what is used above the target of `cap`, of each kind; 0 for other policies."""
        if self.name is not PolicyName.CAP:
            return np.zeros_like(used)
        return np.asarray(np.maximum(used - self._limit(capacity), 0))

    def _limit(self, capacity: Amounts) -> Amounts:
        if self.name is not PolicyName.CAP or self.target is None:
            return capacity
        return np.asarray(capacity * self.target.numerator // self.target.denominator)


def read_policy(settings: Mapping[str, str]) -> Policy:
    """Return the policy of an operator's settings, by name and as text. Raises BadInput."""
    refuse_unknown(settings, SETTINGS)
    known = tuple(name.value for name in PolicyName)
    said = settings.get("policy", PolicyName.MAX.value)
    if said not in known:
        hint = did_you_mean(said, known)
        raise BadInput(
            f"there is no policy {said!r}{hint} (known: {', '.join(known)})", field="policy"
        )
    name = PolicyName(said)
    return Policy(name, _target(name, settings.get("target")))


def grow(policy: Policy, candidates: Sequence[Candidate], room: Amounts) -> list[int]:
    """Return how many workers each candidate gets, of a room of (kinds,).

    After `GROWTHS_MAX` growths the rest of the room is left to the next tick.
    """
    left = room.copy()
    added = [0] * len(candidates)

    def best(at: int) -> Growth | None:
        candidate = candidates[at]
        workers = candidate.workers + added[at]
        most = min(policy.workers_max(candidate), workers + _fitting(candidate.demand, left))
        return best_growth(candidate.phases, workers, most)

    queue = [
        (-growth.gain_per_worker_s, at, growth)
        for at in range(len(candidates))
        if (growth := best(at)) is not None
    ]
    heapify(queue)
    for _ in range(GROWTHS_MAX):
        if not queue:
            break
        _, at, growth = heappop(queue)
        demand = candidates[at].demand
        # The room shrinks only, so that no growth in the queue becomes better than it was.
        if growth.workers <= _fitting(demand, left):
            added[at] += growth.workers
            left -= growth.workers * demand
        if (again := best(at)) is not None:
            heappush(queue, (-again.gain_per_worker_s, at, again))
    return added


def _fitting(demand: Amounts, room: Amounts) -> int:
    """Return how many workers of this demand fit into a room."""
    asked = demand > 0
    if not asked.any():
        return WORKERS_MAX  # it needs only GPUs, and `at_most` is no more than fit
    return int((room[asked] // demand[asked]).min())


def _target(name: PolicyName, said: str | None) -> Fraction | None:
    usual = TARGETS.get(name)
    if said is None:
        return usual
    if usual is None:
        raise BadInput(f"the policy {name.value} has no target", field="target")
    if fullmatch(r"[0-9]{1,6}(\.[0-9]{1,4})?", said) is None:
        raise BadInput(f"{said[:30]!r} is no number such as 0.6 or 4", field="target")
    target = Fraction(said)
    if name is PolicyName.CAP and not 0 < target <= 1:
        raise BadInput(
            f"the share of the cell is above 0 and at most 1, not {said}", field="target"
        )
    if name is PolicyName.RELATIVE and target < 1:
        raise BadInput(f"a job has at least the workers wanted, not {said} times", field="target")
    return target
