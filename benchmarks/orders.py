"""What orders of the queue cost: live schedulers drain a queue of several tenants.

The drains of `end_to_end`, by each order of the queue in turns, with the same jobs: those of the
first tenant were submitted first, then those of the second, and so on.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.live import live
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers
from benchmarks.postgres import statements
from benchmarks.ratios import paired
from benchmarks.shapes import Shape
from omega.errors import InvariantBroken
from omega.limits import LIMITS
from omega.model.lanes import QueueOrder
from omega.plots.picture import Picture, series, steps
from omega.reports.wording import things
from omega.store.postgres.schema import migrate
from omega.terminal.progress import progress_bar
from omega.workload.demo_cell import demo_machines

MACHINES_MAX: Final = 200_000
REPLICAS_MAX: Final = 16
"""Each has two connections, and the embedded server takes a hundred."""
TENANTS_MAX: Final = 1_000
ROUNDS_MAX: Final = 100
FIFO: Final = QueueOrder.FIFO.value
ORDERS: Final = tuple(order.value for order in QueueOrder)


@dataclass(frozen=True, kw_only=True)
class Orders:
    """The parameters of the benchmark."""

    machines: int = 10_000
    replicas: tuple[int, ...] = (1, 2, 4, 8)
    tenants: int = 10
    tasks: int = 100
    """Tasks of a job."""
    rounds: int = 3
    seconds: float = 180.0
    seed: int = 0

    @property
    def jobs(self) -> int:
        """How many jobs of each tenant a drain has: as many as a fast machine drains in time."""
        slice_s = self.seconds / (len(self.replicas) * len(ORDERS) * self.rounds)
        shape = Shape(machines=self.machines, tasks=self.tasks)
        return max(1, shape.jobs_for(slice_s) // self.tenants)

    def measure(self, stage: Stage) -> Findings:
        """Drain the queue by each order, in each round, with so many replicas."""
        rows: list[dict[str, Any]] = []
        done = Counter({"tasks live": 0})
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=len(self.replicas) * len(ORDERS) * self.rounds)
            for replicas, number in product(self.replicas, range(self.rounds)):
                for order in ORDERS[:: 1 if number % 2 else -1]:
                    progress.update(bar, description=f"{replicas} replicas, {order}")
                    # Replicas agree on an order for longer than they live.
                    with stage.database() as url:
                        row = self._drained(stage, url, replicas, order)
                    rows.append({"order": order, "replicas": replicas, "round": number, **row})
                    done["tasks live"] += row["tasks"]
                    progress.advance(bar)
        summary = {"orders": list(self._told(rows))}
        return Findings(_finding(summary["orders"]), rows, summary, {**done, "violations": 0})

    def show(self, findings: Findings) -> Table:
        """Return one line for each order and number of replicas."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("order")
        for header in ("replicas", "tasks/s", "sd", "of fifo", "least", "most", "conflicts"):
            table.add_column(header, justify="right", no_wrap=True)
        for told in findings.summary["orders"]:
            ratio = told["of_fifo"]
            table.add_row(
                told["order"],
                str(told["replicas"]),
                f"{told['tasks_per_s']:,.0f}",
                f"{told['sd']:,.0f}",
                *(f"{ratio[name]:.2f}" for name in ("median", "lower", "upper")),
                f"{told['conflict_fraction']:.3f}",
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return rates and conflict fractions by the number of replicas, a line per order."""
        note = (
            f"{self.machines:,} machines, {self.tenants} tenants, jobs of {self.tasks} tasks;"
            f" {things(self.rounds, 'drain')} of a full queue by each order"
        )
        picture = Picture(findings.finding, columns=2, note=note)
        rates, conflicts = picture.panels[0]
        for number, order in enumerate(ORDERS):
            mine = [told for told in findings.summary["orders"] if told["order"] == order]
            for panel, name in ((rates, "tasks_per_s"), (conflicts, "conflict_fraction")):
                series(panel, number, [(told["replicas"], told[name]) for told in mine], order)
        rates.set_ylabel("tasks committed, 1/s")
        conflicts.set_ylabel("conflict fraction")
        for panel in (rates, conflicts):
            panel.set_ylim(bottom=0)
            steps(panel, self.replicas)
            panel.set_xlabel("replicas")
        return picture

    def _drained(self, stage: Stage, url: str, replicas: int, order: str) -> dict[str, Any]:
        """Drain the queue once; return the figures. Raises InvariantBroken if a task is missing."""
        spec = Shape(machines=self.machines, tasks=self.tasks).spec()
        specs = [replace(spec, tenant=f"tenant-{number}") for number in range(self.tenants)]
        migrate(url)
        with closing(statements.store(url)) as store:
            store.add_machines(demo_machines(self.machines, np.random.default_rng(self.seed)))
        with live(stage, url, replicas, OMEGA_QUEUE_ORDER=order) as running:
            times = running.drain(*specs, jobs=self.jobs)
            conflicted, judged = running.conflicts()
            tasks = running.check()
        if tasks != self.jobs * self.tenants * self.tasks:
            raise InvariantBroken(f"{self.jobs * self.tenants * self.tasks} were due, {tasks} run")
        return {
            "tasks": tasks,
            "seconds": round(times.drained_s, 3),
            "tasks_per_s": round(tasks / times.drained_s, 1),
            "conflict_fraction": round(conflicted / max(1, judged - conflicted), 4),
        }

    def _told(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield means over the rounds, and the ratio to FIFO's rate in the same rounds."""
        for replicas, order in product(self.replicas, ORDERS):
            rates, of_fifo = (
                [
                    row["tasks_per_s"]
                    for row in rows
                    if (row["order"], row["replicas"]) == (name, replicas)
                ]
                for name in (order, FIFO)
            )
            ratio = paired(rates, of_fifo)
            assert ratio is not None, "a drain has tasks"
            yield {
                "order": order,
                "replicas": replicas,
                "tasks_per_s": round(fmean(rates), 1),
                "sd": round(float(np.std(rates, ddof=len(rates) > 1)), 1),
                "of_fifo": ratio.rounded(),
                "conflict_fraction": round(
                    fmean(
                        row["conflict_fraction"]
                        for row in rows
                        if (row["order"], row["replicas"]) == (order, replicas)
                    ),
                    4,
                ),
            }


def _finding(told: Sequence[Mapping[str, Any]]) -> str:
    of_fifo = (
        f"{order} "
        + ", ".join(
            f"{one['of_fifo']['median']:.2f} ({one['replicas']})"
            for one in told
            if one["order"] == order
        )
        for order in ORDERS
        if order != FIFO
    )
    return f"Tasks a second, of FIFO's, by replicas: {'; '.join(of_fifo)}"


SMOKE: Final = Orders(machines=40, replicas=(2,), tenants=3, tasks=5, rounds=1, seconds=0.1)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Machines of the cell.")
    ] = Orders.machines,
    replicas: Annotated[
        str, typer.Option(metavar="N,...", help="Scheduler processes.")
    ] = "1,2,4,8",
    tenants: Annotated[
        int, typer.Option(min=1, max=TENANTS_MAX, metavar="N", help="Tenants with jobs.")
    ] = Orders.tenants,
    tasks: Annotated[
        int,
        typer.Option(
            min=1, max=LIMITS.claims_per_transaction_max, metavar="N", help="Tasks of a job."
        ),
    ] = Orders.tasks,
    rounds: Annotated[
        int, typer.Option(min=1, max=ROUNDS_MAX, metavar="N", help="Drains by each order.")
    ] = Orders.rounds,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Tasks a second and conflicts of a full queue by its order.

    Takes a quarter of an hour.
    """
    benchmark = Orders(
        machines=machines,
        replicas=numbers(replicas, option="--replicas", most=REPLICAS_MAX),
        tenants=tenants,
        tasks=tasks,
        rounds=rounds,
        seed=seed,
    )
    benchmark = SMOKE if smoke else benchmark
    benchmark = benchmark if seconds is None else replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
