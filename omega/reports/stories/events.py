"""The events of a story, and their words.

Goal     Tell what happened, when, by whom and why, one line for each event.
Promise  Events are in time. Tasks to which the same happened, one after another, are one event.
         The numbers of tasks and claims are exact; of places, at most PLACES_TOLD_MAX are told.
Source   omega.store.stories.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import Final

from omega.reports.wording import ranges, things
from omega.store.stories import Searched

PLACES_TOLD_MAX: Final = 100
"""Places of one event that are told ..."""
GROUPS_TOLD_MAX: Final = 3
"""... and on how many machines, or of how many jobs, its words tell the tasks."""
COMMIT_MS_MAX: Final = 10_000
"""A commit is recorded within this time after the runs that it began and ended."""


class Happened(Enum):
    """What happened. In the order in which things of one moment are told."""

    SUBMITTED = "submitted"
    LEASED = "leased"
    EVICTED = "evicted"
    MOVED = "moved"
    PLACED = "placed"
    REFUSED = "refused"
    ENDED = "ended"
    LOST = "lost"
    FINISHED = "finished"


RANK: Final = {what: rank for rank, what in enumerate(Happened)}


@dataclass(frozen=True, order=True)
class Place:
    """A task on a machine."""

    job: int
    task: int
    machine: str


@dataclass(frozen=True)
class Conflict:
    """Claims that were refused for one reason, by one scheduler."""

    verdict: str
    claims: int
    taken_by: str | None
    """Who had been granted a claim on the machine last before, if that is known ..."""
    taken_for: int | None
    """... and for which job."""

    @property
    def words(self) -> str:
        """The conflict in words."""
        said = f"{self.claims:,} {self.verdict.replace('_', ' ')}"
        if self.taken_by is None:
            return said
        return f"{said}, taken by {self.taken_by} for job {self.taken_for}"


@dataclass(frozen=True, kw_only=True)
class StoryEvent:
    """Something that happened."""

    what: Happened
    at_ms: int
    until_ms: int
    """When it happened to the last of the tasks."""
    by: str | None = None
    """The scheduler whose commit it was; None if that is not known, or if it was none."""
    transaction: str | None = None
    tasks: int = 0
    """How many tasks, or refused claims."""
    places: tuple[Place, ...] = ()
    """Where, at most PLACES_TOLD_MAX; of tasks that moved, where they were."""
    conflicts: tuple[Conflict, ...] = ()
    for_jobs: tuple[int, ...] = ()
    """Of an eviction: the jobs that were granted the room."""
    detail: str = ""
    """What else is known, in words."""
    told: str = ""
    """All of it in words but when and by whom."""

    def row(self) -> dict[str, object]:
        """Return the event as JSON types."""
        return {
            "what": self.what.value,
            "at_ms": self.at_ms,
            "until_ms": self.until_ms,
            "by": self.by,
            "transaction": self.transaction,
            "tasks": self.tasks,
            "places": [vars(place) for place in self.places],
            "conflicts": [vars(conflict) for conflict in self.conflicts],
            "for_jobs": list(self.for_jobs),
            "told": self.told,
        }


@dataclass(frozen=True)
class Story:
    """What happened to a job or on a machine."""

    events: tuple[StoryEvent, ...]
    searched: Searched
    not_told: tuple[str, ...] = field(default=())
    """Sentences on what is not on record, or was not searched."""

    def document(self) -> dict[str, object]:
        """Return the story as JSON types."""
        return {
            "events": [event.row() for event in self.events],
            "searched": vars(self.searched),
            "not_told": list(self.not_told),
        }


def in_time(events: Iterable[StoryEvent]) -> list[StoryEvent]:
    """Return events in time; those that say the same of further tasks are joined.

    The end of a job is last, although it may be recorded just before the end of its last task.
    """
    ordered = sorted(events, key=_moment)
    return [_joined(list(alike)) for _, alike in groupby(ordered, key=_sameness)]


def _moment(event: StoryEvent) -> tuple[object, ...]:
    is_last = event.what is Happened.FINISHED
    return is_last, event.at_ms, RANK[event.what], event.transaction or "", event.places


def _sameness(event: StoryEvent) -> tuple[object, ...]:
    return event.what, event.by, event.transaction, event.for_jobs, event.detail


def _joined(alike: Sequence[StoryEvent]) -> StoryEvent:
    """Return one event for all of these."""
    if len(alike) == 1:
        return alike[0]
    places = sorted(place for event in alike for place in event.places)
    return replace(
        alike[0],
        until_ms=max(event.until_ms for event in alike),
        tasks=sum(event.tasks for event in alike),
        places=tuple(places[:PLACES_TOLD_MAX]),
        conflicts=tuple(conflict for event in alike for conflict in event.conflicts),
    )


def conflict_words(event: StoryEvent) -> str:
    """Return why claims were refused, in words."""
    told = sum(conflict.claims for conflict in event.conflicts)
    words = [conflict.words for conflict in event.conflicts]
    return "; ".join([*words, *([f"{event.tasks - told:,} more"] if told < event.tasks else [])])


def task_words(event: StoryEvent, where: Callable[[Place], str]) -> str:
    """Return tasks with where they are, for whom they made way, and what else is known."""
    said = how_many(event, where)
    if len(event.for_jobs) == 1:
        said += f", for job {event.for_jobs[0]}"
    elif event.for_jobs:
        said += f", for jobs {', '.join(map(str, event.for_jobs))}"
    if event.what is Happened.LOST:
        said += ": the machine failed, left or shrank"
    return f"{said}: {event.detail}" if event.detail else said


def how_many(event: StoryEvent, where: Callable[[Place], str]) -> str:
    """Return tasks with where they are, or only their number if that would be too long."""
    groups: dict[str, list[int]] = {}
    for place in event.places:
        groups.setdefault(where(place), []).append(place.task)
    if event.tasks == len(event.places) and len(groups) <= GROUPS_TOLD_MAX:
        return "; ".join(f"{_tasks(tasks)} {there}" for there, tasks in groups.items())
    return f"{things(event.tasks, 'task')}"


def _tasks(numbers: Sequence[int]) -> str:
    return f"{'task' if len(numbers) == 1 else 'tasks'} {ranges(sorted(numbers))}"


def not_searched(searched: Searched, *, are_all_runs: bool) -> list[str]:
    """Return sentences on records that were not searched."""
    said = []
    if not searched.are_all:
        near = ""
        if searched.near:
            near = f" and, of earlier ones, those around {things(searched.near, 'time')}"
        said.append(
            f"Of commits, only the newest {searched.transactions:,} were searched{near}: who did"
            " something else before is not told."
        )
    if not are_all_runs:
        said.append("Of times that tasks ran, only some are told: mostly the newest.")
    return said
