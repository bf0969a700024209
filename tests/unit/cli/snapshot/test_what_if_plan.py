"""What is to be otherwise, as it is asked for on the command line."""

from typing import Any

import pytest

from omega.cli.snapshot.variants import Variant
from omega.cli.snapshot.what_if_plan import AS_IT_WAS, WHAT_IF, WhatIfPlan
from omega.errors import BadInput, OmegaError
from omega.framework.scheduler import DecisionTime
from omega.model.claims import ConflictRule, Granularity
from omega.sim.commit_unit import CommitUnit
from omega.store.saved.cell import SavedCell
from omega.sync.choice import Sync
from tests.fixtures.saved_cells import a_process, a_saved_cell, a_scheduler

FIT, SEQUENCE = ConflictRule.FIT, ConflictRule.SEQUENCE
FACTS = {"totals": {"tries": 10, "thought_s": 5.0}}
CELL = a_saved_cell(
    schedulers=(a_scheduler(), a_scheduler(replica="1"), a_scheduler("service")),
    processes=(a_process(facts=FACTS), a_process("service", facts=FACTS)),
)


def variants(cell: SavedCell = CELL, **asked: Any) -> dict[str, Variant]:  # noqa: ANN401
    return WhatIfPlan(**asked).variants(cell)


def rules(**asked: Any) -> dict[str, tuple[ConflictRule, ...]]:  # noqa: ANN401
    return dict(variants(**asked)[WHAT_IF].scenario.rules)


def test_without_a_change_only_what_was_is_simulated() -> None:
    told = variants()

    assert [AS_IT_WAS] == list(told)
    scenario = told[AS_IT_WAS].scenario
    assert {"batch": (FIT, FIT), "service": (FIT,)} == scenario.rules
    assert 0.5 == scenario.paces["service"].decision.job_s


@pytest.mark.parametrize(
    ("asked", "replicas"),
    [
        ({"schedulers": "batch=3"}, {"batch": (FIT,) * 3, "service": (FIT,)}),
        ({"schedulers": "batch=1,service=0"}, {"batch": (FIT,)}),
        ({"rule": SEQUENCE}, {"batch": (SEQUENCE,) * 2, "service": (SEQUENCE,)}),
        (
            {"schedulers": "batch:sequence=1,batch:fit=1"},
            {"batch": (SEQUENCE, FIT), "service": (FIT,)},
        ),
        (
            {"schedulers": "service:fit=2", "rule": SEQUENCE},
            {"batch": (SEQUENCE,) * 2, "service": (FIT, FIT)},
        ),
    ],
)
def test_numbers_and_rules_of_schedulers_are_those_that_are_named(
    asked: dict[str, Any], replicas: dict[str, tuple[ConflictRule, ...]]
) -> None:
    assert replicas == rules(**asked)


def test_decision_times_are_named_for_all_kinds_or_for_some() -> None:
    all_kinds = variants(t_job="2", t_task="0.01")[WHAT_IF].scenario.paces
    one_kind = variants(t_job="service=3")[WHAT_IF].scenario.paces

    assert [DecisionTime(job_s=2.0, task_s=0.01)] * 2 == [it.decision for it in all_kinds.values()]
    assert (0.5, 3.0) == (one_kind["batch"].decision.job_s, one_kind["service"].decision.job_s)


def test_a_decision_time_that_nobody_reported_must_be_said_and_stands_for_what_was() -> None:
    ended = a_saved_cell()

    with pytest.raises(BadInput, match="nobody reported how long batch takes to decide"):
        variants(ended)
    told = variants(ended, t_job="0.04")
    assert [AS_IT_WAS] == list(told)
    assert 0.04 == told[AS_IT_WAS].scenario.paces["batch"].decision.job_s


def test_all_else_that_is_named_is_otherwise() -> None:
    told = variants(
        granularity=CommitUnit.ALL_OR_NOTHING,
        placing="service=batch",
        settings=["batch:alternates=2"],
        precedence_gap=3,
        sync=Sync.FULL,
        add_machines=5,
        drain=["machine-1"],
        speedup=2.0,
    )
    otherwise, was = told[WHAT_IF], told[AS_IT_WAS]

    make = otherwise.maker()
    assert "batch" == make("service").kind
    assert Granularity.ALL_OR_NOTHING is make("batch").granularity
    assert (3, 5, frozenset({"machine-1"})) == (
        otherwise.scenario.precedence_gap,
        otherwise.scenario.machines_added,
        otherwise.scenario.drained,
    )
    assert Sync.FULL is otherwise.scenario.sync.by
    assert 2.0 == was.scenario.speedup == otherwise.scenario.speedup
    assert variants(granularity=CommitUnit.GANG)[WHAT_IF].scenario.gangs


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"schedulers": "batch=two"}, "--schedulers"),
        ({"schedulers": "batch=0"}, "--schedulers"),
        ({"t_job": "soon"}, "--t-job"),
        ({"t_job": "-1"}, "--t-job"),
        ({"t_job": "nan"}, "--t-job"),
        ({"t_task": "batch=1e9"}, "--t-task"),
        ({"t_job": "night=1"}, "--t-job"),
        ({"schedulers": "ml-gpu=1"}, "--t-job"),
        ({"placing": "night=batch"}, "--placing"),
        ({"placing": "bach"}, None),
        ({"settings": ["colour=red"]}, "--set"),
        ({"settings": ["night:alternates=1"]}, "--set"),
        ({"gap": 2.0}, "--gap"),
        ({"parts": 2}, "--parts"),
        ({"sync": Sync.PARTITIONED, "parts": 4}, "--parts"),
        ({"drain": ["nobody"]}, "--drain"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_simulated(
    asked: dict[str, Any], field: str | None
) -> None:
    with pytest.raises(OmegaError) as caught:
        variants(**asked)
    assert field == getattr(caught.value, "field", None)


def test_a_time_in_which_nobody_scheduled_cannot_be_simulated() -> None:
    with pytest.raises(BadInput, match="no scheduler committed anything"):
        variants(a_saved_cell(schedulers=()))


def test_changes_are_told_without_what_stays() -> None:
    plan = WhatIfPlan(schedulers="batch=2", rule=SEQUENCE, sync=Sync.FULL)

    assert {"schedulers": "batch=2", "rule": "sequence", "sync": "full"} == plan.changes
    assert {} == WhatIfPlan().changes
