"""What training jobs have been through since they came: GPU time, preemptions, time without a step.

Goal     Tell people how a job fares, and know a model that makes no steps from one that is new.
Promise  Arrays in, arrays out, a row a job. A preemption that a commit refused is taken back.
         What a stranger's memo had at the bounds stays within them, so that it can be noted again.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from omega.model.arrays import Ids, Index, Mask, Score, integers
from schedulers.ml_gpu.problem import Shares

AMOUNT_MAX = 1e15
"""More seconds than there will be."""
TIMES_MAX = 2**63 - 1
STALLED_ROUNDS = 3
"""Rounds' time without a step on a type after which a rate of 0 is believed there."""
_Amount = Annotated[float, Field(ge=0, le=AMOUNT_MAX)]
_Whole = Annotated[int, Field(ge=0, le=TIMES_MAX)]


class HistoryMemo(BaseModel):
    """A history as JSON has it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    promised_s: list[_Amount] = []
    had_s: list[_Amount] = []
    preempted: list[_Whole] = []
    preempted_in: list[_Whole] = []
    idle_s: list[list[_Amount]] = []


@dataclass(frozen=True, eq=False, kw_only=True)
class JobHistory:
    """One row a job."""

    promised_s: Score
    """Seconds of GPU time promised since the job was first seen ..."""
    had_s: Score
    """... and those that it has had."""
    preempted: Ids
    """How often a round has taken its GPUs away ..."""
    preempted_in: Ids
    """... and the number of the last one that did; 0: none."""
    idle_s: Shares
    """Seconds on each type since its last step there: (jobs, types)."""

    def __len__(self) -> int:
        return len(self.preempted)

    @classmethod
    def new(cls, jobs: int, types: int) -> "JobHistory":
        """Return the history of jobs that have just come."""
        return cls(
            promised_s=np.zeros(jobs),
            had_s=np.zeros(jobs),
            preempted=np.zeros(jobs, np.int64),
            preempted_in=np.zeros(jobs, np.int64),
            idle_s=np.zeros((jobs, types)),
        )

    def rows(self, which: Index | Mask) -> "JobHistory":
        """Return the history of some jobs, in this order."""
        return JobHistory(
            promised_s=self.promised_s[which],
            had_s=self.had_s[which],
            preempted=self.preempted[which],
            preempted_in=self.preempted_in[which],
            idle_s=np.asarray(self.idle_s[which]),
        )

    def and_(self, other: "JobHistory") -> "JobHistory":
        """Return the history of these jobs, and then of others."""
        return JobHistory(
            promised_s=np.append(self.promised_s, other.promised_s),
            had_s=np.append(self.had_s, other.had_s),
            preempted=np.append(self.preempted, other.preempted),
            preempted_in=np.append(self.preempted_in, other.preempted_in),
            idle_s=np.vstack([self.idle_s, other.idle_s]),
        )

    def after(self, promised_s: Score, runs: Index, had_s: Score) -> "JobHistory":
        """Return it after so much was promised to each job, and had by those that ran."""
        had = self.had_s.copy()
        had[runs] += had_s
        return replace(
            self,
            promised_s=np.minimum(self.promised_s + promised_s, AMOUNT_MAX),
            had_s=np.minimum(had, AMOUNT_MAX),
        )

    def observed(self, runs: Index, on: Index, steps: Score, seconds: Score) -> "JobHistory":
        """Return it after these jobs have made so many steps in so many seconds on a type."""
        idle = self.idle_s.copy()
        idle_s = np.minimum(idle[runs, on] + seconds, AMOUNT_MAX)
        idle[runs, on] = np.where(steps > 0, 0.0, idle_s)
        return replace(self, idle_s=idle)

    def preempting(self, jobs: Index, number: int) -> "JobHistory":
        """Return it after a round of this number has planned to take these jobs' GPUs."""
        times, last = self.preempted.copy(), self.preempted_in.copy()
        times[jobs] = np.minimum(times[jobs], TIMES_MAX - 1) + 1
        last[jobs] = number
        return replace(self, preempted=times, preempted_in=last)

    def spared(self, jobs: Mask, number: int) -> "JobHistory":
        """Return it with it known that these jobs still run as before the round of this number."""
        spared = jobs & (self.preempted_in == number) & (self.preempted > 0)
        return replace(
            self,
            preempted=self.preempted - spared,
            preempted_in=np.where(spared, 0, self.preempted_in),
        )

    def memo(self) -> HistoryMemo:
        """Return it as JSON has it."""
        return HistoryMemo(
            promised_s=self.promised_s.tolist(),
            had_s=self.had_s.tolist(),
            preempted=self.preempted.tolist(),
            preempted_in=self.preempted_in.tolist(),
            idle_s=self.idle_s.tolist(),
        )

    @classmethod
    def of(
        cls,
        told: HistoryMemo,
        jobs: int,
        types: int,
        widened: Callable[[Sequence[Sequence[float]]], Shares],
    ) -> "JobHistory":
        """Read it; raise ValueError if it is not of so many jobs. `widened` sorts columns of types.

        A memo without any, of an earlier version, is that of jobs that have just come.
        """
        if told == HistoryMemo():
            return cls.new(jobs, types)
        columns = (told.promised_s, told.had_s, told.preempted, told.preempted_in)
        if any(len(column) != jobs for column in columns):
            raise ValueError("columns differ in length")
        return cls(
            promised_s=np.array(told.promised_s, np.float64),
            had_s=np.array(told.had_s, np.float64),
            preempted=integers(told.preempted),
            preempted_in=integers(told.preempted_in),
            idle_s=widened(told.idle_s),
        )


def stalled(history: JobHistory, kind: Index, kinds: int, after_s: float) -> Mask:
    """Say on which types jobs of each kind have long made no step: (kinds, types).

    What one job has found out holds for all of its kind.
    """
    idle_s = np.zeros((kinds, history.idle_s.shape[1]))
    np.maximum.at(idle_s, kind, history.idle_s)
    return np.asarray(idle_s >= after_s)
