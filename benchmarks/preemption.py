"""Preemption live: services that arrive on a cell which batch tasks have filled.

Batch schedulers, virtual nodes and one or two replicas of the service scheduler run as processes.
Service jobs of high precedence arrive together, one for each replica, and evict batch tasks. When
their tasks end, the room is free again, and the evicted jobs become whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, numbers
from benchmarks.postgres import statements
from benchmarks.postgres.preemption import EvictedJob, ServiceJob, evicted_jobs, service_jobs
from omega.errors import BadInput, InvariantBroken, OmegaError
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import Ids
from omega.model.jobs import PRECEDENCE_GAP, JobSpec, TaskGroup
from omega.plots.picture import Picture, series
from omega.processes.supervisor import (
    ChildSpec,
    ChildState,
    RestartPolicy,
    Supervisor,
    omega_command,
)
from omega.reports.wording import things
from omega.store.loading import place_prefill
from omega.store.postgres.connection import Link
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.terminal.options import number_option
from omega.terminal.progress import progress_bar
from omega.workload.arrivals import BATCH, SERVICE, Prefill
from omega.workload.synthetic import Shape, uniform_machines

HIGH: Final = 100
"""The precedence of services."""
EQUALS: Final = 10
"""One batch job in so many has the precedence of services, and must keep its tasks."""
TASKS_A_JOB: Final = 100
"""Tasks of a batch job."""
BATCH_SCHEDULERS: Final = 2
SHAPE: Final = Shape()
TICK_S: Final = 0.05
WAIT_S_MAX: Final = 180.0
MACHINES_MAX: Final = 50_000
SERVICES_MAX: Final = 8
FIGURES: Final = {
    "attempts": "attempts a job",
    "commits": "commits a job",
    "conflict_fraction": "conflict fraction",
    "refused_per_task": "claims refused a task",
    "victims_per_task": "victims a task",
    "touched": "equals evicted",
    "placed_s": "s until placed",
    "jobs_evicted": "jobs evicted",
    "whole_mean_s": "s until whole",
    "whole_p90_s": "p90",
    "whole_max_s": "max",
    "after_room_mean_s": "after room",
    "after_room_max_s": "max of that",
}
"""Figures of a round, with their titles."""


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """The parameters of the benchmark."""

    machines: int = 1_000
    tasks_a_machine: int = 8
    service_tasks: int = 500
    service_s: float = 10.0
    """How long a task of a service runs."""
    services: tuple[int, ...] = (1, 2)
    """Service replicas, and service jobs that arrive at once."""
    rounds: int = 5
    """Rounds for each number of services, each with a cell and a seed of its own."""
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run all rounds; after each, check the cell."""
        rows: list[dict[str, Any]] = []
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=self.rounds * len(self.services))
            for number, services in product(range(self.rounds), self.services):
                progress.update(bar, description=f"round {number + 1}, {services} services")
                with stage.database() as url:
                    rows.append(
                        {
                            "services": services,
                            "round": number,
                            **self._round(stage, url, services, number),
                        }
                    )
                progress.advance(bar)
        told = [self._told(rows, services) for services in self.services]
        digest = {
            "rounds": len(rows),
            "service tasks placed": sum(row["services"] for row in rows) * self.service_tasks,
            "tasks evicted": sum(row["tasks_evicted"] for row in rows),
            "violations": 0,
        }
        return Findings(self._finding(told), rows, {"services": told}, digest)

    def show(self, findings: Findings) -> Table:
        """Return the means over rounds, one column for each number of services."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("")
        for told in findings.summary["services"]:
            table.add_column(f"{told['services']} at once", justify="right")
        for name, title in FIGURES.items():
            spread = (told[name] for told in findings.summary["services"])
            table.add_row(title, *(f"{one['mean']:.2f} ± {one['sd']:.2f}" for one in spread))
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return times until services were placed, and until evicted jobs were whole, by round."""
        note = (
            f"{self.machines:,} machines full of {self.machines * self.tasks_a_machine:,} batch"
            f" tasks; services of {self.service_tasks} tasks that run for {self.service_s:g} s"
        )
        picture = Picture(findings.finding, columns=2, note=note)
        placed, whole = picture.panels[0]
        for number, services in enumerate(self.services):
            mine = [row for row in findings.rows if row["services"] == services]
            label = f"{things(services, 'service')} at once"
            points = [(row["round"] + 1, row["placed_s"]) for row in mine]
            series(placed, number, points, label)
            for name, stroke in (("after_room_mean_s", "-"), ("after_room_max_s", "--")):
                of = [(row["round"] + 1, row[name]) for row in mine]
                what = f"{label}, {'mean' if stroke == '-' else 'last'}"
                series(whole, number, of, what, stroke="-" if stroke == "-" else "--")
        placed.set_ylabel("from submission to the last task's place, s")
        whole.set_ylabel("from room to whole again, s")
        for panel in (placed, whole):
            panel.set_ylim(bottom=0)
            panel.set_xticks(range(1, self.rounds + 1))
            panel.set_xlabel("round")
        return picture

    def _round(self, stage: Stage, url: str, services: int, number: int) -> dict[str, Any]:
        """Fill a cell, let services arrive, and wait until all is as before; return the figures."""
        migrate(url)
        with closing(statements.connect(url)) as link, closing(statements.store(url)) as store:
            memory_gib = self.tasks_a_machine * SHAPE.memory_mib / 1_024
            machines = store.add_machines(
                uniform_machines(self.machines, cpus=self.tasks_a_machine, memory_gib=memory_gib)
            )
            tasks = self._fill(stage, store, machines, number)
            with self._at_work(stage, url, services) as supervisor:
                watch = _Watch(stage, supervisor)
                processes = BATCH_SCHEDULERS + services
                watch.wait(lambda: len(store.reports()) >= processes, "not all schedulers came up")
                store.submit([self._service()] * services)
                watch.wait(lambda: _is_over(store, link, services), "jobs were left over")
            live = store.use().live_allocations
            if violations := store.verify():
                story = [str(one) for one in violations[:20]]
                raise InvariantBroken("the cell is broken", story=story)
            if live != tasks:
                raise InvariantBroken(f"{tasks} batch tasks ran before, {live} run afterwards")
            return self._figures(service_jobs(link, SERVICE), evicted_jobs(link))

    def _fill(self, stage: Stage, store: PostgresStore, machines: Ids, number: int) -> int:
        """Place batch tasks everywhere; return how many."""
        rng = np.random.default_rng([self.seed, number])
        machine = rng.permutation(np.repeat(np.arange(len(machines)), self.tasks_a_machine))
        job, task = np.divmod(np.arange(len(machine)), TASKS_A_JOB)
        specs = tuple(
            JobSpec(
                name=f"batch-{at}",
                scheduler=BATCH,
                precedence=HIGH if at % EQUALS == EQUALS - 1 else 0,
                groups=(self._group(tasks, None),),
            )
            for at, tasks in enumerate(np.bincount(job).tolist())
        )
        shape = np.zeros(len(machine), np.intp)
        prefill = Prefill(specs, job, task, machine, shape, SHAPE.demand[np.newaxis])
        loaded = place_prefill(store, prefill, machines, clock=stage.clock)
        if loaded.placed != len(machine):
            raise InvariantBroken(f"{loaded.placed} of {len(machine)} batch tasks were placed")
        return loaded.placed

    def _service(self) -> JobSpec:
        group = self._group(self.service_tasks, round(self.service_s * 1_000))
        return JobSpec(name="service", scheduler=SERVICE, precedence=HIGH, groups=(group,))

    @staticmethod
    def _group(tasks: int, duration_ms: int | None) -> TaskGroup:
        return TaskGroup(
            tasks=tasks,
            cpu_milli=SHAPE.cpu_milli,
            memory_mib=SHAPE.memory_mib,
            duration_ms=duration_ms,
        )

    @contextmanager
    def _at_work(self, stage: Stage, url: str, services: int) -> Iterator[Supervisor]:
        """Start all processes as an operator does, and end them afterwards."""
        run = ("scheduler", "run")
        specs = [
            *(
                ChildSpec(f"{BATCH}-{name}", omega_command(*run, BATCH, f"--replica={name}"))
                for name in range(BATCH_SCHEDULERS)
            ),
            *(
                ChildSpec(f"{SERVICE}-{name}", omega_command(*run, SERVICE, f"--replica={name}"))
                for name in range(services)
            ),
            ChildSpec("nodes", omega_command("node", "simulate")),
        ]
        with Supervisor(
            specs,
            log_dir=stage.settings.data_dir / "logs" / "benchmark",
            environment={
                "OMEGA_DATABASE_URL": url,
                "OMEGA_DATA_DIR": str(stage.settings.data_dir),
                # One job a lease, so that two jobs that wait together go to two replicas.
                "OMEGA_JOBS_PER_LEASE_MAX": "1",
            },
            clock=stage.clock,
            policy=RestartPolicy(delay_first_s=1e6, delay_max_s=1e6),  # no restart
        ) as supervisor:
            yield supervisor

    def _figures(
        self, services: Sequence[ServiceJob], evicted: Sequence[EvictedJob]
    ) -> dict[str, Any]:
        """Return the figures of a round."""
        commits, conflicted = (
            sum(getattr(one, name) for one in services) for name in ("commits", "conflicted")
        )
        room_s = min(one.first_end_s for one in services)
        whole = [one.whole_s - one.evicted_s for one in evicted]
        after = [one.whole_s - room_s for one in evicted]
        lost = sum(one.tasks for one in evicted)
        above, tasks = HIGH - PRECEDENCE_GAP, len(services) * self.service_tasks
        figures = {
            "attempts": fmean(one.attempts for one in services),
            "commits": commits / len(services),
            "conflict_fraction": conflicted / max(1, commits - conflicted),
            "refused_per_task": sum(one.refused for one in services) / tasks,
            "tasks_evicted": lost,
            "victims_per_task": lost / tasks,
            "touched": sum(one.tasks for one in evicted if one.precedence > above),
            "placed_s": max(one.placed_s - one.submitted_s for one in services),
            "jobs_evicted": len(evicted),
            "whole_mean_s": fmean(whole),
            "whole_p90_s": float(np.percentile(whole, 90)),
            "whole_max_s": max(whole),
            "after_room_mean_s": fmean(after),
            "after_room_max_s": max(after),
        }
        return {name: round(value, 4) for name, value in figures.items()}

    def _told(self, rows: Sequence[Mapping[str, Any]], services: int) -> dict[str, Any]:
        """Return the means over rounds, and their standard deviations."""
        mine = [row for row in rows if row["services"] == services]
        told: dict[str, Any] = {"services": services}
        for name in FIGURES:
            values = [row[name] for row in mine]
            sd = stdev(values) if len(values) > 1 else 0.0
            told[name] = {"mean": round(fmean(values), 4), "sd": round(sd, 4)}
        return told

    def _finding(self, told: Sequence[Mapping[str, Any]]) -> str:
        parts = [
            f"{things(one['services'], 'service')} of {self.service_tasks} tasks:"
            f" placed in {one['placed_s']['mean']:.2f} s and {one['attempts']['mean']:.2f} attempts"
            f" each, {one['victims_per_task']['mean']:.2f} victims a task, conflict fraction"
            f" {one['conflict_fraction']['mean']:.2f}, equals evicted {one['touched']['mean']:g}"
            for one in told
        ]
        last = max(one["after_room_mean_s"]["mean"] for one in told)
        return f"{'; '.join(parts)}; evicted jobs are whole {last:.1f} s after there is room"


