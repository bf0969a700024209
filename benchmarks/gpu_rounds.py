"""Rounds on a live cell: do training jobs get their shares, beside others and through a crash?

Two replicas of the ML-GPU scheduler run rounds on machines of two GPU types, while batch and
service schedulers take CPU on the same machines and virtual nodes end their tasks. After some
rounds, the replica that ran the last one is killed.
"""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.models import GANGS, RATES, TYPES, learnt_of, rates
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.postgres import rounds as statements
from benchmarks.postgres.statements import connect
from benchmarks.postgres.statements import store as store_of
from benchmarks.shares import WITHIN, compared
from benchmarks.virtual_rounds import Play, in_virtual_time
from omega.errors import InvariantBroken, OmegaError
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, StepWork, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import machine_capacity
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
from omega.terminal.progress import progress_bar
from schedulers.ml_gpu.throughputs import read_throughputs

KIND: Final = "ml-gpu"
GPUS: Final = 4
"""GPUs of a machine."""
CPU_A_GPU: Final = 1_000
CPU: Final = 16_000
OTHERS: Final = ("batch", "service")
TASKS_OF_OTHERS: Final = 4
STEPS: Final = 10**12
"""Steps of each training job: so many that none ends."""
TICK_S: Final = 0.05
SILENT_S_MAX: Final = 60.0
LEASE_MS: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class GpuRounds:
    """The parameters of the benchmark."""

    machines: tuple[int, int] = (8, 4)
    """Machines of each type."""
    jobs: int = 64
    round_ms: int = 1_000
    rounds: int = 60
    kill_after: int = 25
    """The round after which its replica is killed; 0: never."""
    others_per_s: float = 12.0
    """Jobs per second of batch and service schedulers together."""
    policy: str = "max_min_fairness_perf"
    rule: str = "fit"
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run all processes, then read each job's shares from the history of the cell."""
        with TemporaryDirectory(prefix="omega-") as folder:
            table = Path(folder) / "rates.json"
            table.write_text(json.dumps(rates()), encoding="utf-8")
            rows, summary = self._live(stage, table)
            with stage.output.console.status("The same in virtual time"):
                virtual, of_virtual = in_virtual_time(self._play(table))
        for row, its in zip(rows, virtual, strict=False):
            row["virtual"] = {name: its[name] for name in ("furthest", "mean", "evicted")}
        summary["virtual"] = of_virtual
        digest = {"rounds": len(rows), "tasks granted": summary["granted"], "violations": 0}
        return Findings(self._finding(summary), rows, summary, digest)

    def _live(self, stage: Stage, table: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        with (
            stage.database() as url,
            closing(connect(url)) as link,
            closing(store_of(url)) as store,
        ):
            migrate(url)
            store.add_machines(self._cell())
            ids = store.submit(self._training())
            with self._at_work(stage, url, table) as supervisor:
                killed = self._watch(stage, supervisor, link, store)
                read = self._read(link, ids)
                steps = int(store.progress(integers(ids)).done.sum())
            violations = store.verify()
        if violations:
            raise InvariantBroken("the cell is broken", story=[str(v) for v in violations[:20]])
        rows, summary = compared(*read, machines=self.machines)
        return rows, {**summary, "killed": killed, "learnt": learnt_of(read[2]), "steps": steps}

    def show(self, findings: Findings) -> Table:
        """Return how far shares were from their targets, for about ten of the rounds."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("rounds", "furthest", "short", "mean", "evicted", "refused", "by"):
            table.add_column(header, justify="right")
        last = len(findings.rows)
        for number, row in enumerate(findings.rows, start=1):
            if number in (1, last) or number % max(1, last // 10) == 0:
                told = (f"{row[name]:.3f}" for name in ("furthest", "short", "mean"))
                counts = (f"{row[name]:,}" for name in ("evicted", "refused"))
                table.add_row(str(number), *told, *counts, row["replica"])
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the distance from the targets by rounds, and the tasks that a round moves."""
        note = (
            f"{self.jobs} jobs on {' and '.join(self._counted())}, rounds of"
            f" {self.round_ms / 1_000:g} s; the replica that played round {self.kill_after} was"
            " then killed"
        )
        picture = Picture(findings.finding, columns=2, note=note)
        left, right = picture.panels[0]
        for number, (name, label) in enumerate(
            (("furthest", "furthest of all jobs"), ("mean", "mean of all jobs"))
        ):
            points = [(at, row[name]) for at, row in enumerate(findings.rows, start=1)]
            series(left, number, points, label)
        virtual = [
            (at, row["virtual"]["furthest"])
            for at, row in enumerate(findings.rows, start=1)
            if "virtual" in row
        ]
        series(left, 3, virtual, "furthest, in virtual time", stroke=":")
        series(left, 2, [(1, WITHIN), (len(findings.rows), WITHIN)], "wanted", stroke="--")
        left.set_xlabel("rounds")
        left.set_ylabel("fraction of time had, off the target")
        left.set_ylim(0, 0.5)
        for number, name in enumerate(("evicted", "refused"), start=4):
            points = [(at, row[name]) for at, row in enumerate(findings.rows, start=1)]
            series(right, number, points, f"tasks {name}")
        right.set_xlabel("rounds")
        right.set_ylabel("tasks in a round's commit")
        return picture

    def _counted(self) -> Iterator[str]:
        for name, count in zip(TYPES, self.machines, strict=True):
            yield f"{count * GPUS} GPUs {name}"

    def _cell(self) -> Machines:
        count = sum(self.machines)
        return Machines(
            names=tuple(f"m{number:03}" for number in range(count)),
            capacity=np.tile(machine_capacity(CPU, 65_536, 1_000_000, GPUS), (count, 1)),
            attributes={"gpu_model": tuple(np.repeat(TYPES, self.machines).tolist())},
        )

    def _training(self) -> list[JobSpec]:
        rng = np.random.default_rng(self.seed)
        models = list(RATES)
        gangs = rng.choice(GANGS, self.jobs).tolist()
        return [
            JobSpec(
                name=f"train-{number}",
                scheduler=KIND,
                minimum=gang,
                work=StepWork(kind=models[number % len(models)], steps=STEPS),
                groups=(TaskGroup(tasks=gang, gpus=1, cpu_milli=CPU_A_GPU),),
            )
            for number, gang in enumerate(gangs)
        ]

    def _other(self, number: int) -> JobSpec:
        kind = OTHERS[number % len(OTHERS)]
        return JobSpec(
            name=f"{kind}-{number}",
            scheduler=kind,
            groups=(
                TaskGroup(
                    tasks=TASKS_OF_OTHERS,
                    cpu_milli=1_000,
                    duration_ms=1_000 + 500 * (number % 5),
                ),
            ),
        )

    @contextmanager
    def _at_work(self, stage: Stage, url: str, table: Path) -> Iterator[Supervisor]:
        """Start all processes as `omega demo` does, and end them afterwards."""
        settings = [f"{name}={value}" for name, value in self._settings(table).items()]
        ml_gpu = ["scheduler", "run", KIND, f"--rule={self.rule}"]
        ml_gpu += [f"--set={one}" for one in settings]
        specs = [
            *(
                ChildSpec(f"{KIND}-{name}", omega_command(*ml_gpu, f"--replica={name}"))
                for name in "ab"
            ),
            *(ChildSpec(kind, omega_command("scheduler", "run", kind)) for kind in OTHERS),
            ChildSpec("nodes", omega_command("node", "simulate", f"--rates={table}")),
        ]
        environment = {
            "OMEGA_DATABASE_URL": url,
            "OMEGA_DATA_DIR": str(stage.settings.data_dir),
            "OMEGA_LEASE_MS": str(LEASE_MS),
            "OMEGA_HEARTBEAT_INTERVAL_MS": str(LEASE_MS // 4),
            "OMEGA_RESCUE_INTERVAL_MS": str(LEASE_MS // 4),
        }
        with Supervisor(
            specs,
            log_dir=stage.settings.data_dir / "logs" / "benchmark",
            environment=environment,
            clock=stage.clock,
            policy=RestartPolicy(delay_first_s=1e6, delay_max_s=1e6),  # no restart
        ) as supervisor:
            yield supervisor

    def _settings(self, table: Path) -> dict[str, str]:
        """Return the settings of the scheduler by rounds."""
        return {
            "round": f"{self.round_ms / 1_000:g}",
            "policy": self.policy,
            "throughputs": str(table),
        }

    def _play(self, table: Path) -> Play:
        """Return the parameters of the same run in virtual time."""
        return Play(
            cell=self._cell(),
            machines=self.machines,
            training=self._training(),
            kind=KIND,
            settings=self._settings(table),
            rates=read_throughputs(table),
            others=OTHERS,
            other=self._other,
            others_per_s=self.others_per_s,
            rounds=self.rounds,
            kill_after=self.kill_after,
            seed=self.seed,
        )

    def _watch(
        self, stage: Stage, supervisor: Supervisor, link: Link, store: PostgresStore
    ) -> dict[str, Any]:
        """Submit the other jobs until all rounds are done; kill a replica meanwhile, return it."""
        clock = stage.clock
        killed: dict[str, Any] = {"replica": None, "after": None}
        fed, began, moved = 0, clock.now(), (0, clock.now())
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("Starting", total=self.rounds)
            while True:
                stage.go_on()
                number, holder, _ = statements.last_round(link, KIND)
                progress.update(bar, completed=number, description=f"Round {number} by {holder}")
                is_over = number > self.rounds and statements.went_on(link, KIND, killed["replica"])
                # On a machine that has much else to do, the first rounds may come to nothing.
                if is_over and len(statements.intervals(link, KIND).job):
                    return killed
                _look(supervisor, spared=killed["replica"])
                if number <= 1:
                    began = clock.now()  # the others begin after the first round
                due = int((clock.now() - began) * self.others_per_s) - fed
                if due > 0:
                    store.submit([self._other(fed + n) for n in range(due)])
                    fed += due
                if self.kill_after and number == self.kill_after and killed["replica"] is None:
                    killed = {"replica": holder.replace("/", "-"), "after": number}
                    _kill(supervisor, killed["replica"])
                if number != moved[0]:
                    moved = number, clock.now()
                elif clock.now() - moved[1] > SILENT_S_MAX:
                    raise OmegaError(f"no round has begun for {SILENT_S_MAX:g} s")
                clock.sleep(TICK_S)

    def _read(self, link: Link, ids: Sequence[int]) -> tuple[Any, Any, Any, Sequence[int]]:
        _, _, memo = statements.last_round(link, KIND)
        commits = {kind: statements.commits(link, kind) for kind in (KIND, *OTHERS)}
        return statements.intervals(link, KIND), commits, memo["plan"], list(ids)

    def _finding(self, summary: Mapping[str, Any]) -> str:
        others = sum(summary["commits"][kind]["granted"] for kind in OTHERS)
        refused = sum(its["refused"] for its in summary["commits"].values())
        virtual = summary["virtual"]["furthest"]
        crash = (
            f", through the death of the replica that played round {self.kill_after}"
            if summary["killed"]["replica"]
            else ""
        )
        return (
            f"After {summary['rounds']} rounds each of {self.jobs} training jobs has had its share"
            f" of each GPU type to within {summary['furthest']:.1%} of the time, nobody short"
            f" of more than {summary['short']:.1%}{crash}, beside {others:,} tasks of batch and"
            f" service; {refused:,} claims were refused; in virtual time, to within {virtual:.1%}"
        )


def _look(supervisor: Supervisor, spared: str | None) -> None:
    """Raise OmegaError if a process does not run, except for the one that was killed."""
    supervisor.look()
    for child in supervisor.children:
        if child.state is not ChildState.RUNNING and child.spec.name != spared:
            raise OmegaError(
                f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
            )


def _kill(supervisor: Supervisor, name: str) -> None:
    (child,) = [one for one in supervisor.children if one.spec.name == name]
    assert child.process is not None
    child.process.send_signal(signal.SIGKILL)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    rounds: Annotated[int, typer.Option(min=2, max=100_000, metavar="N")] = 60,
    round_ms: Annotated[
        int, typer.Option("--round-ms", min=10, max=3_600_000, metavar="MS", help="Of one round.")
    ] = 1_000,
    kill_after: Annotated[
        int,
        typer.Option(
            "--kill-after", min=0, metavar="N", help="Kill who played this round; 0: nobody."
        ),
    ] = 25,
    policy: Annotated[str, typer.Option(metavar="NAME")] = "max_min_fairness_perf",
    rule: Annotated[
        str, typer.Option(metavar="fit|sequence", help="Conflict rule of the rounds.")
    ] = "fit",
    others_per_s: Annotated[
        float,
        typer.Option(
            "--others-per-s", min=0, max=1e4, metavar="N", help="Jobs of batch and service."
        ),
    ] = 12.0,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Training jobs in rounds on a live cell, beside batch and service: who had what.

    Takes as long as the rounds.
    """
    benchmark = GpuRounds(
        rounds=rounds,
        round_ms=round_ms,
        kill_after=kill_after,
        policy=policy,
        rule=rule,
        others_per_s=others_per_s,
        seed=seed,
    )
    if smoke:
        benchmark = replace(
            benchmark,
            machines=(2, 1),
            jobs=12,
            rounds=8,
            round_ms=150,
            kill_after=3,
            others_per_s=3.0,
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
