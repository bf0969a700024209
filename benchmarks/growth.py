"""The cost of commits and views as allocations, history and dead rows accumulate.

Two databases of one server have the same machines. One stays small; the other grows step by step.
One scheduler runs on both in turns, so that a ratio compares the two at the same time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress
from rich.table import Table

from benchmarks.client import Client
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers
from benchmarks.postgres import filling, statements
from benchmarks.postgres.filling import TASKS_PER_JOB
from benchmarks.ratios import milliseconds, paired
from benchmarks.turnover import (
    CLAIMS,
    COMMIT_1,
    COMMIT_100,
    DELTA,
    PARTS,
    a_job,
    in_parts,
    turnover,
)
from omega.errors import BadInput, InvariantBroken
from omega.plots.picture import COLOURS, Picture, magnitudes, series
from omega.store.postgres.connection import Link
from omega.store.postgres.health.server_state import TableState
from omega.store.postgres.store import PostgresStore
from omega.terminal.progress import progress_bar

SMALL, LARGE = "_small", "_large"
"""Suffixes of the databases' names."""
HOUR_S: Final = 3_600
ROUNDS_MIN: Final = 3
FLAT: Final = 2.0
"""Least upper end of the y-axis, so that noise does not look large."""
TASKS_MAX: Final = 100_000_000
RATE_MAX: Final = 100_000
MACHINES_MAX: Final = 100_000
SHOWN: Final = ("machine", "job", "allocation", "transaction", "ended_task")
"""Tables that are in the document."""

Turns = list[tuple[dict[str, float], dict[str, float]]]
"""(seconds by part in the large database, the same in the small one), for each round."""


