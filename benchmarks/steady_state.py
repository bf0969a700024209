"""One contest: several schedulers with the same settings on one cell, in steady state.

Jobs arrive at a fixed rate for each scheduler, whatever schedulers do: a scheduler with longer
decisions is busier, and may fall behind. Figures are counted from the end of the warm-up.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.churn import Churn
from benchmarks.postgres.statements import count_evicted, count_refused, count_transactions
from benchmarks.rival import MS_PER_S, Role
from benchmarks.workers import ClientProcess
from omega.clock import Clock
from omega.errors import InvariantBroken, OmegaError
from omega.framework.scheduler import DecisionTime
from omega.metrics.facts import Facts, merge
from omega.model.arrays import Ids
from omega.model.claims import ConflictRule, Granularity
from omega.model.resources import Kind
from omega.store.feeding import Feeder
from omega.store.loading import place_prefill
from omega.store.postgres.connection import Link
from omega.store.protocols import Store
from omega.workload.arrivals import Arrival, Workload

FULL: Final = 99
"""The fill of a full cell, where schedulers compete for the room of each ended task."""
AS_RECORDED: Final = 0
"""The fill of a trace, which has its own."""
TICK_S: Final = 0.02
TIMEOUT_S: Final = 60.0
"""Time beyond a contest's own to wait for its first task."""
SUMS: Final = ("totals", "waits", "view_ages")


@dataclass(frozen=True, kw_only=True)
class Point:
    """The settings of one run."""

    schedulers: int = 16
    """Schedulers of each kind that there are jobs for."""
    rule: str = ConflictRule.FIT.value
    granularity: str = Granularity.INCREMENTAL.value
    t_job_ms: int = 500
    t_task_ms: int = 5
    fill: int = 80
    """Percentage of the places in the cell that are taken."""
    gap_ms: int = 0
    """Time between two refreshes of a view; 0 refreshes before each attempt."""

    @property
    def decision_time(self) -> DecisionTime:
        """The time of a decision."""
        return DecisionTime(job_s=self.t_job_ms / MS_PER_S, task_s=self.t_task_ms / MS_PER_S)

    def role(self, kind: str, replica: int, *, number: int, of: int, seed: int) -> Role:
        """Return the role of one of these schedulers: number `number` of `of`, from 0."""
        assert 0 <= number < of
        return Role(
            kind=kind,
            replica=str(replica),
            rule=self.rule,
            granularity=self.granularity,
            t_job_ms=self.t_job_ms,
            t_task_ms=self.t_task_ms,
            gap_ms=self.gap_ms,
            seed=seed,
        )

    def decision_s(self, arrival: Arrival) -> float:
        """Return how long one decision on a whole job takes."""
        return self.decision_time.of(arrival.spec.tasks)


@dataclass(frozen=True, eq=False)
class Scenario:
    """The scenario of one contest: its work, its schedulers, and what ends tasks."""

    workload: Workload
    kinds: tuple[str, ...]
    """The kind of each scheduler."""
    churn: Callable[[Store], Churn]


