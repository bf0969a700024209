"""Start deadlines: a stage of a pipeline runs before those that can start later than it.

Goal     Keep the targets of pipelines whose work is urgent, while others have time.
Promise  A key is a number; the pending stage with the smallest key is meant to go next, of equal
         ones that with the lowest id. All keys of one order are comparable: those of LLF, EDF and
         TOKENS are times, those of SJF durations. Nothing here reads a clock: costs and times are
         integers, in milliseconds.
Source   Xu et al., Cameo (NSDI 2021), for messages of streams; here for stages of seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from omega.model.lanes import QueueOrder
from omega.model.pipeline_graph import PipelineGraph

LAST: Final = 2**63 - 1
"""The key of what has no token: after all others. The largest number that a `bigint` holds."""


def start_deadlines(
    graph: PipelineGraph, cost_ms: Mapping[str, int], target_ms: int
) -> dict[str, int]:
    """Return the latest start of each stage of a pipeline that keeps its target, by name.

    `cost_ms` estimates how long each stage takes. `target_ms` is the time by which the last stage
    should have ended: the time of submission plus the allowed duration.
    """
    below = graph.below_ms(cost_ms)
    return {name: target_ms - cost_ms[name] - below[name] for name in graph.order}


def stage_key(order: QueueOrder, *, start_ms: int, cost_ms: int, stamp_ms: int) -> int:
    """Return the key of a stage in an order: of LLF in those that do not go by keys.

    `start_ms` is its start deadline, `stamp_ms` the stamp of its pipeline's token, or LAST.
    functions/pipelines.sql does the same.
    """
    match order:
        case QueueOrder.EDF:  # the latest end that keeps the target
            return start_ms + cost_ms
        case QueueOrder.SJF:
            return cost_ms
        case QueueOrder.TOKENS:
            return stamp_ms
        case _:
            return start_ms


@dataclass(frozen=True, kw_only=True)
class SourceTokens:
    """The tokens of one source of pipelines: so many an interval, none kept for the next.

    Sources that always have work are served in proportion to their rates, as long as tokens are
    handed out no slower than work is done.
    """

    rate: int
    """Tokens an interval, at least 1."""
    interval_ms: int
    interval: int = -1
    """The number of the interval in which the last token was taken; -1: none was taken yet."""
    taken: int = 0
    """How many tokens have been taken in that interval."""

    def __post_init__(self) -> None:
        assert self.rate >= 1
        assert self.interval_ms >= 1

    def at_rate(self, rate: int, interval_ms: int, now_ms: int) -> "SourceTokens":
        """Return the tokens at another rate.

        If the length of intervals changes, what was taken in one that is not over counts in the new
        one, too.
        """
        if interval_ms == self.interval_ms:
            return replace(self, rate=rate)
        new = SourceTokens(rate=rate, interval_ms=interval_ms)
        if (self.interval + 1) * self.interval_ms <= now_ms:
            return new
        return replace(new, interval=now_ms // interval_ms, taken=self.taken)

    def take(self, now_ms: int) -> tuple[int, "SourceTokens"]:
        """Return the stamp for a pipeline that is submitted now, and the tokens after that.

        The stamps of an interval are times in milliseconds, spread evenly over it. If no token is
        left in this interval, the stamp is LAST. Intervals do not go back, whatever clocks say.
        """
        interval = max(now_ms // self.interval_ms, self.interval)
        taken = self.taken if interval == self.interval else 0
        if taken >= self.rate:
            return LAST, self
        stamp_ms = (interval * self.rate + taken) * self.interval_ms // self.rate
        return stamp_ms, replace(self, interval=interval, taken=taken + 1)
