"""Elastic jobs: which of them get more workers, planned on the whole view, tick by tick.

Goal     Let a scheduler that spends what idles consist of one function of a view.
Promise  As for any scheduler: it reads a view and what the framework hands it.
Source   Omega (EuroSys 2013), section 6; docs/decisions/0043-elastic-jobs.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omega.cell.view import View
from omega.model.arrays import Amounts
from omega.model.elastic import PhaseProgress
from omega.model.elastic_jobs import ElasticJob


@dataclass(frozen=True, eq=False, kw_only=True)
class ElasticState:
    """The input of a tick."""

    memo: Mapping[str, object]
    """The memo of the last plan; empty in the first tick."""
    jobs: Sequence[ElasticJob]
    """Elastic jobs of this kind that go on, oldest first."""
    ended: Sequence[PhaseProgress]
    """Jobs of the last plan that have ended since."""


@dataclass(frozen=True, eq=False)
class ElasticPlan:
    """The output of a tick."""

    helpers: Mapping[int, int]
    """By job, how many helpers to add, in this order."""
    give_back: Amounts
    """What helpers are to free, of each kind; the newest ones end first: (kinds,)."""
    memo: Mapping[str, object]
    """A JSON object for the next tick."""


class Elastic(ABC):
    """How a scheduler gives helpers to its jobs."""

    tick_ms: int
    """Time from the beginning of one tick to the earliest beginning of the next."""
    precedence: int
    """The precedence of helpers. A parent's that is as low or lower gets helpers one below it."""

    @abstractmethod
    def plan(self, view: View, state: ElasticState) -> ElasticPlan:
        """Return who gets how many helpers."""
