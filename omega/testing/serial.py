"""Serialisability: is there an order, one after another, that explains all answers?

Goal     Prove of a race that whatever the processes were told is what a cell says to one who asks
         at a time, in an order that real time allows; or show where no order does.
Promise  Complete in both directions: every history that has such an order is accepted, and none
         that has not. The order is replayed through `omega.cell.judge`: verdicts, landing places,
         evictions, rows, sequences and revisions must be the same, and so must the final state.
         A call that had no answer may have its effect at any moment after it was asked for, or
         never. Whoever searches too long says so, and that nothing is decided.
Source   Wing and Gong, Testing and verifying concurrent objects (1993); Lowe (2017) for the memory
         of what has been tried. docs/decisions/0003-the-commit-rule.md.

Each worker asks one thing at a time, so the next event can only be the first that is left of some
worker: the search walks through all workers' events at once. The machines' revisions, which an
answer shows, leave it hardly ever a choice; where they do, it goes back and tries the other. A call
without an answer holds nobody up: it stands in a lane of its own.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from omega.errors import InvariantBroken
from omega.model.outcomes import Verdict
from omega.testing.recorder import NEVER, Ended, Event, History, Judged
from omega.testing.replay import Replay, Undo

STORY_LINES_MAX = 40
DEAD_ENDS_MAX = 100_000
"""Sound histories have been seen to need a few hundred."""


Lane = int
"""The number of a worker, or of a call without an answer."""


@dataclass(frozen=True, eq=False)
class _Step:
    """An event that has been applied, and what else could have been."""

    lane: Lane
    undo: Undo
    others: Iterator[Lane]


def serial_order(history: History) -> list[Event]:
    """Return the events in an order that explains every answer; of those without one, what counts.

    Raises InvariantBroken, with the story of how far one comes, if there is no such order.
    """
    return _Search(history).run()


class _Search:
    def __init__(self, history: History) -> None:
        self._end = history.after
        self._cell = Replay(history.before, history.jobs)
        workers = [tuple(filter(_is_answered, events)) for events in history.workers]
        for events in workers:
            _assert_one_at_a_time(events)
        self._to_explain = sum(map(len, workers))
        """How many events must have their place."""
        self._lanes = workers + [
            (event,) for events in history.workers for event in events if not _is_answered(event)
        ]
        self._next = [0] * len(self._lanes)
        """For each lane, how many of its events have been applied."""
        self._explained = 0
        """... and how many of these have it."""
        self._order: list[Event] = []
        self._hopeless: set[Hashable] = set()
        """What has been applied, and the state it led to, where nothing led to the end."""
        self._farthest = -1
        self._story: list[str] = []

    def run(self) -> list[Event]:
        steps: list[_Step] = []
        choices = self._choices()
        while self._explained < self._to_explain or self._ends_otherwise():
            step = self._step(choices)
            if step is not None:
                steps.append(step)
                choices = self._choices()
                continue
            self._remember_this_end()
            if not steps:
                raise InvariantBroken("no serial order explains the answers", story=self._story)
            if len(self._hopeless) > DEAD_ENDS_MAX:
                raise InvariantBroken("undecided: too many orders to try", story=self._story)
            choices = self._take_back(steps.pop())
        return self._order

    def _ends_otherwise(self) -> bool:
        """Say whether the cell was found otherwise than this order leaves it."""
        return bool(self._cell.where_it_differs(self._end))

    def _place(self) -> Hashable:
        """Return what tells where the search is: how the same events were ordered makes no odds."""
        return tuple(self._next), self._cell.state

    def _choices(self) -> Iterator[Lane]:
        """Return what may be next in real time, likely ones first."""
        waiting = [
            lane for lane, events in enumerate(self._lanes) if self._next[lane] < len(events)
        ]
        if not waiting:
            return
        # Whoever was answered before another began comes before it.
        until = min(self._head(lane).answered for lane in waiting)
        able = [lane for lane in waiting if self._head(lane).started <= until]
        asked: set[Hashable] = set()
        for lane in sorted(able, key=self._when):
            event = self._head(lane)
            if isinstance(event, Ended) and not _is_answered(event):
                if _same_call(event) in asked:  # of several it is all one which came through
                    continue
                asked.add(_same_call(event))
            yield lane

    def _step(self, choices: Iterator[Lane]) -> _Step | None:
        for lane in choices:
            event = self._head(lane)
            if self._cell.strays(event):
                continue
            undo = self._cell.apply(event)
            if isinstance(undo, list):
                continue
            # What changed nothing need not be tried later instead: it can only be in the way.
            step = _Step(lane, undo, iter(()) if _changes_nothing(event) else choices)
            self._next[lane] += 1
            self._explained += _is_answered(event)
            self._order.append(event)
            if self._place() in self._hopeless:
                self._take_back(step)
                continue
            return step
        return None

    def _take_back(self, step: _Step) -> Iterator[Lane]:
        step.undo()
        self._explained -= _is_answered(self._order.pop())
        self._next[step.lane] -= 1
        return step.others

    def _remember_this_end(self) -> None:
        self._hopeless.add(self._place())
        if len(self._order) > self._farthest:
            self._farthest = len(self._order)
            self._story = list(self._tell())[:STORY_LINES_MAX]

    def _tell(self) -> Iterator[str]:
        """Say what happened last here, and why nothing can happen next."""
        yield f"{self._explained} of {self._to_explain} events have an order; the last of them:"
        yield from (f"  {told(event)}" for event in self._order[-5:])
        if self._explained == self._to_explain:
            yield "and then the cell is not as it was found:"
            yield from (f"  {line}" for line in self._cell.where_it_differs(self._end))
            return
        yield "and then none of these fits:"
        for lane in self._choices():
            event = self._head(lane)
            yield f"  {told(event)}"
            done = self._cell.apply(event)
            if isinstance(done, list):
                yield from (f"    {line}" for line in done)
            else:  # it fits, but what follows it does not
                done()

    def _when(self, lane: Lane) -> tuple[float, float]:
        event = self._head(lane)
        return event.answered, event.started

    def _head(self, lane: Lane) -> Event:
        return self._lanes[lane][self._next[lane]]


def told(event: Event) -> str:
    """Tell an event in one line."""
    when = f"{event.worker} {event.started:.6f}-{event.answered:.6f}"
    if isinstance(event, Ended):
        tasks = list(zip(event.job.tolist(), event.task.tolist(), strict=True))
        return f"{when}: {'unknown' if event.ended is None else event.ended} ended of {tasks}"
    transaction, outcome = event.transaction, event.outcome
    claims = [
        f"job {part.job} task {transaction.claims.task[at]} machine {outcome.machine[at]}"
        f" {Verdict(int(outcome.verdicts[at])).name}"
        for part in transaction.jobs
        for at in range(part.claims.start, part.claims.stop)
    ]
    rows = [
        f"machine {machine} at sequence {sequence}, revision {revision}"
        for machine, sequence, revision in zip(
            outcome.fresh.id, outcome.fresh.sequence, outcome.fresh.revision, strict=True
        )
    ]
    return f"{when}: {transaction.rule.value}: {', '.join(claims)}; {', '.join(rows)}"


def _changes_nothing(event: Event) -> bool:
    if isinstance(event, Judged):
        return not event.outcome.accepted.any()
    return event.ended == 0


def _is_answered(event: Event) -> bool:
    return event.answered < NEVER


def _same_call(event: Ended) -> Hashable:
    """Tell calls apart that have different effects."""
    return event.job.tobytes(), event.task.tobytes()


def _assert_one_at_a_time(events: tuple[Event, ...]) -> None:
    for earlier, later in pairwise(events):
        assert earlier.started <= earlier.answered <= later.started, told(later)
