"""A saved cell simulated as it was and otherwise: on cells small enough to reckon by hand."""

from dataclasses import replace
from typing import Any

import pytest

from omega.errors import BadInput
from omega.framework.effects import Commit, Refresh
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.lifecycle.states import State
from omega.model.claims import ConflictRule
from omega.model.lanes import QueueOrder
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.ordering.tenants import Tenant
from omega.sim.live_run import SyncConfig
from omega.sim.what_if import (
    Pace,
    Scenario,
    drained_names,
    paces_of,
    rules_of,
    simulate,
    speedup_of,
)
from omega.store.saved.cell import SavedCell
from omega.sync.choice import Sync
from omega.testing.builders import a_spec, a_transaction
from tests.fixtures.saved_cells import (
    a_process,
    a_saved_cell,
    a_saved_job,
    a_scheduler,
    running,
    some_machines,
)
from tests.unit.framework.loops import InOrder

FIT, SEQUENCE = ConflictRule.FIT, ConflictRule.SEQUENCE
PACE = Pace(decision=DecisionTime(job_s=0.5), refresh_s=0.1, commit_s=0.2)


def cell_of(jobs: int, *, machines: int = 2, cores: int = 1, **told: Any) -> SavedCell:  # noqa: ANN401
    """Return a cell to which so many jobs came at once, a second after the beginning."""
    spec = a_spec(cpu_milli=1_000 * cores)
    return a_saved_cell(
        machines=some_machines(machines),
        jobs=tuple(a_saved_job(n, spec, submitted_s=1) for n in range(1, jobs + 1)),
        **told,
    )


def scenario(replicas: int = 1, *, rule: ConflictRule = FIT, **told: Any) -> Scenario:  # noqa: ANN401
    fields: dict[str, Any] = {
        "rules": {"batch": (rule,) * replicas},
        "paces": {"batch": PACE},
        "precedence_gap": 10,
        **told,
    }
    return Scenario(**fields)


def in_order(_: str) -> Scheduler:
    return InOrder()


def simulated(cell: SavedCell, how: Scenario, seed: int = 1) -> dict[str, Any]:
    return simulate(cell, how, in_order, seed=seed)


def test_schedulers_that_race_for_one_machine_conflict_and_one_alone_does_not() -> None:
    cell = cell_of(8, machines=4, cores=4)

    alone = simulated(cell, scenario(1))["batch"]
    both = simulated(cell, scenario(2))["batch"]
    assert (1, 8, 4, 0.0) == tuple(
        alone[name] for name in ("schedulers", "jobs", "jobs_placed", "conflict_fraction")
    )
    assert (2, 4) == (both["schedulers"], both["jobs_placed"])
    assert both["conflict_fraction"] > 0
    assert both["wait_mean_s"] < alone["wait_mean_s"]


def test_the_sequence_rule_conflicts_where_there_is_room_for_both() -> None:
    def conflicts(*rules: ConflictRule) -> int:
        how = scenario(rules={"batch": rules})
        told: int = simulated(cell_of(8, machines=1), how)["batch"]["job_transactions_conflicted"]
        return told

    assert 0 == conflicts(FIT, FIT)
    assert conflicts(SEQUENCE, SEQUENCE) > 0
    # Each replica has its rule: of two that race, the one that commits last is refused or not.
    assert [0, 2] == [conflicts(FIT, SEQUENCE), conflicts(SEQUENCE, FIT)]


def test_the_same_seed_gives_the_same_figures() -> None:
    cell = cell_of(9, machines=3, cores=3)

    assert simulated(cell, scenario(2)) == simulated(cell, scenario(2))


def test_a_drained_machine_takes_nothing_and_an_added_one_does() -> None:
    cell = cell_of(4, machines=2, cores=4)

    assert 2 == simulated(cell, scenario())["batch"]["jobs_placed"]
    drained = scenario(drained=drained_names(cell, ["machine-1"]))
    assert 1 == simulated(cell, drained)["batch"]["jobs_placed"]
    assert 4 == simulated(cell, scenario(machines_added=3))["batch"]["jobs_placed"]


def test_machines_and_quotas_are_as_they_were() -> None:
    quota = Quota(QuotaScope.TENANT, "default", {Budget.JOBS: 1})
    closed = some_machines(2, state=[MachineState.DRAINING, MachineState.OPEN])

    limited = cell_of(4, cores=4, quotas=(quota,))
    assert 1 == simulated(limited, scenario())["batch"]["jobs_placed"]
    draining = replace(cell_of(4, cores=4), machines=closed)
    assert 1 == simulated(draining, scenario())["batch"]["jobs_placed"]