class _Watch:
    """Waits for facts while all processes run."""

    def __init__(self, stage: Stage, supervisor: Supervisor) -> None:
        self._stage = stage
        self._supervisor = supervisor

    def wait(self, fact: Callable[[], bool], otherwise: str) -> None:
        """Wait until a fact is there. Raises OmegaError if it takes too long or a process ends."""
        clock = self._stage.clock
        began = clock.now()
        while not fact():
            self._stage.go_on()
            self._supervisor.look()
            for child in self._supervisor.children:
                if child.state is not ChildState.RUNNING:
                    raise OmegaError(
                        f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
                    )
            if clock.now() - began > WAIT_S_MAX:
                raise OmegaError(f"{otherwise} within {WAIT_S_MAX:g} s")
            clock.sleep(TICK_S)


def _is_over(store: PostgresStore, link: Link, services: int) -> bool:
    """Return whether all services have ended, and no job waits."""
    ended = store.jobs(state=State.SUCCEEDED, scheduler=SERVICE)
    return len(ended) == services and not statements.has_work(link)


SMOKE: Final = Preemption(machines=30, tasks_a_machine=4, service_tasks=20, service_s=0.5, rounds=1)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Machines of the cell.")
    ] = Preemption.machines,
    tasks: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Batch tasks that fill a machine.")
    ] = Preemption.tasks_a_machine,
    service_tasks: Annotated[
        int,
        typer.Option(
            "--service-tasks",
            min=1,
            max=LIMITS.tasks_per_job_max,
            metavar="N",
            help="Tasks of a service.",
        ),
    ] = Preemption.service_tasks,
    service_s: Annotated[
        float,
        number_option(
            "--service-s", lowest=0.1, highest=3_600, metavar="S", help="How long a service runs."
        ),
    ] = Preemption.service_s,
    services: Annotated[
        str, typer.Option(metavar="N,...", help="Services that arrive at once, and their replicas.")
    ] = "1,2",
    rounds: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="For each number of services.")
    ] = Preemption.rounds,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Services that evict batch tasks on a full live cell: attempts, victims, conflicts, waits.

    Takes four minutes.
    """
    asked = Preemption(
        machines=machines,
        tasks_a_machine=tasks,
        service_tasks=service_tasks,
        service_s=service_s,
        services=numbers(services, option="--services", most=SERVICES_MAX),
        rounds=rounds,
        seed=seed,
    )
    yields = machines * tasks * (EQUALS - 1) // EQUALS
    if max(asked.services) * service_tasks > yields:
        raise BadInput(
            f"{max(asked.services)} services of {service_tasks:,} tasks find no room where"
            f" {yields:,} tasks yield",
            field="--service-tasks",
        )
    benchmark = SMOKE if smoke else asked
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
