"""Schedulers as `omega scheduler run` runs them, to compare with `omega sim run --queue live`.

There are three arms: partitioned synchronisation, another package's kind of scheduler, and rounds
of the ML-GPU scheduler beside batch and service.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from benchmarks.gpu_rounds import GpuRounds
from benchmarks.harness import Stage
from benchmarks.rival import Role
from benchmarks.steady_state import Point
from omega.cell.view import View
from omega.framework.kinds import ENTRY_POINT_GROUP
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import fill
from omega.placement.feasibility import Room
from omega.placement.groups import place_groups
from omega.sim.experiment import Experiment
from omega.sim.live_run import LiveRun, SyncConfig
from omega.sim.results import Result
from omega.sync.choice import Sync
from omega.workload.arrivals import BATCH

PARTITIONED: Final = "partitioned"
STRANGER: Final = "stranger"
ROUNDS: Final = "rounds"
GAP_S: Final = 2.0
SHARES: Final = ("furthest", "mean")
"""Figures of rounds: how far jobs were from their shares, at most and on average."""


class RoomiestScheduler(Scheduler):
    """Another package's scheduler: tasks go to the machines with room for most of them."""

    kind = "roomiest"

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Claim the roomiest machines."""
        return place_groups(view, job, _roomiest, rng)


def _roomiest(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    order = rng.permutation(len(room.tasks))  # ties at random
    return fill(order[np.argsort(-room.tasks[order], kind="stable")], room.tasks, wanted)


@dataclass(frozen=True, kw_only=True)
class LivePoint(Point):
    """The settings of a contest of schedulers as `omega scheduler run` runs them."""

    arm: str
    sync: str = Sync.DELTA.value

    @property
    def kind(self) -> str:
        """The kind of scheduler that competes."""
        return RoomiestScheduler.kind if self.arm == STRANGER else BATCH

    def role(self, kind: str, replica: int, *, number: int, of: int, seed: int) -> Role:
        """Return the role of one scheduler: number `number` of `of`, from 0."""
        usual = super().role(kind, replica, number=number, of=of, seed=seed)
        return replace(usual, as_paper=False, sync=self.sync, turn=(number, of), sync_gap_s=GAP_S)

    def simulate(self, experiment: Experiment) -> Result:
        """Run the same in virtual time, as `omega sim run --queue live` does."""
        sync = SyncConfig(by=Sync(self.sync), gap_s=GAP_S)
        return LiveRun(experiment, sync, lambda _: None).finish()


def points_of(arm: str, usual: Point, schedulers: Sequence[int]) -> list[LivePoint]:
    """Return the contests of an arm, by the number of schedulers."""
    sync = Sync.PARTITIONED if arm == PARTITIONED else Sync.DELTA
    values = {name: value for name, value in vars(usual).items() if name != "schedulers"}
    return [LivePoint(**values, schedulers=n, arm=arm, sync=sync.value) for n in schedulers]


@contextmanager
def registered() -> Iterator[None]:
    """Register another package's scheduler for the block, here and in started processes."""
    value = f"{RoomiestScheduler.__module__}:{RoomiestScheduler.__name__}"
    with TemporaryDirectory(prefix="omega-") as folder:
        about = Path(folder) / "strangers-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
        entry = f"[{ENTRY_POINT_GROUP}]\n{RoomiestScheduler.kind} = {value}\n"
        (about / "entry_points.txt").write_text(entry)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, before)))
        sys.path.append(folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before


def play_rounds(
    stage: Stage, rounds: GpuRounds, times: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run rounds live and in virtual time, with several seeds; return the SHARES of both."""
    live, virtual = [], []
    for seed in range(rounds.seed, rounds.seed + times):
        stage.go_on()
        found = replace(rounds, seed=seed).measure(stage).summary
        live.append({name: found[name] for name in SHARES})
        virtual.append({name: found["virtual"][name] for name in SHARES})
    return live, virtual