@dataclass(frozen=True, eq=False)
class Tally:
    """The result of a contest."""

    facts: Facts
    """Facts of all schedulers together, after the warm-up."""
    seconds: float
    offered: float
    """Busyness that the arrived jobs would have caused without conflicts."""
    filled: float
    """Share of the cell's CPU that was taken at the end."""
    waiting: int
    """Jobs that wait for a decision at the end."""
    parked: int
    placed: int
    """Tasks placed from the beginning to the last commit, with those of the start state."""
    transactions: int
    """Transactions in the same time."""
    refused: int
    """Refused claims in the same time."""

    @property
    def conflicted(self) -> tuple[int, int]:
        """(conflicted, all) transactions, counted per job."""
        totals = self.facts["totals"]
        names = "job_transactions_conflicted", "job_transactions"
        conflicted, judged = (int(totals.get(name, 0)) for name in names)
        return conflicted, judged

    def row(self) -> dict[str, Any]:
        """Return the result for a document, by the names of the paper's measures."""
        facts, totals, measured = self.facts, self.facts["totals"], self.facts["measures"]
        thought_s = [totals.get(f"thought_{what}_s", 0.0) for what in ("wasted", "useful")]
        first_tries = sum(facts["waits"].values())
        committing_s = sum(totals.get(f"commit_{what}_s", 0.0) for what in ("wasted", "useful"))
        conflicted, judged = self.conflicted
        return {
            "conflict_fraction": _rounded(measured["conflict_fraction"]),
            "claim_conflict_fraction": _rounded(measured["claim_conflict_fraction"]),
            "transactions": judged,
            "transactions_conflicted": conflicted,
            "refused": {name: int(n) for name, n in totals.get("refused", {}).items() if n},
            "busy": _rounded(measured["busy"]),
            "busy_without_conflicts": _rounded(self.offered),
            "thought_wasted": _rounded(_ratio(thought_s[0], sum(thought_s))),
            "wait_mean_s": _rounded(_ratio(totals.get("waits_s", 0.0), first_tries)),
            "wait_p90_s": _rounded(measured["wait_p90_s"]),
            "jobs_waiting": self.waiting,
            "jobs_parked": self.parked,
            "tasks_per_s": round(totals.get("tasks_placed", 0) / self.seconds, 1),
            "jobs_per_s": round(totals.get("jobs_placed", 0) / self.seconds, 1),
            "filled": _rounded(self.filled),
            "commit_ms": _rounded(_ratio(1_000 * committing_s, totals.get("transactions", 0))),
            "view_age_p50_s": _rounded(measured["view_age_p50_s"]),
            "seconds": round(self.seconds, 2),
            "store_faults": int(totals.get("store_faults", 0)),
        }


class Rivals:
    """The processes that run schedulers, contest after contest."""

    def __init__(self, processes: Sequence[ClientProcess], url: str) -> None:
        self._processes = processes
        self._url = url

    @contextmanager
    def at_work(
        self, point: Point, kinds: Sequence[str], seed: int
    ) -> Iterator["RunningSchedulers"]:
        """Start one scheduler for each of these kinds; stop all at the end of the block."""
        mine = self._processes[: len(kinds)]
        replicas: Counter[str] = Counter()
        try:
            for number, (process, kind) in enumerate(zip(mine, kinds, strict=True)):
                role = point.role(kind, replicas[kind], number=number, of=len(mine), seed=seed)
                replicas[kind] += 1
                process.send("start", url=self._url, role=asdict(role))
            for process in mine:
                process.receive()
            yield RunningSchedulers(mine)
        finally:
            _ask(mine, "stop")


class RunningSchedulers:
    """The schedulers of the current contest."""

    def __init__(self, processes: Sequence[ClientProcess]) -> None:
        self._processes = processes

    def facts(self) -> list[Facts]:
        """Return the facts of each since the start."""
        return [answer["facts"] for answer in _ask(self._processes, "facts")]

    def stop(self) -> Facts:
        """Stop all; return the facts of all together."""
        return merge(*(answer["facts"] for answer in _ask(self._processes, "stop")))


@contextmanager
def rivals(url: str, number: int) -> Iterator[Rivals]:
    """Yield so many processes that can schedule on this database."""
    command = sys.executable, "-m", "benchmarks.rival"
    with ExitStack() as stack:
        processes = [stack.enter_context(ClientProcess(*command)) for _ in range(number)]
        yield Rivals(processes, url)