@dataclass(frozen=True)
class Step:
    """One size and age of the large database."""

    live: int
    history: int
    churned: int = 0

    def __str__(self) -> str:
        age = f", {_short(self.history)} over" if self.history else ""
        churned = f", {_short(self.churned)} churned" if self.churned else ""
        return f"{_short(self.live)} live{age}{churned}"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The parameters of the benchmark."""

    machines: int = 10_000
    live: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    """Live allocations, step by step."""
    history: tuple[int, ...] = (1_000_000, 10_000_000)
    """Ended tasks, step by step."""
    churn_per_s: int = 500
    """Tasks per second that an hour's churn places and ends."""
    seconds: float = 240.0
    seed: int = 0

    @property
    def steps(self) -> list[Step]:
        """The steps in order: allocations first, then history, then an hour's churn."""
        grown = [Step(live, 0) for live in self.live]
        aged = [Step(self.live[-1], history) for history in self.history]
        return [
            *grown,
            *aged,
            Step(self.live[-1], self.history[-1], churned=self.churn_per_s * HOUR_S),
        ]

    def measure(self, stage: Stage) -> Findings:
        """Grow one database; compare after each step; at the end check what both hold."""
        rows: list[dict[str, Any]] = []
        tables: dict[str, Any] = {}
        done: Counter[str] = Counter()
        with ExitStack() as stack:
            small, large = (stack.enter_context(stage.database(name)) for name in (SMALL, LARGE))
            progress = stack.enter_context(progress_bar(stage.output.console))
            bar = progress.add_task("", total=2 * len(self.steps))
            templates = {url: self._make_cell(url) for url in (small, large)}
            link = stack.enter_context(closing(statements.connect(large)))
            with closing(statements.connect(small)) as beside:
                self._fill(stage, beside, templates[small], Step(0, 0), self.steps[0])
                filling.sweep(beside)
            before, known = Step(0, 0), filling.table_states(link)
            for step in self.steps:
                progress.update(bar, description=str(step))
                if step.churned:
                    known = filling.table_states(link)
                    done.update(self._churn(stage, large, step.churned, progress))
                else:
                    self._fill(stage, link, templates[large], before, step)
                    filling.sweep(link)
                progress.advance(bar)
                turns, counts = self._compare(stage, large, small)
                done.update(counts)
                rows += _rows(step, turns)
                tables[str(step)] = _told(filling.table_states(link), known)
                before = step
                progress.advance(bar)
            for url in (small, large):
                self._check(url, self.steps[0].live if url == small else before.live)
        digest = {**done, "live in the end": before.live, "violations": 0}
        summary = {"times": _times(rows), "tables": tables}
        return Findings(self._finding(rows, tables), rows, summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return milliseconds by step and part, and their ratio to the small cell's."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("cell")
        for part in PARTS:
            table.add_column(part, justify="right")
        for step in self.steps:
            mine = {row["part"]: row for row in findings.rows if row["step"] == str(step)}
            table.add_row(
                str(step),
                *(
                    f"{mine[part]['p50_ms']:.2f} ms {mine[part]['times']['median']:.2f} x"
                    for part in PARTS
                ),
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the ratios to the small cell's cost, and the sizes of the tables."""
        picture = Picture(
            findings.finding,
            columns=2,
            rows=1,
            note=f"{self.machines:,} machines; medians of pairs, taken in turns with a cell that"
            f" stays at {self.steps[0]}. Churn: an hour's {self.churn_per_s:,} tasks a second, as"
            " fast as possible",
        )
        times, sizes = picture.panels[0]
        at = range(len(self.steps))
        highest = FLAT
        for number, part in enumerate(PARTS):
            ratios = [row["times"]["median"] for row in findings.rows if row["part"] == part]
            series(times, number, list(zip(at, ratios, strict=True)), part)
            highest = max(highest, *ratios)
        bounds = [row["times"] for row in findings.rows if row["part"] == PARTS[0]]
        lower, upper = ([one[end] for one in bounds] for end in ("lower", "upper"))
        times.fill_between(list(at), lower, upper, color=COLOURS[0], alpha=0.15, linewidth=0)
        told = [findings.summary["tables"][str(step)] for step in self.steps]
        for number, name in enumerate(SHOWN, start=1):
            points = [(n, table[name]["bytes"] / 2**20) for n, table in zip(at, told, strict=True)]
            series(sizes, number, points, f"table {name}", stroke="--")
        labels = [str(step).replace(", ", "\n") for step in self.steps]
        for panel in (times, sizes):
            panel.set_xticks(list(at), labels, fontsize=7)
        times.set_ylim(bottom=0, top=1.05 * max(highest, *upper))
        times.set_ylabel("times the cost in the small cell")
        magnitudes(sizes)
        sizes.set_ylabel("table with its indexes, MiB")
        return picture

    def _make_cell(self, url: str) -> int:
        """Create the cell; return the id of a job whose description all others copy."""
        Client().make_cell(url, self.machines)
        store = PostgresStore(url, application_name="omega benchmark")
        with closing(store):
            (template,) = store.submit([a_job("filling", TASKS_PER_JOB)])
            store.cancel(template)
        return template

    def _fill(self, stage: Stage, link: Link, template: int, before: Step, step: Step) -> None:
        for over, tasks in (
            (False, step.live - before.live),
            (True, step.history - before.history),
        ):
            filling.fill(
                link,
                tasks,
                over=over,
                template=template,
                machines=self.machines,
                then=stage.go_on,
            )

    def _churn(self, stage: Stage, url: str, tasks: int, progress: Progress) -> Counter[str]:
        """Place and end so many tasks as fast as possible; autovacuum has only that time."""
        mine = progress.add_task("churn", total=tasks)
        with turnover(url, stage.clock, self.machines, self.seed) as scheduler:
            for more in scheduler.churn(tasks):
                progress.advance(mine, more)
                stage.go_on()
        progress.remove_task(mine)
        return Counter({f"{what}, churn": count for what, count in scheduler.done.items()})

    def _compare(self, stage: Stage, large: str, small: str) -> tuple[Turns, Counter[str]]:
        """Run on both in turns until the time for this step is up."""
        turns: Turns = []
        with (
            turnover(large, stage.clock, self.machines, self.seed) as ours,
            turnover(small, stage.clock, self.machines, self.seed) as theirs,
        ):
            for scheduler in (ours, theirs):
                scheduler.turn()  # plans and caches
            until = stage.clock.now() + self.seconds / len(self.steps)
            while len(turns) < ROUNDS_MIN or stage.clock.now() < until:
                stage.go_on()
                if len(turns) % 2:
                    theirs_first = theirs.turn()
                    turns.append((ours.turn(), theirs_first))
                else:
                    turns.append((ours.turn(), theirs.turn()))
        return turns, ours.done + theirs.done

    def _check(self, url: str, live: int) -> None:
        """Raise InvariantBroken unless so many allocations are live and no invariant is broken."""
        store = PostgresStore(
            url, application_name="omega benchmark", statement_timeout_ms=HOUR_S * 1_000
        )
        with closing(store):
            found = store.use().live_allocations
            broken = [f"{v.invariant}: {v.subject}, {v.detail}" for v in store.verify()]
        if broken:
            raise InvariantBroken("the cell is broken", story=broken[:20])
        if found != live:
            raise InvariantBroken(f"{live} allocations were to be live, {found} are")

    def _finding(self, rows: Sequence[Mapping[str, Any]], tables: Mapping[str, Any]) -> str:
        times = _times(rows)
        said = [
            f"commits of 1 and of {CLAIMS} claims cost {of[COMMIT_1]:.2f} x and"
            f" {of[COMMIT_100]:.2f} x, a delta {of[DELTA]:.2f} x"
            for of in (times[str(step)] for step in self.steps[-2:])
        ]
        hot = tables[str(self.steps[-1])]["machine"]["hot_share"]
        return (
            f"{self.steps[-2]}: {said[0]} what they cost with {self.steps[0]}; after an hour's"
            f" churn {said[1]}, and {_share(hot)} of the updates of machines touch no index"
        )


def _rows(step: Step, turns: Turns) -> list[dict[str, Any]]:
    """Return one row per part."""
    ours, theirs = (in_parts([pair[which] for pair in turns]) for which in (0, 1))
    rows = []
    for part in PARTS:
        ratio = paired(ours[part], theirs[part])
        assert ratio is not None, "everything takes some time"
        rows.append(
            {
                "step": str(step),
                "live": step.live,
                "history": step.history,
                "churned": step.churned,
                "part": part,
                **milliseconds(ours[part]),
                "small_p50_ms": round(median(theirs[part]) * 1_000, 3),
                "times": ratio.rounded(),
                "samples": len(turns),
            }
        )
    return rows


def _told(now: Mapping[str, TableState], before: Mapping[str, TableState]) -> dict[str, Any]:
    """Return the statistics of each table in SHOWN, with the HOT share of updates since then."""
    told = {}
    for name in SHOWN:
        updated = now[name].updated - before[name].updated
        hot = now[name].hot - before[name].hot
        told[name] = {
            "live": now[name].live,
            "dead": now[name].dead,
            "bytes": now[name].bytes,
            "hot_share": round(hot / updated, 3) if updated else None,
        }
    return told


def _times(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the medians of the ratios by step and part."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["step"], {})[row["part"]] = row["times"]["median"]
    return found


def _share(part: float | None) -> str:
    return "none" if part is None else f"{part:.0%}"


def _short(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def _ascending(text: str, *, option: str) -> tuple[int, ...]:
    """Read ascending numbers of tasks, in whole jobs. Raises BadInput."""
    read = numbers(text, option=option, most=TASKS_MAX)
    if list(read) != sorted(read) or any(number % TASKS_PER_JOB for number in read):
        raise BadInput(f"{text!r} does not ascend in multiples of {TASKS_PER_JOB}", field=option)
    return read


SMOKE: Final = Growth(machines=40, live=(100, 300), history=(200, 400), churn_per_s=1, seconds=0.1)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    live: Annotated[
        str, typer.Option(metavar="N,...", help="Live allocations, step by step.")
    ] = "10000,100000,1000000",
    history: Annotated[
        str, typer.Option(metavar="N,...", help="Tasks that are over, after these steps.")
    ] = "1000000,10000000",
    churn: Annotated[
        int,
        typer.Option(
            min=1, max=RATE_MAX, metavar="N", help="Tasks a second, of the hour that churns."
        ),
    ] = 500,
    machines: Annotated[int, typer.Option(min=16, max=MACHINES_MAX, metavar="N")] = 10_000,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Cost of commits and views as allocations, history and dead rows accumulate.

    Takes half an hour, most of it for filling, and some gigabytes of disk.
    """
    benchmark = Growth(
        machines=machines,
        live=_ascending(live, option="--live"),
        history=_ascending(history, option="--history"),
        churn_per_s=churn,
        seed=seed,
    )
    if smoke:
        benchmark = SMOKE
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
