"""The parsync scheduler: it prefers good machines, or fresh parts when its queue waits long.

Goal     Show that synchronisation is a seam: a placement that depends on the age of each part of
         its view, with imports of omega's public packages only.
Promise  Tasks fill one part of the cell after the other, in the order of the strategy. Inside a
         part machines are drawn, those of a higher score more often. The order depends on the view,
         its signals and, under `adaptive`, on which edge of the threshold was passed last.
Source   ParSync (USENIX ATC 2021): quality-first, latency-first, adaptive; docs/papers/parsync.md.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Final, Self
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from omega.cell.signals import Signals
from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts, Ids, Index, Score
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.placement.feasibility import Room
from omega.placement.groups import place_groups
from schedulers.settings import read_settings

SEED_MAX: Final = 2**32 - 1
_GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
_64_BITS: Final = 2**64 - 1
_MIX: Final = ((30, np.uint64(0xBF58_476D_1CE4_E5B9)), (27, np.uint64(0x94D0_49BB_1331_11EB)))
_SCORES: Final = 2**53
"""Scores have the resolution of uniform random doubles, 1 / 2^53."""


class Strategy(Enum):
    """Which part of the cell is filled first."""

    QUALITY = "quality-first"  # the part whose machines with room have the best mean score
    LATENCY = "latency-first"  # the part that was read most recently
    ADAPTIVE = "adaptive"  # quality-first until the head of the queue has waited too long


class ScoredBy(Enum):
    """What the score of a machine depends on."""

    MACHINE = "machine"  # the machine alone: all tasks prefer the same machines
    TASK = "task"  # the machine and what the task asks for


class Settings(BaseModel):
    """The settings of the scheduler; pydantic parses them from text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = Strategy.ADAPTIVE
    threshold: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 1.5
    """In seconds. If the head of the queue has waited longer, `adaptive` becomes latency-first."""
    hysteresis: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.2
    """`adaptive` becomes quality-first again once the head of the queue has waited less than
    threshold x (1 - hysteresis)."""
    score: ScoredBy = ScoredBy.MACHINE
    seed: Annotated[int, Field(ge=0, le=SEED_MAX)] = 0
    """The seed of the scores."""
    learn: bool = True
    """Sets `Scheduler.learns_from_refusals`."""


class ParSyncScheduler(Scheduler):
    """Chooses a part of the cell, then machines inside it."""

    kind = "parsync"

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.learns_from_refusals = self.settings.learn
        self.puts_latency_first = self.settings.strategy is Strategy.LATENCY
        self._scored: tuple[Ids, int, Score] | None = None
        """The machine ids, the key and the scores that `_score` computed last."""

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return a scheduler with these settings, by name and as text; raises BadInput."""
        return cls(read_settings(Settings, settings))

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims on machines of one part of the cell after the other."""
        if self.settings.strategy is Strategy.ADAPTIVE:
            self._adapt(view.signals)

        def choose(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
            return draw_by_part(room, wanted, rng, self._score(room), self._rank(view))

        return place_groups(view, job, choose, rng)

    def _adapt(self, signals: Signals) -> None:
        """Switch between latency-first and quality-first at the edges of the threshold."""
        upper_s = self.settings.threshold
        if signals.head_age_s > upper_s:
            self.puts_latency_first = True
        elif signals.head_age_s < upper_s * (1 - self.settings.hysteresis):
            self.puts_latency_first = False

    def _rank(self, view: View) -> Score | None:
        """Return the rank of each part, (parts,), lower first; None to rank by mean score only."""
        return view.signals.part_age_s if self.puts_latency_first else None

    def _score(self, room: Room) -> Score:
        key = self.settings.seed
        if self.settings.score is ScoredBy.TASK:
            key ^= key_of(room.task_group)
        if self._scored is None or self._scored[0] is not room.view.id or self._scored[1] != key:
            self._scored = room.view.id, key, scores(room.view.id, key)
        return self._scored[2][room.at]


def scores(machine: Ids, key: int) -> Score:
    """Return the score of each machine id, uniform in (0, 1): a hash of the id and the key."""
    mixed = machine.astype(np.uint64) + np.uint64((key + 1) * _GOLDEN & _64_BITS)
    for shift, factor in _MIX:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / _SCORES


def key_of(group: TaskGroup) -> int:
    """Return a hash of what a task of a group asks for: amounts, GPUs and constraints."""
    asks = (group.demand.tolist(), group.gpus, group.gpu_slices, *map(str, group.constraints))
    return crc32(repr(asks).encode())


def draw_by_part(
    room: Room, wanted: int, rng: np.random.Generator, score: Score, rank: Score | None
) -> Counts:
    """Return how many tasks each machine of the room gets.

    Parts are filled one after the other: the lowest `rank` (parts,) first, and among equal ranks
    the highest mean score. The mean is over machines, weighted by the tasks that each takes;
    `score` is (machines,).
    """
    part = room.view.part[room.at]
    given = np.zeros_like(room.tasks)
    for first in _parts_in_order(part, room.tasks, score, rank):
        inside = (part == first).nonzero()[0]
        given[inside] = draw_weighted(room.tasks[inside], score[inside], wanted, rng)
        wanted -= int(given[inside].sum())
        if not wanted:
            break
    return given


def _parts_in_order(part: Index, tasks: Counts, score: Score, rank: Score | None) -> Iterator[int]:
    room = np.bincount(part, weights=tasks)
    mean = np.bincount(part, weights=tasks * score) / np.maximum(room, 1)
    if rank is None:
        order = np.argsort(-mean, kind="stable")
    else:
        order = np.lexsort((-mean, rank[: len(room)]))
    return (int(one) for one in order if room[one])


def draw_weighted(tasks: Counts, score: Score, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many of the wanted tasks each machine gets, drawn by weight without replacement.

    A machine has a place for each task that it takes (`tasks`). Each place gets an exponential
    time whose rate is the machine's score, and the `wanted` places with the least times are chosen.
    (Efraimidis and Spirakis, Information Processing Letters 97, 2006.)
    """
    places = np.repeat(np.arange(len(tasks)), np.minimum(tasks, wanted))
    if len(places) > wanted:
        times = rng.exponential(size=len(places)) / score[places]
        places = places[np.argpartition(times, wanted - 1)[:wanted]]
    return np.bincount(places, minlength=len(tasks)).astype(np.int64)