@dataclass(kw_only=True, eq=False)
class Testbed:
    """The cell on which contests are held; it is empty at the start of each."""

    rivals: Rivals
    store: Store
    link: Link
    machines: Ids
    clock: Clock
    go_on: Callable[[], None]
    """Raises KeyboardInterrupt if a stop was asked for."""

    def hold(
        self, point: Point, scenario: Scenario, *, warm_up_s: float, seconds: float, seed: int
    ) -> Tally:
        """Fill the cell, run the schedulers, and check that the cell holds what was granted."""
        churn = scenario.churn(self.store)
        there = place_prefill(
            self.store, scenario.workload.prefill, self.machines, clock=self.clock
        )
        with self.rivals.at_work(point, scenario.kinds, seed) as schedulers:
            match_ = _SteadyState(self, scenario, churn)
            match_.go_on(until=warm_up_s)
            before, began_s = schedulers.facts(), match_.elapsed_s
            match_.go_on(until=began_s + seconds)
            while not merge(*(after := schedulers.facts()))["totals"].get("tasks_placed"):
                match_.go_on(until=match_.elapsed_s + TICK_S)
                if match_.elapsed_s > began_s + seconds + TIMEOUT_S:
                    raise OmegaError(f"no task found a place in {TIMEOUT_S:g} s")
            ended_s, use = match_.elapsed_s, self.store.use()
            final = schedulers.stop()["totals"]
        cpu = Kind.CPU_MILLI.column
        tally = Tally(
            facts=since(before, after),
            seconds=ended_s - began_s,
            offered=_offered(point, scenario, began_s, ended_s),
            filled=use.used[cpu] / use.capacity[cpu],
            waiting=use.jobs_waiting,
            parked=sum(use.parked_by_reason.values()),
            placed=there.placed + int(final.get("tasks_placed", 0)),
            transactions=there.transactions + int(final.get("transactions", 0)),
            refused=there.tasks - there.placed + int(final.get("claims_refused", 0)),
        )
        self._check(tally, churn)
        return tally

    def _check(self, tally: Tally, churn: Churn) -> None:
        """Raise InvariantBroken if an invariant is broken or the cell lacks what was granted."""
        if broken := self.store.verify():
            story = [f"{one.invariant}: {one.subject}, {one.detail}" for one in broken[:20]]
            raise InvariantBroken("the cell is broken", story=story)
        live = self.store.use().live_allocations
        evicted = count_evicted(self.link)
        if tally.placed != live + churn.ended + evicted:
            raise InvariantBroken(
                f"{tally.placed} granted, {live} run, {churn.ended} ended, {evicted} evicted"
            )
        told = (tally.transactions, tally.refused)
        recorded = (count_transactions(self.link), count_refused(self.link))
        if told != recorded:
            raise InvariantBroken(f"{told} transactions and claims refused, {recorded} on record")


class _SteadyState:
    """A running contest: jobs are submitted, tasks are ended."""

    def __init__(self, testbed: Testbed, scenario: Scenario, churn: Churn) -> None:
        self._testbed = testbed
        self._feeder = Feeder(scenario.workload.arrivals, testbed.store)
        self._churn = churn
        self._began = testbed.clock.now()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return self._testbed.clock.now() - self._began

    def go_on(self, *, until: float) -> None:
        """Submit due jobs and end due tasks until so many seconds after the beginning."""
        while (elapsed_s := self.elapsed_s) < until:
            self._testbed.go_on()
            self._feeder.feed(elapsed_s)
            self._churn.step()
            self._testbed.clock.sleep(TICK_S)


def since(before: Sequence[Facts], after: Sequence[Facts]) -> Facts:
    """Return the facts of all processes together, between two moments."""
    return merge(*map(_difference, before, after))


def _ask(processes: Sequence[ClientProcess], do: str) -> list[dict[str, Any]]:
    for process in processes:
        process.send(do)
    return [process.receive() for process in processes]


def _difference(before: Facts, after: Facts) -> Facts:
    lived = {name: after[name] - before[name] for name in ("elapsed_s", "process_s")}
    return {**lived, **{name: _less(after[name], before[name]) for name in SUMS}}


def _less(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Subtract numbers, and objects of numbers name by name."""
    return {
        name: _less(value, before.get(name, {}))
        if isinstance(value, Mapping)
        else value - before.get(name, 0)
        for name, value in after.items()
    }


def _offered(point: Point, scenario: Scenario, began_s: float, ended_s: float) -> float:
    came = [one for one in scenario.workload.arrivals if began_s <= one.submit_s < ended_s]
    work_s = sum(map(point.decision_s, came))
    return work_s / (len(scenario.kinds) * (ended_s - began_s))


def _ratio(part: float, whole: float) -> float | None:
    """Divide; None if `whole` is 0."""
    return part / whole if whole else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
