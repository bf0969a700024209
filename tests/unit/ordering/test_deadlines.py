"""Start deadlines of the stages of pipelines."""

from collections import Counter
from heapq import heapify, heappop, heappush

import pytest

from omega.model.lanes import QueueOrder
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.ordering.deadlines import LAST, SourceTokens, stage_key, start_deadlines

DIAMOND = PipelineGraph(
    [
        Stage("join", ("fast", "slow")),
        Stage("slow", ("read",)),
        Stage("fast", ("read",)),
        Stage("read"),
    ]
)
COST_MS = {"read": 10, "fast": 20, "slow": 300, "join": 4}


STARTS_MS = start_deadlines(DIAMOND, COST_MS, 1_000)


def keys(order: QueueOrder, *, stamp_ms: int = LAST) -> dict[str, int]:
    return {
        name: stage_key(order, start_ms=start_ms, cost_ms=COST_MS[name], stamp_ms=stamp_ms)
        for name, start_ms in STARTS_MS.items()
    }


@pytest.mark.parametrize("order", [QueueOrder.DEADLINE, QueueOrder.FIFO])
def test_least_laxity_is_the_latest_start_that_keeps_the_target(order: QueueOrder) -> None:
    assert {"read": 686, "fast": 976, "slow": 696, "join": 996} == keys(order)


def test_the_earliest_deadline_leaves_out_the_own_cost() -> None:
    assert {"read": 696, "fast": 996, "slow": 996, "join": 1_000} == keys(QueueOrder.EDF)


def test_the_shortest_job_is_judged_by_its_cost_alone() -> None:
    assert COST_MS == keys(QueueOrder.SJF)


def test_all_stages_of_a_pipeline_have_the_stamp_of_its_token() -> None:
    assert {42} == set(keys(QueueOrder.TOKENS, stamp_ms=42).values())
    assert {LAST} == set(keys(QueueOrder.TOKENS).values())


def test_tokens_are_stamped_evenly_in_their_interval() -> None:
    tokens = SourceTokens(rate=4, interval_ms=1_000)
    stamps = []
    for now_ms in (5_000, 5_001, 5_002, 5_900, 5_950, 6_500):
        stamp_ms, tokens = tokens.take(now_ms)
        stamps.append(stamp_ms)

    assert [5_000, 5_250, 5_500, 5_750, LAST, 6_000] == stamps


def test_sources_with_more_work_than_tokens_are_served_in_proportion_to_their_rates() -> None:
    """Each submits ten times its tokens; the server does what there are tokens for, or half."""
    rates = {"a": 1, "b": 2, "c": 5}
    for served_each_s in (8, 4):
        tokens = {name: SourceTokens(rate=rate, interval_ms=1_000) for name, rate in rates.items()}
        waiting: list[tuple[int, int, str]] = []
        heapify(waiting)
        served: Counter[str] = Counter()
        number = 0
        for second in range(200):
            for name, rate in rates.items():
                for _ in range(10 * rate):
                    stamp_ms, tokens[name] = tokens[name].take(second * 1_000)
                    number += 1
                    heappush(waiting, (stamp_ms, number, name))
            served.update(heappop(waiting)[2] for _ in range(served_each_s))

        total = 200 * served_each_s
        assert {name: total * rate // 8 for name, rate in rates.items()} == dict(served)
