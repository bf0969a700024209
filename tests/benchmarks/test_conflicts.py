"""The benchmark of conflicts at toy size, and what it makes of what schedulers did."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import steady_state
from benchmarks.__main__ import main
from benchmarks.churn import ConstantLoad
from benchmarks.conflict_comparison import COMPARISONS, compared
from benchmarks.conflicts import AXES, GRANULARITIES, RULES, SMOKE, Conflicts
from benchmarks.rival import Rival, Role, Seldom
from benchmarks.steady_state import FULL, Point, Rivals, Tally
from benchmarks.taken_up import taken_up
from omega.clock import ManualClock
from omega.config import load_settings
from omega.errors import InvariantBroken
from omega.events import ignore
from omega.metrics.facts import NOTHING, merge
from omega.model.claims import ConflictRule, Granularity
from omega.store.loading import place_prefill
from omega.store.memory.store import MemoryStore
from omega.sync.delta import DeltaRefresher
from omega.sync.full import FullRefresher
from omega.testing.builders import a_cell, a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Prefill, Workload
from omega.workload.synthetic import Shape, scattered, uniform_machines
from tests.benchmarks.conftest import PNG, Bench

TRACES = Path(__file__).parents[1] / "samples"
MODES = len(RULES) * len(GRANULARITIES)
RULE = COMPARISONS["fit_and_sequence"]


def test_live_schedulers_compete_and_the_work_was_done(bench_on_server: Bench) -> None:
    ran = bench_on_server("conflicts")

    points = {tuple(row[axis] for axis in (*AXES, "rule", "granularity")) for row in ran.rows}
    assert len(SMOKE.settings) * MODES == len(SMOKE.points) == len(points) == len(ran.rows)
    digest = ran.document["digest"]
    assert 0 == digest["violations"]
    assert len(ran.rows) == digest["contests"]
    assert digest["tasks placed"] > sum(row["fill"] for row in ran.rows) * SMOKE.machines * 4 // 100
    assert digest["transactions"] >= len(ran.rows) + sum(row["transactions"] for row in ran.rows)
    for row in ran.rows:
        assert 0 <= row["transactions_conflicted"] <= row["transactions"]
        assert bool(row["refused"]) == bool(row["claim_conflict_fraction"])
        assert 0 < row["filled"] <= 1
        assert 0 == row["store_faults"]
    assert "Conflict fraction of 2 schedulers: incremental," in ran.document["summary"]["finding"]
    assert set(COMPARISONS) < set(ran.document["summary"])
    assert ran.picture.startswith(PNG)


@pytest.mark.parametrize("trace", ["openb", "google-2011"])
def test_a_trace_is_scheduled_by_all_kinds_that_it_has_jobs_for(
    bench_on_server: Bench, trace: str
) -> None:
    ran = bench_on_server("conflicts", "--trace", str(TRACES / trace))

    assert {trace} == {row["workload"] for row in ran.rows}
    assert MODES == len(ran.rows) == ran.document["digest"]["contests"]
    assert ran.document["digest"]["tasks placed"] >= MODES
    assert "trace" not in ran.document["parameters"], "a folder of this machine is nobody's affair"


@pytest.mark.parametrize("count", ["count_transactions", "count_refused"])
def test_what_is_not_on_record_ends_the_run(
    bench_on_server: Bench, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    monkeypatch.setattr(steady_state, count, lambda _: -1)

    with pytest.raises(AssertionError, match="on record"):
        bench_on_server("conflicts", "--trace", str(TRACES / "openb"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rules", "luck"], "'luck' is none of fit, sequence"),
        (["--fill", "100"], "not in 1 to 99"),
        (["--gap-ms", "often"], "does not read as numbers"),
        (["--schedulers", "41"], "not in 1 to 40"),
        (["--trace", str(TRACES / "openb"), "--schedulers", "14"], "are more than 40"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_started(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "conflicts", *arguments])

    assert 2 == end.value.code
    assert problem in " ".join(capsys.readouterr().err.split())


def test_one_thing_at_a_time_is_varied_and_each_under_every_mode() -> None:
    sweep = Conflicts()

    assert sweep.base == Point()
    for setting in sweep.settings:
        varied = [axis for axis in AXES if getattr(setting, axis) != getattr(sweep.base, axis)]
        assert len(varied) <= 1
        mine = [
            point
            for point in sweep.points
            if all(getattr(point, axis) == getattr(setting, axis) for axis in AXES)
        ]
        assert MODES == len({(point.rule, point.granularity) for point in mine}) == len(mine)
    for axis in AXES:
        assert set(getattr(sweep, axis)) == {getattr(setting, axis) for setting in sweep.settings}


def test_an_axis_without_the_usual_value_stands_at_its_last() -> None:
    sweep = replace(Conflicts(), schedulers=(2, 4), fill=(FULL,), rules=("sequence",))

    assert Point(schedulers=4, fill=FULL, rule="sequence") == sweep.base


@pytest.fixture
def full_cell() -> MemoryStore:
    """Twelve tasks run, and there is no room for more."""
    store, clock = MemoryStore(ManualClock()), ManualClock()
    machines = uniform_machines(3, cpus=4, memory_gib=16)
    prefill = scattered(machines, 12, Shape(), np.random.default_rng(0))
    assert 12 == place_prefill(store, prefill, store.add_machines(machines), clock=clock).placed
    return store


def test_a_tide_ends_what_stands_above_its_level(full_cell: MemoryStore) -> None:
    constant_load = ConstantLoad(full_cell, np.random.default_rng(1), level=9)
    constant_load.step()
    constant_load.step()

    assert 3 == constant_load.ended
    assert 9 == full_cell.use().live_allocations


def test_a_tide_leaves_what_does_not_reach_its_level(full_cell: MemoryStore) -> None:
    constant_load = ConstantLoad(full_cell, np.random.default_rng(1), level=12)
    constant_load.step()

    assert 0 == constant_load.ended


def test_one_who_refreshes_seldom_keeps_the_view_meanwhile() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(1))
    refresher = Seldom(FullRefresher(store, clock, ignore), clock, gap_s=2.0)

    first = refresher.refresh(None)
    clock.advance(1.9)
    assert refresher.refresh(first) is first
    clock.advance(0.1)
    assert refresher.refresh(first) is not first


def an_arrival(submit_s: float, duration_ms: int | None, scheduler: str = BATCH) -> Arrival:
    spec = a_spec(2, scheduler=scheduler, duration_ms=duration_ms)
    return Arrival(submit_s, spec)


def test_a_trace_is_taken_up_with_what_still_runs_by_then() -> None:
    arrivals = [
        an_arrival(0.0, 5_000),
        an_arrival(1.0, 9_500, SERVICE),
        an_arrival(2.0, None),
        an_arrival(10.0, 1_000),
        an_arrival(12.0, 1_000),
    ]
    trace = Workload("a trace", a_cell(2), Prefill.none(), tuple(arrivals))

    later = taken_up(trace, 75, load_settings(), seed=0)

    assert [0.0, 2.0] == [one.submit_s for one in later.arrivals]
    groups = {
        job.scheduler: [group.duration_ms for group in job.groups] for job in later.prefill.jobs
    }
    assert {SERVICE: [500], BATCH: [None]} == groups
    assert 4 == len(later.prefill)


def a_role(**fields: Any) -> Role:  # noqa: ANN401 - fields of any type
    usual = Role(
        kind=BATCH,
        replica="0",
        rule=ConflictRule.SEQUENCE.value,
        granularity=Granularity.ALL_OR_NOTHING.value,
        t_job_ms=250,
        t_task_ms=5,
        gap_ms=0,
        seed=0,
    )
    return replace(usual, **fields)


def test_a_role_says_how_to_think_and_how_to_look() -> None:
    assert 0.3 == pytest.approx(a_role().decision_time.of(10))
    assert DeltaRefresher is a_role().refresher
    seldom = a_role(gap_ms=10).refresher(MemoryStore(ManualClock()), ManualClock(), ignore)
    assert isinstance(seldom, Seldom)


def test_a_contender_takes_part_in_one_contest_after_another(database_url: str) -> None:
    with closing(Rival()) as rival:
        assert {} == rival.stop(), "nothing runs yet"
        for replica in ("0", "1"):
            rival.start(database_url, asdict(a_role(replica=replica)))
            assert {} == rival.facts()["facts"]["totals"].get("refused", {})
            rival.stop()
            assert rival.stop()["facts"]["process_s"] > 0
        with pytest.raises(InvariantBroken, match="before its time"):
            rival.facts()


class Recorded:
    """Stands for a process, and keeps what it was asked to do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send(self, do: str, **_: object) -> None:
        self.asked.append(do)

    def receive(self) -> dict[str, Any]:
        return {"facts": NOTHING}


