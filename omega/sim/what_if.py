"""What if: the time of a saved cell simulated, as it was or otherwise.

Goal     Try a change of a cell on what the cell has just done, with the processes that run live.
Promise  The simulation is `LiveRun`. What a scenario does not change is as it was: schedulers and
         their rules, what deciding and commits took, quotas, machines and their states. The same
         scenario and seed give the same result.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.sim.live_run; omega.sim.past.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from omega.config import SPEEDUP_MAX, SPEEDUP_MIN
from omega.errors import BadInput
from omega.framework.effects import Commit, Effect
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.lifecycle.states import State
from omega.metrics.facts import merge, number_in
from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.machines import Machines, MachineState
from omega.ordering.tenants import TenantTree
from omega.reports.processes import NODES
from omega.reports.what_happened import JobSeen, Judged, measures
from omega.sim.experiment import Advance, Architecture, Experiment
from omega.sim.live_run import LiveRun, Surroundings, SyncConfig
from omega.sim.past import Past, past_of
from omega.sim.virtual import Latency, ignore_it
from omega.sim.virtual_cell import VirtualCell
from omega.store.name_pattern import matches
from omega.store.saved.cell import SavedCell
from omega.store.status import JobStatus
from omega.workload.arrivals import MS_PER_S


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long one kind of scheduler took, on average."""

    decision: DecisionTime
    refresh_s: float = 0.0
    """Of a refresh, and of any other call: of those nobody reports how long they take."""
    commit_s: float = 0.0

    def latency(self, effect: Effect) -> float:
        """Return the seconds that the store takes to answer."""
        return self.commit_s if isinstance(effect, Commit) else self.refresh_s


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """How a saved cell is simulated."""

    rules: Mapping[str, tuple[ConflictRule, ...]]
    """By kind of scheduler, the rule of each of its replicas."""
    paces: Mapping[str, Pace]
    sync: SyncConfig = field(default_factory=SyncConfig)
    precedence_gap: int
    speedup: float = 1.0
    machines_added: int = 0
    drained: frozenset[str] = frozenset()
    """Names of machines that take no claim."""
    gangs: bool = False
    """Whether each job is placed either whole or not at all."""


def rules_of(cell: SavedCell) -> dict[str, tuple[ConflictRule, ...]]:
    """Return the rule of each replica, by kind, as recorded of its last transactions."""
    last: dict[tuple[str, str], tuple[int, ConflictRule]] = {}
    for one in cell.schedulers:
        whose = (one.kind, one.replica)
        last[whose] = max(last.get(whose, (-1, one.rule)), (one.last_ms, one.rule), key=_first)
    rules: dict[str, tuple[ConflictRule, ...]] = {}
    for (kind, _), (_, rule) in sorted(last.items(), key=lambda each: each[0]):
        rules[kind] = (*rules.get(kind, ()), rule)
    return rules


def paces_of(cell: SavedCell) -> dict[str, Pace]:
    """Return how long deciding on a job, a refresh and a commit took, by kind that reported it."""
    paces = {}
    for kind in {one.kind for one in cell.schedulers}:
        totals: Mapping[str, Any] = merge(
            *(one.facts for one in cell.processes if one.kind == kind)
        )["totals"]
        if totals.get("tries"):
            commit_s = totals.get("commit_useful_s", 0.0) + totals.get("commit_wasted_s", 0.0)
            paces[kind] = Pace(
                decision=DecisionTime(job_s=totals.get("thought_s", 0.0) / totals["tries"]),
                refresh_s=totals.get("refresh_s", 0.0) / max(1, totals.get("refreshes", 0)),
                commit_s=commit_s / max(1, totals.get("transactions", 0)),
            )
    return paces


def speedup_of(cell: SavedCell) -> float:
    """Return the speed-up that virtual nodes reported; 1 if there were none."""
    told = [number_in(one.facts, "speedup") for one in cell.processes if one.kind == NODES]
    known = [one for one in told if one is not None and SPEEDUP_MIN <= one <= SPEEDUP_MAX]
    return float(known[0]) if known else 1.0