def test_a_kind_to_which_no_job_came_has_its_replicas_too() -> None:
    """They place again what they lose of the start state."""
    rules = {"batch": (FIT,), "service": (FIT,)}
    urgent = a_spec(cpu_milli=4_000, precedence=100, duration_ms=5_000)
    ran = a_saved_job(2, a_spec(cpu_milli=4_000, scheduler="service", duration_ms=None))
    cell = a_saved_cell(
        machines=some_machines(1),
        jobs=(a_saved_job(1, urgent, submitted_s=1), ran),
        running=running((2, 0, 1, -5), cpu_milli=4_000),
    )

    class Preempts(InOrder):
        preempts = True

    how = scenario(rules=rules, paces=dict.fromkeys(rules, PACE))
    told = simulate(cell, how, lambda _: Preempts(), seed=1)
    assert (1, 0) == (told["service"]["schedulers"], told["service"]["jobs"])
    assert (1, 1) == (told["tasks_evicted"], told["batch"]["jobs_placed"])
    assert told["service"]["busy"] > 0


def test_parts_are_divided_among_the_replicas_of_all_kinds() -> None:
    rules = {"batch": (FIT,) * 2, "service": (FIT,)}
    sync = SyncConfig(by=Sync.PARTITIONED, parts=3)
    how = scenario(rules=rules, paces=dict.fromkeys(rules, PACE), sync=sync)

    told = simulated(cell_of(2), how)
    assert [2, 1] == [told[kind]["schedulers"] for kind in rules]


def test_tenants_have_their_weights() -> None:
    """Of eight cores, jobs of ann take one, and those of bob two: if she weighs more, more fit."""
    specs = [
        a_spec(cpu_milli=1_000 * cores, tenant=tenant)
        for tenant, cores in (("ann", 1), ("bob", 2))
        for _ in range(8)
    ]
    jobs = tuple(a_saved_job(n, spec, submitted_s=1) for n, spec in enumerate(specs, 1))
    cell = a_saved_cell(machines=some_machines(2), jobs=jobs)
    below = (Tenant("ann", 9, "org"), Tenant("bob", 1, "org"), Tenant("org"))

    class Fair(InOrder):
        queue_order = QueueOrder.DRF

    def placed(cell: SavedCell) -> int:
        told: int = simulate(cell, scenario(), lambda _: Fair(), seed=1)["batch"]["jobs_placed"]
        return told

    assert [5, 7] == [placed(cell), placed(replace(cell, tenants=below))]


def test_waits_and_busyness_follow_the_pace() -> None:
    told = simulated(cell_of(1), scenario())["batch"]

    assert told["wait_mean_s"] < 0.5, "an idle replica looks again within its poll interval"
    assert pytest.approx((0.5 + 0.2) / 55, abs=0.001) == told["busy"]


def test_a_time_without_jobs_is_refused() -> None:
    with pytest.raises(BadInput, match="no job arrived or waited"):
        simulated(a_saved_cell(), scenario())


def test_a_pattern_that_names_no_machine_is_refused() -> None:
    cell = cell_of(1, machines=12)

    assert {"machine-1", "machine-10", "machine-11", "machine-12"} == drained_names(
        cell, ["machine-1*"]
    )
    with pytest.raises(BadInput, match="no machine is named 'rack-\\*'"):
        drained_names(cell, ["machine-1", "rack-*"])


def test_rules_are_those_of_each_replicas_last_transactions() -> None:
    schedulers = (
        a_scheduler(replica="0", last_s=9),
        a_scheduler(replica="0", rule=SEQUENCE, last_s=20),
        a_scheduler(replica="1", last_s=30),
        a_scheduler("service", last_s=30),
    )

    told = rules_of(a_saved_cell(schedulers=schedulers))
    assert {"batch": (SEQUENCE, FIT), "service": (FIT,)} == told


def test_paces_are_means_of_what_replicas_reported() -> None:
    facts = {
        "totals": {
            "tries": 10,
            "thought_s": 5.0,
            "refreshes": 4,
            "refresh_s": 0.2,
            "transactions": 5,
            "commit_useful_s": 0.3,
            "commit_wasted_s": 0.2,
        }
    }
    cell = a_saved_cell(
        schedulers=(a_scheduler(), a_scheduler("service")),
        processes=(a_process(facts=facts), a_process("nodes", facts={"speedup": 4})),
    )

    assert {"batch": Pace(decision=DecisionTime(job_s=0.5), refresh_s=0.05, commit_s=0.1)} == (
        paces_of(cell)
    )
    assert 4.0 == speedup_of(cell)
    assert 1.0 == speedup_of(a_saved_cell(processes=(a_process("nodes", facts={"speedup": "x"}),)))


def test_a_commit_takes_its_time_and_all_else_that_of_a_refresh() -> None:
    assert 0.2 == PACE.latency(Commit(a_transaction()))
    assert 0.1 == PACE.latency(Refresh())


def test_what_ran_is_evicted_only_by_a_higher_precedence_and_queues_again() -> None:
    cell = cell_of(1, machines=1, cores=4)
    waiting = a_saved_job(
        9, a_spec(cpu_milli=4_000), state=State.PENDING, unplaced=((0, 1),), submitted_s=-5
    )
    told = simulated(replace(cell, jobs=(*cell.jobs, waiting)), scenario())

    assert (1, 0, 0.0) == (
        told["batch"]["jobs"],
        told["batch"]["jobs_placed"],
        told["tasks_evicted"],
    ), "the one that waited has the place, and is not counted: it was submitted before"
