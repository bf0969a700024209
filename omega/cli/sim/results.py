"""The results of a sweep so far: its rows, the missing runs, the failed runs.

Goal     Keep the results of a long sweep so that it can be resumed.
Promise  A row stands for a point all of whose seeds are done. Rows that are taken over from an
         earlier document were simulated by the same version, from the same files, with the same
         options.
Source   omega.sim.sweep.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from rich.table import Table

from omega import __version__
from omega.cli.sim.axes import SETTING, Axes, at_point, option_of, settings_at
from omega.cli.sim.plan import SimPlan, as_json
from omega.cli.sim.trials import Packed, Work
from omega.errors import BadInput, InvariantBroken, OmegaError
from omega.plots.sweep import Axis, SweepResults
from omega.reports.wording import UNKNOWN, things
from omega.sim.sweep import DEVIATION, WORKLOADS, Figures, Trial, grid, mean_and_deviation

SEEDS, GIVEN, VARIED = "seeds", "given", "vary"
NOT_SEEN: Final = 0.001
"""Share of a mean up to which a deviation is not shown: it does not change the three digits."""
MEASURES: Final = {"busy": "busy", "conflict_fraction": "conflicts", "wait_mean_s": "wait s"}


class _Measures(BaseModel, extra="allow", strict=True):
    """The figures of a workload that an earlier document must hold: the keys of MEASURES."""

    busy: float | None
    conflict_fraction: float | None
    wait_mean_s: float | None


_BY_WORKLOAD: Final = TypeAdapter(dict[str, _Measures])


class Results:
    """The runs of a sweep, and their results."""

    def __init__(self, plan: SimPlan, axes: Axes, seeds: int) -> None:
        """Read the job lists and traces.

        Raises BadInput for one that is malformed, and BadInput, SettingsError or UnknownScheduler
        for schedulers that a plan cannot use.
        """
        self.axes = axes
        self.seeds = seeds
        self._plan = plan
        self._points = grid(axes)
        plans = [at_point(plan, point) for point in self._points]
        named = {one.source: one for one in plans}
        self._given = {source: Packed.read(one) for source, one in named.items()}
        if len({as_json(source) for source in named}) < len(named):
            raise BadInput("two job lists or traces have the same name", field="--vary")
        for one in plans:
            one.schedulers(self._given[one.source].kinds)  # raises now, not in a worker
        self._works = [Work(one, self._given[one.source]) for one in plans]
        self._rows: dict[int, dict[str, Any]] = {}
        self._runs: dict[int, dict[int, Figures]] = {}
        self._failed: list[tuple[Trial[Work], Exception]] = []
        self._reused = 0

    @property
    def runs(self) -> int:
        """The number of runs of the whole sweep."""
        return len(self._points) * self.seeds

    @property
    def missing(self) -> list[Trial[Work]]:
        """The runs of points that have no row."""
        return [
            Trial(at, seed, replace(work, plan=replace(work.plan, seed=seed)))
            for at, work in enumerate(self._works)
            if at not in self._rows
            for seed in self._seeds_of(work)
        ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points that are done, in the order of the grid."""
        return [self._rows[at] for at in sorted(self._rows)]

    def settle(self, trial: Trial[Work], came: Figures | Exception) -> None:
        """Record the figures of a run, or the exception that it raised."""
        if isinstance(came, Exception):
            self._failed.append((trial, came))
            return
        runs = self._runs.setdefault(trial.point, {})
        runs[trial.seed] = came
        if len(runs) == self.seeds:
            self._rows[trial.point] = self._row(trial.point, self._runs.pop(trial.point))

    def resume(self, path: Path) -> int:
        """Take over an earlier document's rows for points of this sweep; return their number."""
        wanted = {self._key(self._told(at)): at for at in range(len(self._points))}
        for row, key in self._earlier(path):
            if key in wanted:
                self._rows[wanted[key]] = {**self._named(wanted[key]), **row}
        self._reused = len(self._rows)
        return self._reused

    def parameters(self) -> dict[str, object]:
        """Return what was asked for as JSON types."""
        return {
            **{name: v for name, v in self._plan.parameters().items() if name not in self.axes},
            VARIED: {name: [as_json(one) for one in values] for name, values in self.axes.items()},
            SEEDS: self.seeds,
            GIVEN: {str(as_json(source)): one.digest for source, one in self._given.items()},
        }

    def drawable(self) -> SweepResults:
        """Return the values from which a plot is drawn."""
        said = self.parameters()
        return SweepResults(
            axes=[
                Axis(
                    name,
                    option_of(name),
                    [as_json(value) for value in values],
                    labels_itself=not name.startswith(SETTING),
                )
                for name, values in self.axes.items()
            ],
            rows=self.rows,
            seeds=self.seeds,
            jobs=str(said.get("jobs", "several job lists")),
            fixed=str(said.get("architecture", "mean")),
        )

    def summary(self) -> dict[str, object]:
        """Return the number of points and runs that are done, reused and failed."""
        return {
            "points": len(self._points),
            "points_done": len(self._rows),
            "points_reused": self._reused,
            "runs": self.runs,
            "runs_failed": len(self._failed),
            "failures": [
                {**self._named(one.point), "seed": one.seed, "why": why(error)}
                for one, error in self._failed
            ],
        }

    def complain(self) -> None:
        """Raise an error for the first run that failed, if any has."""
        if not self._failed:
            return
        trial, error = min(self._failed, key=lambda one: (one[0].point, one[0].seed))
        named = self._named(trial.point).items()
        where = ", ".join(f"{option_of(name)} {value}" for name, value in named)
        others = f" ({things(len(self._failed), 'run')} failed in all)" * (len(self._failed) > 1)
        sentence = f"{where}, seed {trial.seed}: {why(error)}{others}"
        if isinstance(error, InvariantBroken):
            raise InvariantBroken(sentence, story=error.story) from error
        if isinstance(error, BadInput):
            raise BadInput(sentence) from error
        raise OmegaError(sentence) from error

    def _seeds_of(self, work: Work) -> range:
        return range(work.plan.seed, work.plan.seed + self.seeds)

    def _named(self, at: int) -> dict[str, object]:
        return {name: as_json(value) for name, value in self._points[at].items()}

    def _row(self, at: int, runs: Mapping[int, Figures]) -> dict[str, Any]:
        seeds = sorted(runs)
        means, deviations = mean_and_deviation([runs[seed] for seed in seeds])
        told = {**self._named(at), SEEDS: seeds, **means}
        return {**told, DEVIATION: deviations} if self.seeds > 1 else told

    def _told(self, at: int) -> dict[str, Any]:
        """Return all parameters that a row depends on."""
        work = self._works[at]
        return {
            **work.plan.parameters(),
            "given": work.given.digest,
            "seed": list(self._seeds_of(work)),
        }

    @staticmethod
    def _key(told: Mapping[str, Any]) -> str:
        return json.dumps([__version__, told], sort_keys=True)

    def _earlier(self, path: Path) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield each row of a document as (figures, key of all parameters that they depend on).

        The document may be of a sweep with other axes. Raises BadInput for any other file.
        """
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            said, version = read["parameters"], read["environment"]["omega"]
            fixed = {n: v for n, v in said.items() if n not in {VARIED, SEEDS, GIVEN}}
            for row in read["rows"]:
                varied = {name: row[name] for name in said[VARIED]}
                told = {**fixed, **varied}
                told = {name: one for name, one in told.items() if not name.startswith(SETTING)}
                told["settings"] = settings_at(fixed["settings"], varied)
                figures = {name: one for name, one in row.items() if name not in said[VARIED]}
                given = said[GIVEN][told["jobs"] or told["trace"]]
                told |= {"given": given, "seed": row[SEEDS]}
                if version == __version__:
                    for part in (row, row.get(DEVIATION, {})):
                        _BY_WORKLOAD.validate_python({n: part[n] for n in WORKLOADS if n in part})
                    yield figures, self._key(told)
        except OSError as error:
            why_not = error.strerror or str(error)
            raise BadInput(f"it cannot be read: {why_not}", file=str(path)) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadInput("this is no document of a sweep", file=str(path)) from error


def why(error: Exception) -> str:
    """Return a sentence on why a run failed."""
    if isinstance(error, InvariantBroken):
        return error.what
    return str(error) if isinstance(error, OmegaError) else f"{type(error).__name__}: {error}"


def table(results: Results) -> Table:
    """Return the rows as a table for people, with one line per point and workload."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in results.axes:
        made.add_column(option_of(name), justify="right", no_wrap=True)
    made.add_column("workload")
    for title in MEASURES.values():
        made.add_column(title, justify="right")
    for row in results.rows:
        said = [str(row[name]) for name in results.axes]
        for workload in (one for one in WORKLOADS if one in row):
            spread = row.get(DEVIATION, {}).get(workload, {})
            figures = [_figure(row[workload][name], spread.get(name)) for name in MEASURES]
            made.add_row(*said, workload, *figures)
            said = [""] * len(said)
    return made


def _figure(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return UNKNOWN
    written = f"{mean:,.0f}" if abs(mean) >= 1_000 else f"{mean:.3g}"  # noqa: PLR2004 - as digits
    seen = deviation is not None and deviation > abs(mean) * NOT_SEEN
    return f"{written} ±{deviation:.1g}" if seen else written