def simulate(
    cell: SavedCell,
    scenario: Scenario,
    make: Callable[[str], Scheduler],
    *,
    seed: int,
    advance: Advance = ignore_it,
) -> dict[str, Any]:
    """Simulate; return the measures by kind, and those of the whole cell.

    Raises BadInput if nothing is left to simulate, and InvariantBroken for a bug.
    """
    past = past_of(cell, sorted(scenario.rules), speedup=scenario.speedup)
    past = _with_machines(past, scenario.machines_added)
    if not past.workload.arrivals:
        raise BadInput("no job arrived or waited in this time")
    run = LiveRun(
        _experiment(past, scenario, make, seed),
        scenario.sync,
        advance,
        surroundings=Surroundings(
            latencies={kind: _latency(pace) for kind, pace in scenario.paces.items()},
            rules=scenario.rules,
            speedup=scenario.speedup,
            prepare=lambda virtual: _prepare(virtual, past, cell, scenario),
        ),
    )
    result = run.finish()
    return {
        **{
            kind: _measured(run, kind, run.arrived[past.waited :]) for kind in sorted(run.processes)
        },
        "utilisation": result.utilisation,
        "tasks_evicted": result.tasks_evicted + result.start_tasks_evicted,
        "left_out": dict(past.left_out),
    }


def _first(one: tuple[int, ConflictRule]) -> int:
    return one[0]


def _latency(pace: Pace) -> Latency:
    return pace.latency


def _experiment(
    past: Past, scenario: Scenario, make: Callable[[str], Scheduler], seed: int
) -> Experiment:
    return Experiment(
        workload=past.workload,
        architecture=Architecture.SHARED_STATE,
        scheduler=make,
        decision_times={kind: pace.decision for kind, pace in scenario.paces.items()},
        schedulers={kind: len(rules) for kind, rules in scenario.rules.items()},
        precedence_gap=scenario.precedence_gap,
        gangs=scenario.gangs,
        start_queues_again=True,
        horizon_s=past.horizon_s,
        seed=seed,
    )


def _with_machines(past: Past, added: int) -> Past:
    """Return the past with more machines: copies of those that are there, in their order."""
    if not added:
        return past
    machines = past.workload.machines
    # Evenly over all machines, so that each shape and rack gets its share.
    rows = np.linspace(0, len(machines), added, endpoint=False).astype(int).tolist()
    more = Machines(
        (*machines.names, *(f"added-{number}" for number in range(1, added + 1))),
        np.concatenate([machines.capacity, machines.capacity[rows]]),
        {
            name: [*values, *(values[row] for row in rows)]
            for name, values in machines.attributes.items()
        },
    )
    return replace(
        past,
        workload=replace(past.workload, machines=more),
        state=(*past.state, *[MachineState.OPEN] * added),
    )


def _prepare(virtual: VirtualCell, past: Past, cell: SavedCell, scenario: Scenario) -> None:
    """Set quotas, tenants, and the states of machines, once the start state runs."""
    for quota in cell.quotas:
        virtual.store.set_quota(quota)
    tree = TenantTree(cell.tenants)
    for tenant in sorted(cell.tenants, key=lambda one: len(tree.path(one.name))):  # parents first
        virtual.store.set_tenant(tenant)
    names = past.workload.machines.names
    states: dict[MachineState, list[int]] = {}
    for number, (name, state) in enumerate(zip(names, past.state, strict=True), start=1):
        drained = name in scenario.drained and state is MachineState.OPEN
        states.setdefault(MachineState.DRAINING if drained else state, []).append(number)
    for state, machines in states.items():
        if state is not MachineState.OPEN:
            virtual.store.set_state(integers(machines), state)


def _measured(run: LiveRun, kind: str, submitted: Sequence[JobStatus]) -> dict[str, Any]:
    """Return the measures of a kind; its jobs are those that were submitted in the time."""
    facts = merge(*(each.process.fold.facts() for each in run.processes[kind]))
    totals: Mapping[str, Any] = facts["totals"]
    return measures(
        schedulers=len(run.processes[kind]),
        jobs=[_seen(job) for job in submitted if job.scheduler == kind],
        judged=Judged(
            claims=totals.get("claims", 0),
            claims_refused=totals.get("claims_refused", 0),
            job_transactions=totals.get("job_transactions", 0),
            job_transactions_conflicted=totals.get("job_transactions_conflicted", 0),
        ),
        busy=facts["measures"]["busy"],
    )


def _seen(job: JobStatus) -> JobSeen:
    waited_ms = None if job.first_leased_ms is None else job.first_leased_ms - job.submitted_ms
    return JobSeen(
        wait_s=None if waited_ms is None else waited_ms / MS_PER_S,
        is_placed=job.placed == job.tasks,
        is_parked=job.state is State.PARKED,
    )


def drained_names(cell: SavedCell, patterns: Sequence[str]) -> frozenset[str]:
    """Return the names of machines that are named; a star stands for any text.

    Raises BadInput for one that names none.
    """
    found: set[str] = set()
    for pattern in patterns:
        named = {name for name in cell.machines.machines.names if matches(name, pattern)}
        if not named:
            raise BadInput(f"no machine is named {pattern!r}", field="--drain")
        found |= named
    return frozenset(found)
