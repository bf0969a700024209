"""Programs run on this machine by Omega, Slurm, Dask, Ray and xargs, with the same slots.

Each round starts every system in turn, gives it the same work, and ends it. A system that is not
installed has a row with the reason.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.execution.measuring import Measured, Work, measured
from benchmarks.execution.omega_system import TUNED as POLLS
from benchmarks.execution.omega_system import OmegaUp
from benchmarks.execution.others import Hosted, Xargs
from benchmarks.execution.slurm import TUNED, Slurm
from benchmarks.execution.systems import System
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, words
from omega.plots.picture import Picture, bars
from omega.terminal.options import number_option
from omega.terminal.progress import progress_bar

SYSTEMS: Final[Mapping[str, System]] = {
    system.name: system
    for system in (
        OmegaUp(),
        OmegaUp("omega-tuned", "Omega, tuned", POLLS),
        Slurm(),
        Slurm("slurm-tuned", "Slurm, tuned", TUNED),
        Hosted("dask", "Dask LocalCluster", "distributed", "requirements.txt"),
        Hosted("ray", "Ray", "ray", "requirements-ray.txt"),
        Xargs(),
    )
}
OURS: Final = "omega"
FLOOR: Final = "xargs"
SLOW: Final = ("slurm", "slurm-tuned")
"""They start so few tasks a second that they are given fewer."""
TASKS_MAX: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The parameters of the benchmark."""

    systems: tuple[str, ...] = tuple(SYSTEMS)
    slots: int = 2
    tasks: int = 10_000
    """Of `true`."""
    slow_tasks: int = 100
    """The same, for the systems that are slow."""
    long_tasks: int = 200
    long_s: float = 1.0
    """How long each of them sleeps."""
    lone: int = 20
    """Lone tasks, in all rounds together."""
    repeats: int = 3
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run all rounds, in each the systems in another order."""
        systems = [SYSTEMS[name] for name in self.systems]
        absent = {one.name: why for one in systems if (why := one.absence()) is not None}
        present = [one for one in systems if one.name not in absent]
        found: dict[str, list[Measured]] = {one.name: [] for one in present}
        stage.about["systems"] = {one.name: one.version() for one in present}
        rng = np.random.default_rng(self.seed)
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=self.repeats * len(present))
            for number in range(self.repeats):
                for place in rng.permutation(len(present)):
                    one = present[int(place)]
                    progress.update(bar, description=f"round {number + 1}: {one.label}")
                    with _folder() as folder, one.started(folder, stage, self.slots) as it:
                        found[one.name].append(measured(stage, it, folder, self._work(one, number)))
                    progress.advance(bar)
                    stage.go_on()
        rows = [_row(one, found.get(one.name, []), absent.get(one.name)) for one in systems]
        done = {
            f"tasks, {name}": sum(one.done for one in ones) for name, ones in found.items() if ones
        }
        return Findings(_finding(rows), rows, _summary(rows), done)

    def show(self, findings: Findings) -> Table:
        """Return a line for each system."""
        table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
        table.add_column("system")
        heads = ("tasks", "tasks/s", "sd", "ms/task", "ms/long", "first ms", "p90", "typed", "MiB")
        for head in heads:
            table.add_column(head, justify="right")
        for row in findings.rows:
            if row["absent"] is not None:
                table.add_row(row["label"], f"absent: {row['absent']}")
                continue
            table.add_row(
                row["label"],
                f"{row['short_tasks']:,}",
                *(
                    _number(row[name])
                    for name in (
                        *("short_per_s", "short_per_s_sd", "short_overhead_ms"),
                        *("long_overhead_ms", "first_p50_ms", "first_p90_ms", "typed_p50_ms"),
                        "memory_mib",
                    )
                ),
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return tasks a second beside the first output of a lone task."""
        rows = [row for row in findings.rows if row["absent"] is None]
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"{self.slots} slots; means of {self.repeats} rounds; lone tasks: median",
        )
        (left, right), names = picture.panels[0], [row["label"] for row in rows]
        bars(left, names, {"": [row["short_per_s"] for row in rows]})
        bars(right, names, {"": [row["first_p50_ms"] for row in rows]})
        for panel, name in (
            (left, "tasks of true, 1/s"),
            (right, "first output of a lone task, ms"),
        ):
            panel.set_xscale("log")
            panel.set_xlabel(name)
        return picture

    def _work(self, system: System, number: int) -> Work:
        lone = [len(part) for part in np.array_split(np.arange(self.lone), self.repeats)][number]
        return Work(
            slots=self.slots,
            short_tasks=self.slow_tasks if system.name in SLOW else self.tasks,
            long_tasks=self.long_tasks if number == 0 else 0,
            long_s=self.long_s,
            lone=lone,
        )


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a folder whose path is so short that sockets may lie in it."""
    with tempfile.TemporaryDirectory(prefix="omega-", ignore_cleanup_errors=True) as path:
        folder = Path(path)
        folder.chmod(0o755)  # the embedded Postgres of a root process has a user of its own
        yield folder


def _row(system: System, ones: Sequence[Measured], absent: str | None) -> dict[str, Any]:
    """Return the row of a system; without measurements, only why it is absent."""
    row: dict[str, Any] = {"system": system.name, "label": system.label, "absent": absent}
    if not ones:
        return row
    work, longs = ones[0].work, [one for one in ones if one.long_s is not None]
    first = [took_s for one in ones for took_s in one.first_s]
    typed = [took_s for one in ones for took_s in one.typed_s]
    return {
        **row,
        "short_tasks": work.short_tasks,
        **_spread("short_s", [one.short_s for one in ones]),
        **_spread("short_per_s", [one.short_per_s for one in ones]),
        **_spread("short_overhead_ms", [1_000 * one.short_overhead_s for one in ones]),
        **_spread("processor_ms", [sum(one.processor_ms.values()) for one in ones]),
        "processor_ms_of": {
            part: round(float(np.mean([one.processor_ms.get(part, 0.0) for one in ones])), 3)
            for part in ones[0].processor_ms
        },
        "long_tasks": sum(one.work.long_tasks for one in longs),
        "long_failed": next((one.long_failed for one in ones if one.long_failed), None),
        "long_s": round(float(np.mean([one.long_s or 0.0 for one in longs])), 3) if longs else None,
        "long_overhead_ms": round(
            float(np.mean([1_000 * (one.long_overhead_s or 0.0) for one in longs])), 3
        )
        if longs
        else None,
        **_quantiles("first", first),
        **_quantiles("typed", typed),
        "memory_mib": round(float(np.median([one.memory_mib for one in ones])), 1),
        "memory_of": ones[0].memory_of,
        "rounds": [
            {"short_s": round(one.short_s, 3), "memory_mib": round(one.memory_mib, 1)}
            for one in ones
        ],
    }


def _spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the mean and the standard deviation between rounds."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {name: round(float(np.mean(values)), 3), f"{name}_sd": round(deviation, 3)}


def _quantiles(name: str, seconds: Sequence[float]) -> dict[str, float | int | None]:
    """Return the median and the 90th percentile of some times, and how many these were."""
    if not seconds:
        return {f"{name}_p50_ms": None, f"{name}_p90_ms": None, f"{name}_count": 0}
    p50, p90 = np.percentile(np.asarray(seconds) * 1_000, (50, 90)).tolist()
    return {
        f"{name}_p50_ms": round(p50, 2),
        f"{name}_p90_ms": round(p90, 2),
        f"{name}_count": len(seconds),
    }


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ratios of our rate and of our first output to those of the others."""
    present = {row["system"]: row for row in rows if row["absent"] is None}
    ours = present.get(OURS)
    if ours is None:
        return {"rate_over": {}, "first_output_over": {}}
    others = {name: row for name, row in present.items() if name != OURS}
    return {
        name: {other: _rounded(ours[of] / row[of]) for other, row in others.items()}
        for name, of in (("rate_over", "short_per_s"), ("first_output_over", "first_p50_ms"))
    }


