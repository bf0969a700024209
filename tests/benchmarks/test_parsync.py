"""ParSync's experiments at toy size, and what they are made of."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.conflict_formula import drawn, expected
from benchmarks.parsync import ARMS, FIVE_LOADS, FORGETTING, FORMULA, GROUPS_LOADS, READING
from benchmarks.parsync_cell import (
    APART,
    AT_ONCE,
    GROUPS,
    SAME,
    TASK_S,
    WHOLE,
    Play,
    Scale,
    play,
)
from benchmarks.parsync_claims import BY_DELAY, Formula, claims_of
from omega.sync.turns import Turn
from tests.benchmarks.conftest import PNG, Bench

SMALL = Play(
    strategy="quality-first",
    reads=APART,
    scale=Scale(schedulers=4, slots=160, parts=8, tasks=1),
    loads=((1.0, 0.5),),
    phase_s=4.0,
    seed=3,
)
TASKS = 4.0 * 160 / TASK_S / 2
"""Of one group in a phase at its full rate."""


def test_every_arm_is_played_in_every_phase(bench: Bench) -> None:
    ran = bench("parsync")

    for experiment, phases in (("groups", len(GROUPS_LOADS)), ("five phases", len(FIVE_LOADS))):
        assert {
            (arm, phase + 1, group) for arm in ARMS for phase in range(phases) for group in GROUPS
        } == {
            (row["arm"], row["phase"], row["group"])
            for row in ran.rows
            if row["experiment"] == experiment
        }
    for experiment, pairs in (("reading", READING), ("refusals", FORGETTING)):
        told = {(r["arm"], r["reads"]) for r in ran.rows if r["experiment"] == experiment}
        assert set(pairs) == told
    assert ran.document["digest"]["placed"] == sum(row["placed"] for row in ran.rows) > 0
    claims = ran.document["summary"]["claims"]
    assert 14 == len(claims)
    assert (
        f"{sum(one['holds'] for one in claims)} of 14 claims" in ran.document["summary"]["finding"]
    )
    assert ran.picture.startswith(PNG)


def test_the_seed_alone_decides_and_each_group_gets_its_load() -> None:
    first, again, other = (play(replace(SMALL, seed=seed))["phases"] for seed in (3, 3, 4))

    assert first == again
    assert first != other
    placed = {row["group"]: row["placed"] for row in first}
    assert placed["A"] == pytest.approx(TASKS, abs=6)
    assert placed["B"] == pytest.approx(TASKS / 2, abs=6)
    assert all(0 < row["quality"] < 1 and row["delay_s"] > 0 for row in first)


def test_who_reads_what_is_as_the_arm_says() -> None:
    turns = {
        reads: [replace(SMALL, reads=reads).turn(n) for n in (0, 3)]
        for reads in (WHOLE, AT_ONCE, SAME, APART)
    }

    assert [Turn(gap_s=1.0)] * 2 == turns[WHOLE]
    assert [Turn(gap_s=1.0, parts=8)] * 2 == turns[AT_ONCE]
    assert [Turn(0, 4, 1.0, 8)] * 2 == turns[SAME]
    assert [Turn(0, 4, 1.0, 8), Turn(3, 4, 1.0, 8)] == turns[APART]


def test_conflicts_drawn_agree_with_the_formula() -> None:
    rng = np.random.default_rng(1)

    assert 277.2 == pytest.approx(expected(*FORMULA), abs=0.05)
    assert expected(*FORMULA) == pytest.approx(drawn(*FORMULA, rounds=100, rng=rng), rel=0.02)
    assert 0 == expected(1, 50, 20) == drawn(1, 50, 20, rounds=2, rng=rng)


def rows_of_a_run_in_which_all_claims_hold() -> list[dict[str, Any]]:
    delays = dict(zip(BY_DELAY, (0.1, 1.5, 5.0, 20.0), strict=True))
    spreads = {"latency-first": 0.2, "quality-first": 0.25, "adaptive": 0.3, "StateSync": 0.25}
    rows: list[dict[str, Any]] = [
        {
            "experiment": experiment,
            "arm": arm,
            "phase": phase,
            "group": group,
            "delay_s": delays[arm],
            "quality": 0.5 + 0.1 * (group == "B"),
            "quality_sd": spreads[arm],
        }
        for experiment in ("groups", "five phases")
        for arm in ARMS
        for phase in (1, 2, 3)
        for group in GROUPS
    ]
    conflicts = {WHOLE: 0.6, AT_ONCE: 0.7, SAME: 0.5, APART: 0.4}
    for experiment, pairs, more in (("reading", READING, 0.0), ("refusals", FORGETTING, 0.1)):
        rows += [
            {
                "experiment": experiment,
                "arm": arm,
                "reads": reads,
                "phase": 2,
                "group": group,
                "claims": 10,
                "conflict_fraction": conflicts[reads] + more,
            }
            for arm, reads in pairs
            for group in GROUPS
        ]
    return rows


def failing(rows: list[dict[str, Any]], formula: Formula = Formula(277.2, 277.0)) -> list[int]:  # noqa: B008 - frozen
    return [number for number, one in enumerate(claims_of(rows, formula)) if not one.holds]


@pytest.mark.parametrize(
    ("which", "change", "fails"),
    [
        (
            {"experiment": "groups", "phase": 3, "group": "A", "arm": "StateSync"},
            {"delay_s": 1.0},
            [1],
        ),
        (
            {"experiment": "groups", "phase": 3, "group": "B", "arm": "quality-first"},
            {"delay_s": 1.0},
            [2],
        ),
        (
            {"experiment": "five phases", "phase": 3, "group": "A", "arm": "adaptive"},
            {"delay_s": 0.0},
            [3],
        ),
        ({"experiment": "groups", "phase": 3, "arm": "adaptive"}, {"delay_s": 2.0}, [4]),
        ({"experiment": "groups", "phase": 3, "arm": "latency-first"}, {"delay_s": 0.8}, [5]),
        ({"experiment": "groups", "phase": 2, "arm": "adaptive"}, {"quality": 0.5}, [6]),
        ({"experiment": "groups", "phase": 3, "arm": "adaptive"}, {"quality_sd": 0.1}, [7]),
        ({"experiment": "five phases", "phase": 1, "arm": "StateSync"}, {"quality": 0.9}, [8]),
        (
            {"experiment": "reading", "arm": "quality-first", "reads": SAME},
            {"conflict_fraction": 0.3},
            [9],
        ),
        (
            {"experiment": "reading", "arm": "quality-first", "reads": WHOLE},
            {"conflict_fraction": 0.3},
            [10],
        ),
        (
            {"experiment": "reading", "arm": "latency-first", "reads": AT_ONCE},
            {"conflict_fraction": 0.3},
            [11],
        ),
        (
            {"experiment": "reading", "arm": "latency-first", "reads": WHOLE},
            {"conflict_fraction": 0.3},
            [12],
        ),
        (
            {"experiment": "refusals", "arm": "quality-first", "reads": WHOLE},
            {"conflict_fraction": 0.5},
            [13],
        ),
    ],
)
def test_each_claim_can_fail(
    which: Mapping[str, Any], change: Mapping[str, Any], fails: list[int]
) -> None:
    rows = rows_of_a_run_in_which_all_claims_hold()
    assert [] == failing(rows)
    for row in rows:
        if all(row.get(name) == value for name, value in which.items()):
            row.update(change)

    assert fails == failing(rows)


def test_a_formula_that_is_off_by_more_than_a_hundredth_is_told() -> None:
    assert [0] == failing(rows_of_a_run_in_which_all_claims_hold(), Formula(277.2, 281.0))
