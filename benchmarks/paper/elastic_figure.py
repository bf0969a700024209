"""What figures 15 and 16 share: the simulations, and a row for each cell and policy."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from benchmarks.harness import Findings, Stage
from benchmarks.paper.claims import Claim, Row, where
from benchmarks.paper.elastic_cell import (
    LIGHT,
    LOADED,
    POLICIES,
    ElasticSetting,
    simulate_elastic,
)
from benchmarks.paper.figure import Figure, run_all
from benchmarks.paper.setting import Setting
from omega.sim.sweep import Figures, Trial, mean_and_deviation


@dataclass(frozen=True, kw_only=True)
class ElasticFigure(Figure):
    """A figure of elastic jobs on a light and on a loaded cell."""

    policies: ClassVar[tuple[str, ...]] = POLICIES
    hours: float = 0.3
    gains: float = 0.6
    """The share of jobs with more activities than workers wanted: an input, not a result."""

    def settings(self) -> list[Setting]:
        """Return none: the cells of these figures are of their own."""
        return []

    @abstractmethod
    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""

    def measure(self, stage: Stage) -> Findings:
        """Simulate both cells with all seeds and policies, and judge the claims."""
        setting = ElasticSetting(
            cell=LIGHT, policies=self.policies, hours=self.hours, gains=self.gains
        )
        trials = [
            Trial(point, seed, replace(setting, cell=cell, seed=seed))
            for point, cell in enumerate((LIGHT, LOADED))
            for seed in range(self.seeds)
        ]
        found = run_all(stage, simulate_elastic, trials, workers=self.workers)
        by_cell: dict[str, dict[int, Figures]] = {LIGHT: {}, LOADED: {}}
        for trial, figures in found:
            by_cell[trial.work.cell][trial.seed] = figures
        rows, by_seed = self._rows(by_cell)
        alone_by_claim = zip(*(self.claims(alone) for alone in by_seed), strict=True)
        claims = [
            claim.row(alone) for claim, alone in zip(self.claims(rows), alone_by_claim, strict=True)
        ]
        done = Counter(
            runs=len(trials) * len(self.policies),
            tasks_placed=sum(row["tasks_placed"] for row in rows),
        )
        return Findings(self._finding(claims), rows, {"claims": claims}, dict(done))

    def _rows(
        self, by_cell: Mapping[str, Mapping[int, Figures]]
    ) -> tuple[list[dict[str, Any]], list[list[Row]]]:
        """Return a row of means for each cell and policy, and the rows of each seed alone."""
        rows: list[dict[str, Any]] = []
        by_seed: list[list[Row]] = [[] for _ in range(self.seeds)]
        for cell, runs in by_cell.items():
            for policy in self.policies:
                of = [_measures(runs[seed][policy]) for seed in range(self.seeds)]
                means, deviations = mean_and_deviation(of)
                named = {"cell": cell, "policy": policy}
                sample = {"samples": runs[0][policy]["samples"]}
                spread = {"deviation": deviations} if self.seeds > 1 else {}
                rows.append({**named, **means, **sample, **spread})
                for seed, alone in enumerate(by_seed):
                    alone.append({**named, **of[seed]})
        return rows, by_seed


def row_of(rows: Sequence[Row], cell: str, policy: str) -> Row:
    """Return the row of a cell and a policy."""
    (row,) = where(rows, cell=cell, policy=policy)
    return row


def _measures(figures: Figures) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name != "samples"}
