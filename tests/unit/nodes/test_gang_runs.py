"""The arithmetic of gangs that run: steps over time."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.nodes.gang_runs import NO_RUNS, Runs, begun

TIMES = st.integers(0, 10**9)
RATES = st.just(0.0) | st.floats(1e-9, 1e9)
SPEEDUPS = st.floats(0.01, 10_000)
WANTED = LIMITS.steps_max


def a_run(
    rate: float = 2.0,
    *,
    since_ms: int = 1_000,
    steps: int = 0,
    run_ms: int = 0,
    wanted: int = WANTED,
    seen_from_ms: int = 0,
    restart_ms: float = 0,
) -> Runs:
    """Return one run of job 7."""
    return begun(
        integers([7]),
        integers([since_ms]),
        np.array([rate]),
        (integers([steps]), integers([run_ms]), integers([wanted])),
        seen_from_ms=seen_from_ms,
        restart_ms=restart_ms,
    )


def steps(run: Runs, now_ms: int, speedup: float = 1.0) -> int:
    return int(run.steps_at(now_ms, speedup)[0])


def run_ms(run: Runs, now_ms: int, speedup: float = 1.0) -> int:
    return int(run.run_ms_at(now_ms, speedup)[0])


def test_whole_steps_are_made_at_the_rate() -> None:
    run = a_run(rate=2.0, steps=100, run_ms=9_000)

    assert [100, 100, 101, 120] == [steps(run, now) for now in (0, 1_499, 1_500, 11_000)]
    assert [9_000, 9_499, 19_000] == [run_ms(run, now) for now in (0, 1_499, 11_000)]


def test_a_speedup_lets_all_time_pass_faster() -> None:
    run = a_run(rate=2.0)

    assert 1_200 == steps(run, 11_000, speedup=60)
    assert 600_000 == run_ms(run, 11_000, speedup=60)


def test_no_more_steps_are_made_than_wanted() -> None:
    assert 5 == steps(a_run(rate=2.0, wanted=5), 10**6)
    assert 8 == steps(a_run(rate=2.0, steps=8, wanted=5), 10**6), "nor are any taken back"


def test_whoever_has_run_before_waits_and_its_time_counts() -> None:
    again = a_run(rate=2.0, steps=10, run_ms=1, restart_ms=3_000)

    assert [10, 10, 12] == [steps(again, now) for now in (3_999, 4_000, 5_000)]
    assert 4_001 == run_ms(again, 5_000)
    assert 8 == steps(a_run(rate=2.0, restart_ms=3_000), 5_000), "the first time nobody waits"


def test_nothing_counts_before_anybody_looked() -> None:
    run = a_run(rate=2.0, since_ms=1_000, steps=10, run_ms=500, seen_from_ms=6_000)

    assert [10, 12] == [steps(run, now) for now in (6_000, 7_000)]
    assert 1_500 == run_ms(run, 7_000)


@given(RATES, TIMES, TIMES, SPEEDUPS, st.integers(0, WANTED))
def test_never_more_steps_than_rate_times_time(
    rate: float, since_ms: int, passed_ms: int, speedup: float, on_record: int
) -> None:
    run = a_run(rate, since_ms=since_ms, steps=on_record)
    made = steps(run, since_ms + passed_ms, speedup) - on_record
    exact = Fraction(rate) * passed_ms * Fraction(speedup) / 1_000

    # A part in 10**12 is what floating-point numbers may be off.
    assert 0 <= made <= exact * (1 + Fraction(1, 10**12))
    assert made > exact * (1 - Fraction(1, 10**12)) - 1 or on_record + made == WANTED


@given(RATES, st.lists(TIMES, min_size=1, max_size=6).map(sorted), SPEEDUPS)
def test_steps_only_grow_and_do_not_depend_on_how_often_anybody_looks(
    rate: float, looks_ms: list[int], speedup: float
) -> None:
    run = a_run(rate, since_ms=0)
    seen = [steps(run, now_ms, speedup) for now_ms in looks_ms]

    assert sorted(seen) == seen
    assert seen[-1] == steps(a_run(rate, since_ms=0), looks_ms[-1], speedup)


ROUNDING = 1e-9
"""Relative; a number of steps is a product of floats."""


@given(st.floats(0.001, 1_000), st.lists(st.integers(0, 10**7), min_size=1, max_size=6))
@example(999.9999999999999, [17, 129])  # a part is rounded up, and the whole is not
def test_each_interruption_costs_less_than_a_step(rate: float, lengths_ms: list[int]) -> None:
    on_record = now_ms = 0
    for length_ms in lengths_ms:
        run = a_run(rate, since_ms=now_ms, steps=on_record)
        now_ms += length_ms
        on_record = steps(run, now_ms)
    whole = steps(a_run(rate, since_ms=0), now_ms)

    most = int(rate * now_ms / 1_000 * (1 + ROUNDING))
    assert whole - len(lengths_ms) <= on_record <= max(whole, most)


def test_runs_are_kept_and_joined() -> None:
    both = NO_RUNS.and_(a_run(1.0)).and_(a_run(3.0))

    assert [1.0, 3.0] == both.rate.tolist()
    assert [3.0] == both.only(np.array([False, True])).rate.tolist()
    assert 0 == len(NO_RUNS.steps_at(5, 1.0))
