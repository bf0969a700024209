"""Traces in rounds: the published runs, and what the switches do."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omega.model.arrays import integers
from schedulers.ml_gpu.policies.named import POLICIES
from schedulers.ml_gpu.problem import Allocation, Problem
from schedulers.ml_gpu.replay import Replay, Replayed, Rules, Trace
from schedulers.ml_gpu.throughputs import read_throughputs
from schedulers.ml_gpu.traces import read_trace

KEEPS = {"fifo_perf", "allox"}
"""Policies without chance and without another optimum: equal to all printed digits."""


def played(folder: Path, trace: str, policy: str, gpus: dict[str, int], rules: Rules) -> Replayed:
    table = read_throughputs(folder / "simulation_throughputs.json")
    return Replay(
        trace=read_trace(folder / trace, table),
        table=table,
        gpus=np.array([gpus[name] for name in table.types], np.int64),
        policy=POLICIES[policy],
        rng=np.random.default_rng(0),
        rules=rules,
    ).run()


def published_runs(published: Path, trace: str) -> tuple[dict[str, int], list[dict[str, Any]]]:
    reference = json.loads((published / "gavel" / "traces_csv" / "reference.json").read_text())
    return reference["traces"][trace]["cluster"], reference["traces"][trace]["runs"]


@pytest.mark.trace
@pytest.mark.parametrize("trace", ["max_min_fairness", "medium_test"])
def test_runs_without_chance_are_equal_to_the_published_ones_in_every_digit(
    published: Path, trace: str
) -> None:
    cluster, runs = published_runs(published, trace)
    for run in (one for one in runs if one["policy"] in KEEPS):
        mine = played(
            published / "gavel", f"traces_csv/{trace}.csv", run["policy"], cluster, Rules()
        )

        assert run["avg_jct_s"] == round(mine.completion_s.mean(), 3)
        assert run["makespan_s"] == round(mine.makespan_s, 3)
        assert run["utilization"] == round(mine.utilisation, 3)
        assert run["dispatches"] == mine.tally.dispatches
        kept = 100 * mine.tally.extended / mine.tally.could_go_on
        assert run["lease_extension_pct"] == round(kept, 2)
        if "jct_s" in run:
            assert run["jct_s"] == pytest.approx(mine.completion_s, abs=0.051)


@pytest.mark.trace
@pytest.mark.parametrize("trace", ["max_min_fairness", "medium_test"])
def test_fair_shares_that_know_rates_come_to_the_published_completion_times(
    published: Path, trace: str
) -> None:
    cluster, runs = published_runs(published, trace)
    policy = "max_min_fairness_perf"
    run = next(one for one in runs if one["policy"] == policy and "variant" not in one)
    mine = played(published / "gavel", f"traces_csv/{trace}.csv", policy, cluster, Rules())

    assert mine.completion_s.mean() <= 1.03 * run["avg_jct_s"]


@pytest.mark.trace
@pytest.mark.parametrize("trace", ["max_min_fairness", "medium_test"])
def test_fair_shares_that_count_gpus_come_to_the_published_figures(
    published: Path, trace: str
) -> None:
    """Fast types first, there is no chance; and nearly nobody keeps GPUs, as nobody has a type."""
    cluster, runs = published_runs(published, trace)
    policy = "max_min_fairness"
    run = next(one for one in runs if (one["policy"], one.get("variant")) == (policy, "fast_first"))
    rules = Rules(shuffles_types=False)
    mine = played(published / "gavel", f"traces_csv/{trace}.csv", policy, cluster, rules)

    kept = 100 * mine.tally.extended / mine.tally.could_go_on
    assert run["avg_jct_s"] == pytest.approx(mine.completion_s.mean(), rel=0.01)
    assert run["makespan_s"] == pytest.approx(mine.makespan_s, rel=0.02)
    assert run["lease_extension_pct"] == pytest.approx(kept, abs=3)


@pytest.mark.trace
def test_both_formats_of_a_trace_say_the_same(published: Path) -> None:
    folder = published / "gavel"
    table = read_throughputs(folder / "simulation_throughputs.json")
    one = read_trace(folder / "traces" / "max_min_fairness.trace", table)
    other = read_trace(folder / "traces_csv" / "max_min_fairness.csv", table)

    assert one.row.tolist() == other.row.tolist()
    assert one.steps.tolist() == other.steps.tolist()
    assert one.weight.tolist() == other.weight.tolist()
    assert one.arrival_s == pytest.approx(other.arrival_s)


def sample(samples: Path, policy: str = "max_min_fairness_perf", **rules: Any) -> Replayed:  # noqa: ANN401
    return played(
        samples / "gavel", "jobs.csv", policy, {"k80": 1, "v100": 1}, Rules(round_s=100, **rules)
    )


@pytest.mark.parametrize(
    "policy", [one.name for one in POLICIES.values() if not one.asks_prices | one.keeps_deadlines]
)
def test_every_job_ends_under_every_policy(samples: Path, policy: str) -> None:
    run = sample(samples, policy)

    assert (run.completion_s > 0).all()
    assert 0 < run.utilisation <= 1
    assert run.makespan_s >= run.completion_s.max()


def test_the_same_seed_gives_the_same_run(samples: Path) -> None:
    one, same = (sample(samples, "max_min_fairness") for _ in range(2))

    assert one.completion_s.tolist() == same.completion_s.tolist()


def test_a_restart_costs_time(samples: Path) -> None:
    assert sample(samples, restart_s=30).makespan_s > sample(samples).makespan_s


def test_keeping_gpus_spares_preemptions(samples: Path) -> None:
    table = read_throughputs(samples / "gavel" / "simulation_throughputs.json")
    trace = Trace(
        row=table.rows([("A", 1), ("B", 1), ("C", 1)] * 3),
        steps=integers([20_000, 6_000, 60_000] * 3),
        weight=np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 1.0, 2.0, 1.0]),
        arrival_s=np.zeros(9),
    )
    kept, moved = (
        Replay(
            trace=trace,
            table=table,
            gpus=integers([3, 3]),
            policy=POLICIES["max_min_fairness_perf"],
            rng=np.random.default_rng(0),
            rules=Rules(keeps_gpus=keeps),
        ).run()
        for keeps in (True, False)
    )

    assert kept.completion_s.tolist() == moved.completion_s.tolist()
    assert kept.tally.preempted < moved.tally.preempted


def test_a_job_that_came_after_the_last_reset_runs_in_what_is_left_over_if_it_may(
    samples: Path,
) -> None:
    waits, runs = (sample(samples, "fifo", reserves_idle=reserves) for reserves in (True, False))

    assert runs.completion_s.mean() <= waits.completion_s.mean()
    assert sample(samples, reserves_idle=False).completion_s[3] < sample(samples).completion_s[3]


def test_jobs_that_share_gpus_do_so_until_one_of_them_has_ended(samples: Path) -> None:
    table = read_throughputs(samples / "gavel" / "simulation_throughputs.json")
    trace = Trace(
        row=table.rows([("A", 1)] * 8),
        steps=integers([40_000, 40_000, 90_000, 90_000, 90_000, 90_000, 4_000, 4_000]),
        weight=np.ones(8),
        arrival_s=np.array([0.0, 0, 0, 0, 0, 0, 2_000, 4_000]),
    )
    asked: list[tuple[list[int], list[int]]] = []

    def recorded(problem: Problem, rng: np.random.Generator) -> Allocation:
        found = POLICIES["gandiva"].solve(problem, rng)
        assert problem.partner is not None
        pairs = found.together
        now = np.full(problem.jobs, -1)
        if pairs is not None:
            now[pairs.first], now[pairs.second] = pairs.second, pairs.first
            asked.append((problem.partner.tolist(), now.tolist()))
        return found

    Replay(
        trace=trace,
        table=table,
        gpus=integers([1, 1]),
        policy=replace(POLICIES["gandiva"], solve=recorded),
        rng=np.random.default_rng(0),
        rules=Rules(),
    ).run()
    told = [
        (before, now)
        for partner, pairs in asked[1:]
        for before, now in zip(partner, pairs, strict=True)
        if before >= 0
    ]

    assert len(asked) > 2
    assert len(told) > 4
    assert all(before == now for before, now in told)