def test_schedulers_are_stopped_in_order_when_somebody_interrupts() -> None:
    processes = [Recorded() for _ in range(3)]
    workers = Rivals(processes, "postgresql://nowhere")  # type: ignore[arg-type]

    def interrupted() -> None:
        with workers.at_work(Point(), [BATCH] * 2, seed=0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [["start", "stop"], ["start", "stop"], []] == [one.asked for one in processes]


def some_facts(factor: int) -> dict[str, Any]:
    return {
        **NOTHING,
        "elapsed_s": 2.0 * factor,
        "process_s": 2.0 * factor,
        "totals": {
            "job_transactions": 4 * factor,
            "job_transactions_conflicted": factor,
            "transactions": 4 * factor,
            "tasks_placed": 30 * factor,
            "claims": 40 * factor,
            "claims_refused": 10 * factor,
            "refused": {"overcommit": 10 * factor},
            "thought_s": 1.0 * factor,
            "thought_useful_s": 0.75 * factor,
            "thought_wasted_s": 0.25 * factor,
            "waits_s": 6.0 * factor,
        },
        "waits": {"80": 3 * factor},
    }


def test_what_was_done_before_the_end_of_the_warm_up_does_not_count() -> None:
    before, after = [some_facts(1), some_facts(1)], [some_facts(3), some_facts(3)]

    facts = steady_state.since(before, after)

    assert {name: 4 * told for name, told in totals_of(1).items()} == totals_of_facts(facts)
    assert (4.0, 8.0) == (facts["elapsed_s"], facts["process_s"])


def totals_of(factor: int) -> dict[str, float]:
    return totals_of_facts(some_facts(factor))


def totals_of_facts(facts: dict[str, Any]) -> dict[str, float]:
    return {name: told for name, told in facts["totals"].items() if name != "refused"}


def a_tally() -> Tally:
    return Tally(
        facts=merge(some_facts(1)),
        seconds=2.0,
        offered=0.4,
        filled=0.8,
        waiting=1,
        parked=0,
        placed=30,
        transactions=4,
        refused=10,
    )


def test_a_row_holds_the_papers_measures() -> None:
    row = a_tally().row()

    assert (0.3333, 0.25) == (row["conflict_fraction"], row["claim_conflict_fraction"])
    assert (4, 1) == (row["transactions"], row["transactions_conflicted"])
    assert {"overcommit": 10} == row["refused"]
    assert (0.5, 0.4, 0.25) == tuple(
        row[name] for name in ("busy", "busy_without_conflicts", "thought_wasted")
    )
    assert (2.0, 15.0) == (row["wait_mean_s"], row["tasks_per_s"])


def test_a_contest_in_which_nothing_was_tried_has_no_fractions() -> None:
    row = replace(a_tally(), facts=merge()).row()

    assert None is row["conflict_fraction"] is row["wait_mean_s"] is row["thought_wasted"]


def a_row(rule: str, conflicted: int, transactions: int, schedulers: int = 8) -> dict[str, Any]:
    return {
        **asdict(Point(rule=rule, schedulers=schedulers)),
        "transactions": transactions,
        "transactions_conflicted": conflicted,
        "conflict_fraction": conflicted / (transactions - conflicted),
        "tasks_per_s": float(transactions - conflicted),
    }


def test_rivals_are_compared_setting_by_setting() -> None:
    pairs: Sequence[tuple[int, int]] = [(10, 60), (60, 10), (10, 12), (0, 0)]
    rows = [
        a_row(rule, conflicted, 100, schedulers=setting)
        for setting, pair in enumerate(pairs)
        for rule, conflicted in zip(RULES, pair, strict=True)
    ]

    found = compared([*rows, a_row("fit", 5, 100, schedulers=9)], RULE)

    names = "pairs", "less", "significantly_less", "significantly_more"
    assert (3, 2, 1, 1) == tuple(found[name] for name in names)
    assert [1] == [where["schedulers"] for where in found["where_more"]]
    assert 1.02 == found["tasks_finer_over_coarser"]
    assert 1.23 == found["conflicts_coarser_over_finer"]


def test_none_of_five_is_no_certainty() -> None:
    found = compared([a_row("fit", 0, 5), a_row("sequence", 1, 5)], RULE)

    assert (1, 1, 0) == (found["pairs"], found["less"], found["significantly_less"])
    assert None is found["conflicts_coarser_over_finer"]
