"""Live schedulers that read the cell by turns, before and after one of them is killed.

Replicas of the parsync scheduler place a steady stream of jobs on one cell. Half-way one of them is
killed. In one run they lease turns to read the parts of the cell; in the other each reads all
changes before each attempt. The benchmark compares the rows read, the age of views, and conflicts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke
from benchmarks.postgres.statements import connect
from benchmarks.postgres.statements import store as store_of
from benchmarks.postgres.turns import held
from benchmarks.turn_counts import COUNTED, Counts
from omega.errors import InvariantBroken, OmegaError
from omega.model.claims import ConflictRule
from omega.model.jobs import JobSpec, TaskGroup
from omega.plots.picture import Picture, series
from omega.processes.supervisor import (
    ChildSpec,
    ChildState,
    RestartPolicy,
    Supervisor,
    omega_command,
)
from omega.store.postgres.connection import Link
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.terminal.options import number_option
from omega.workload.demo_cell import demo_machines

KIND: Final = "parsync"
WAYS: Final = ("turns", "delta")
PHASES: Final = ("before", "after")
MACHINES_MAX: Final = 200_000
SCHEDULERS_MAX: Final = 16
LEASE_MS: Final = 2_000
TICK_S: Final = 0.02
WAIT_S_MAX: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Turns:
    """The parameters of the benchmark."""

    machines: int = 100_000
    schedulers: int = 8
    gap_s: float = 2.0
    jobs_per_s: float = 32.0
    tasks: int = 20
    """Tasks of a job."""
    strategy: str = "quality-first"
    rule: str = ConflictRule.SEQUENCE.value
    """By sequence, a claim is refused if its machine has changed since it was read. Refusals then
    show how stale views are, even on an empty cell."""
    seconds: float = 120.0
    """Time of both ways together."""
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Measure both ways, one after the other."""
        rows: list[dict[str, Any]] = []
        settled: dict[str, float | None] = {}
        tasks = 0
        for way in WAYS:
            with stage.database() as url:
                self._make_cell(url)
                mine, settled[way], placed = self._play(stage, url, way)
                rows += mine
                tasks += placed
        summary = {"settled_s": settled["turns"]}
        digest = {"tasks live": tasks, "violations": 0}
        return Findings(self._finding(rows, summary), rows, summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return one line per way and half."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("way", "half"):
            table.add_column(header)
        for header in ("s", "reads", "rows", "MB", "claims", "refused", "oldest s"):
            table.add_column(header, justify="right")
        for row in findings.rows:
            table.add_row(
                row["way"],
                row["half"],
                f"{row['seconds']:,.1f}",
                *(f"{row[name]:,}" for name in ("refreshes", "rows")),
                f"{row['bytes'] / 1e6:,.1f}",
                f"{row['claims']:,}",
                f"{row['conflict_fraction']:.3f}",
                f"{row['oldest_s']:.2f}",
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return rows read, claims refused and view ages by half."""
        note = (
            f"{self.schedulers} replicas on {self.machines:,} machines, one killed half-way;"
            f" gap {self.gap_s:g} s"
        )
        picture = Picture(findings.finding, columns=3, note=note)
        told: tuple[tuple[str, Callable[[Mapping[str, Any]], float]], ...] = (
            ("rows read", lambda row: row["rows"]),
            ("fraction of claims refused", lambda row: row["conflict_fraction"]),
            ("oldest part that was read, s", lambda row: row["oldest_s"]),
        )
        for panel, (label, value) in zip(picture.panels[0], told, strict=True):
            for number, way in enumerate(WAYS):
                values = [value(row) for row in findings.rows if row["way"] == way]
                series(panel, number, list(enumerate(values)), way)
            panel.set_ylabel(label)
            panel.set_ylim(bottom=0)
            panel.set_xlim(-0.3, len(PHASES) - 0.7)
            panel.set_xticks(range(len(PHASES)), [f"{half} the death" for half in PHASES])
        return picture

    def _make_cell(self, url: str) -> None:
        migrate(url)
        with closing(store_of(url)) as store:
            store.add_machines(demo_machines(self.machines, np.random.default_rng(self.seed)))

    def _play(
        self, stage: Stage, url: str, way: str
    ) -> tuple[list[dict[str, Any]], float | None, int]:
        """Submit jobs for the time of this way; kill a replica half-way.

        Returns a row for each half, the time until the survivors held all turns, and the number
        of tasks placed.
        """
        half_s = self.seconds / len(WAYS) / len(PHASES)
        with (
            closing(connect(url)) as link,
            closing(store_of(url)) as store,
            self._at_work(stage, url, way) as supervisor,
        ):
            play = _Play(self, stage, supervisor, link, store, way)
            play.wait_until_all_work()
            began = play.counts()
            play.feed(half_s)
            between = play.counts()
            play.kill_one()
            play.feed(half_s)
            ended = play.counts()
            placed = play.check()
        told = [
            {"way": way, "half": half, **later.since(earlier, play.killed)}
            for half, earlier, later in zip(PHASES, (began, between), (between, ended), strict=True)
        ]
        return told, play.settled_s, placed

    @contextmanager
    def _at_work(self, stage: Stage, url: str, way: str) -> Iterator[Supervisor]:
        """Start the replicas as an operator does, and end them afterwards."""
        reading = ["--sync=delta"]
        if way == "turns":
            reading = ["--sync=partitioned", "--turn=auto", f"--gap={self.gap_s:g}"]
        command = ["scheduler", "run", KIND, f"--set=strategy={self.strategy}"]
        command += [f"--rule={self.rule}", *reading]
        specs = [
            ChildSpec(f"{KIND}-{name}", omega_command(*command, f"--replica={name}"))
            for name in range(self.schedulers)
        ]
        with Supervisor(
            specs,
            log_dir=stage.settings.data_dir / "logs" / "benchmark",
            environment={
                "OMEGA_DATABASE_URL": url,
                "OMEGA_DATA_DIR": str(stage.settings.data_dir),
                "OMEGA_LEASE_MS": str(LEASE_MS),
                "OMEGA_HEARTBEAT_INTERVAL_MS": str(LEASE_MS // 4),
                "OMEGA_RESCUE_INTERVAL_MS": str(LEASE_MS // 4),
            },
            clock=stage.clock,
            policy=RestartPolicy(delay_first_s=1e6, delay_max_s=1e6),  # no restart
        ) as supervisor:
            yield supervisor

    def _finding(self, rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> str:
        told = {}
        for way in WAYS:
            read, refreshes, refused, claims = (
                sum(row[name] for row in rows if row["way"] == way)
                for name in ("rows", "refreshes", "claims_refused", "claims")
            )
            told[way] = f"{read:,} rows in {refreshes:,} reads, {refused / max(1, claims):.3f}"
        oldest_s = max(row["oldest_s"] for row in rows if row["way"] == "turns")
        return (
            f"{self.settled(summary)}; no part that a survivor read was older than about"
            f" {oldest_s:.2f} s at a gap of {self.gap_s:g} s; the same jobs took {told['turns']} of"
            f" the claims refused, and {told['delta']} by deltas"
        )

    def settled(self, summary: Mapping[str, Any]) -> str:
        """Return a phrase on the time until the survivors held all turns."""
        return (
            f"{summary['settled_s']:.1f} s after one of {self.schedulers} replicas was killed, the"
            f" others each held a turn of {self.schedulers - 1}"
        )


class _Play:
    """The replicas of one run."""

    def __init__(
        self,
        about: Turns,
        stage: Stage,
        supervisor: Supervisor,
        link: Link,
        store: PostgresStore,
        way: str,
    ) -> None:
        self._about = about
        self._stage = stage
        self._supervisor = supervisor
        self._link = link
        self._store = store
        self._way = way
        self._others = about.schedulers - 1
        self._fed = 0
        self.killed = ""
        """The replica that was killed; empty before."""
        self._killed_s = 0.0
        """The time of the kill."""
        self.settled_s: float | None = None
        """Seconds from the kill until the others held all turns."""

    def wait_until_all_work(self) -> None:
        """Wait until every replica has reported and, in the way `turns`, holds a turn."""
        replicas = self._about.schedulers
        self._wait(lambda: len(self._store.reports()) == replicas, "not all schedulers came up")
        self._wait(lambda: self._are_shared_out(replicas), "turns were not shared out")

    def feed(self, seconds: float) -> None:
        """Submit jobs at a steady rate, then wait until all are placed."""
        clock = self._stage.clock
        began, before = clock.now(), self._fed
        while (passed := clock.now() - began) < seconds:
            self._submit_until(before, passed)
            self._look()
            clock.sleep(TICK_S)
        self._submit_until(before, seconds)
        self._wait(lambda: self._placed() == self._fed * self._about.tasks, "jobs were left over")
        if self.killed:
            self._wait(lambda: self.settled_s is not None, "turns were not shared out again")

    def kill_one(self) -> None:
        """Kill a replica without a warning."""
        child = self._supervisor.children[0]
        assert child.process is not None
        self.killed = child.spec.name.removeprefix(f"{KIND}-")
        child.process.kill()
        self._killed_s = self._stage.clock.now()

    def counts(self) -> Counts:
        """Return the counts of all replicas, from reports that are newer than this call."""
        asked = self._stage.clock.now()

        def are_new() -> bool:
            since_ms = (self._stage.clock.now() - asked) * 1_000
            reports = [it for it in self._store.reports() if it.replica != self.killed]
            return all(report.seen_ms_ago < since_ms for report in reports)

        self._wait(are_new, "not all schedulers reported")
        totals: Counter[str] = Counter()
        ages: dict[str, Counter[str]] = {}
        for report in self._store.reports():
            facts: Mapping[str, Any] = report.facts
            totals.update({name: facts["totals"].get(name, 0) for name in COUNTED})
            ages[report.replica] = Counter(facts["view_ages"])
        return Counts(self._stage.clock.now(), totals, ages)

    def check(self) -> int:
        """Return the number of live tasks; raise InvariantBroken if an invariant is broken."""
        if violations := self._store.verify():
            raise InvariantBroken("the cell is broken", story=[str(one) for one in violations[:20]])
        return self._placed()

    def _placed(self) -> int:
        return self._store.use().live_allocations

    def _job(self) -> JobSpec:
        group = TaskGroup(tasks=self._about.tasks, cpu_milli=1_000)
        return JobSpec(name="stream", scheduler=KIND, groups=(group,))

    def _submit_until(self, before: int, passed_s: float) -> None:
        due = before + int(passed_s * self._about.jobs_per_s) - self._fed
        if due > 0:
            self._store.submit([self._job()] * due)
            self._fed += due

    def _are_shared_out(self, replicas: int) -> bool:
        if self._way != "turns":
            return True
        expected = {(number, replicas) for number in range(replicas)}
        return set(held(self._link).values()) == expected

    def _wait(self, fact: Callable[[], bool], otherwise: str) -> None:
        clock = self._stage.clock
        began = clock.now()
        while not fact():
            self._look()
            if clock.now() - began > WAIT_S_MAX:
                raise OmegaError(f"{otherwise} within {WAIT_S_MAX:g} s")
            clock.sleep(TICK_S)

    def _look(self) -> None:
        """Raise OmegaError if a survivor does not run; record when turns are held again."""
        if self.killed and self.settled_s is None and self._are_shared_out(self._others):
            self.settled_s = round(self._stage.clock.now() - self._killed_s, 3)
        self._stage.go_on()
        self._supervisor.look()
        for child in self._supervisor.children:
            if child.spec.name != f"{KIND}-{self.killed}" and child.state != ChildState.RUNNING:
                raise OmegaError(
                    f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
                )


SMOKE: Final = Turns(machines=60, schedulers=2, gap_s=0.5, jobs_per_s=10.0, tasks=2, seconds=4.0)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Machines of the cell.")
    ] = Turns.machines,
    schedulers: Annotated[
        int, typer.Option(min=2, max=SCHEDULERS_MAX, metavar="N", help="Scheduler processes.")
    ] = Turns.schedulers,
    gap: Annotated[
        float,
        number_option(
            lowest=0.1, highest=60, metavar="S", help="In so many seconds each part is read once."
        ),
    ] = Turns.gap_s,
    jobs: Annotated[
        float, number_option(lowest=0.1, highest=1_000, metavar="R", help="Jobs a second.")
    ] = Turns.jobs_per_s,
    tasks: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="Tasks of a job.")
    ] = Turns.tasks,
    strategy: Annotated[str, typer.Option(help="Of the parsync scheduler.")] = Turns.strategy,
    rule: Annotated[
        ConflictRule, typer.Option(help="When a claim conflicts.")
    ] = ConflictRule.SEQUENCE,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """What live schedulers read by turns, and through the death of one, beside deltas.

    Takes three minutes.
    """
    benchmark = Turns(
        machines=machines,
        schedulers=schedulers,
        gap_s=gap,
        jobs_per_s=jobs,
        tasks=tasks,
        strategy=strategy,
        rule=rule.value,
        seed=seed,
    )
    benchmark = SMOKE if smoke else benchmark
    benchmark = benchmark if seconds is None else replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