def _rounded(ratio: float) -> float:
    return float(f"{ratio:.3g}")


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on our rate and first output, and on who is faster."""
    present = {row["system"]: row for row in rows if row["absent"] is None}
    ours = present.get(OURS)
    if ours is None:
        return "Omega was not measured"
    rivals = [row for name, row in present.items() if not name.startswith(OURS) and name != FLOOR]
    faster = sorted(
        (row for row in rivals if row["short_per_s"] > ours["short_per_s"]),
        key=lambda row: -float(row["short_per_s"]),
    )
    said = ", ".join(f"{row['label']} {row['short_per_s']:,.0f}" for row in faster)
    beside = f"faster: {said}" if faster else "no rival measured is faster"
    return (
        f"Omega runs {ours['short_per_s']:,.0f} tasks of true a second through one agent, and a"
        f" lone task writes after {ours['first_p50_ms']:,.0f} ms; {beside}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.{0 if abs(value) >= 100 else 1}f}"  # noqa: PLR2004


SMOKE: Final = Execution(tasks=20, slow_tasks=2, long_tasks=2, long_s=0.1, lone=1, repeats=1)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    systems: Annotated[
        str, typer.Option(metavar="NAME,...", help="Which of them to run.")
    ] = ",".join(SYSTEMS),
    slots: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="Tasks at a time.")] = 2,
    tasks: Annotated[
        int, typer.Option(min=1, max=TASKS_MAX, metavar="N", help="Tasks of true.")
    ] = 10_000,
    slow_tasks: Annotated[
        int, typer.Option(min=1, max=TASKS_MAX, metavar="N", help="The same, for Slurm.")
    ] = 100,
    long_tasks: Annotated[
        int, typer.Option(min=1, max=TASKS_MAX, metavar="N", help="Tasks that sleep.")
    ] = 200,
    long_seconds: Annotated[
        float, number_option(lowest=0.01, highest=3_600, metavar="S", help="How long they sleep.")
    ] = 1.0,
    lone: Annotated[
        int,
        typer.Option(min=1, max=TASKS_MAX, metavar="N", help="Lone tasks, in all rounds together."),
    ] = 20,
    repeats: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Rounds.")] = 3,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Programs run a second by Omega, Slurm, Dask, Ray and xargs, and the first output of a task.

    Takes an hour, of which Slurm takes the most: --systems omega,dask,ray,xargs is quicker.
    """
    asked = Execution(
        systems=words(systems, option="--systems", known=tuple(SYSTEMS)),
        slots=slots,
        tasks=tasks,
        slow_tasks=slow_tasks,
        long_tasks=long_tasks,
        long_s=long_seconds,
        lone=max(lone, repeats),
        repeats=repeats,
        seed=seed,
    )
    benchmark = replace(SMOKE, systems=asked.systems) if smoke else asked
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
