"""Serialisability: is there an order, one event after another, that explains all answers?

Goal     Prove that the answers in a race are those of a cell that serves one call at a time, in an
         order that real time allows; or show where there is no such order.
Promise  The search is complete in both directions: every history that has such an order is
         accepted, and no other. The order is replayed through `omega.cell.judge`: verdicts,
         machines, evictions, rows, sequences and revisions must be equal, and so must the final
         state. A call without an answer may take effect at any moment after it was made, or never.
         A search that takes too long raises an error which says that nothing was decided.
Source   Wing and Gong, Testing and verifying concurrent objects (1993); Lowe (2017) for remembering
         the states that were tried. docs/decisions/0003-the-commit-rule.md.

Each worker makes one call at a time, so the next event can only be some worker's first remaining
one: the search goes through all workers' events at once. The machines' revisions in an answer
rarely leave it a choice; where they do, it tries one and, if that fails, goes back and tries the
other. A call without an answer delays no others: it has a lane of its own.
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
"""Correct histories have needed a few hundred."""


Lane = int
"""The number of a worker, or of a call without an answer."""


@dataclass(frozen=True, eq=False)
class _Step:
    """An event that was applied, and the lanes that could have been next instead."""

    lane: Lane
    undo: Undo
    others: Iterator[Lane]


def serial_order(history: History) -> list[Event]:
    """Return the events in an order that explains every answer.

    Calls without an answer are included if they had an effect. Raises InvariantBroken, with the
    longest order found and what does not fit after it, if there is no such order.
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
        """How many events need a position in the order."""
        self._lanes = workers + [
            (event,) for events in history.workers for event in events if not _is_answered(event)
        ]
        self._next = [0] * len(self._lanes)
        """For each lane, how many of its events have been applied."""
        self._explained = 0
        """How many of these have one."""
        self._order: list[Event] = []
        self._hopeless: set[Hashable] = set()
        """Sets of applied events with the resulting state, from which the end cannot be reached."""
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
        """Return whether the cell that was found at the end differs from this order's."""
        return bool(self._cell.where_it_differs(self._end))

    def _place(self) -> Hashable:
        """Return the position of the search; it does not depend on the order of the same events."""
        return tuple(self._next), self._cell.state

    def _choices(self) -> Iterator[Lane]:
        """Yield the lanes whose event may be next in real time, likely ones first."""
        waiting = [
            lane for lane, events in enumerate(self._lanes) if self._next[lane] < len(events)
        ]
        if not waiting:
            return
        # An event that was answered before another was started comes before it.
        until = min(self._head(lane).answered for lane in waiting)
        able = [lane for lane in waiting if self._head(lane).started <= until]
        asked: set[Hashable] = set()
        for lane in sorted(able, key=self._when):
            event = self._head(lane)
            if isinstance(event, Ended) and not _is_answered(event):
                if _same_call(event) in asked:  # of several equal calls any one will do
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
            # An event without effect is not tried later instead, because it can only be in the way.
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
        """Yield lines with the last events of this order, and why no event fits after them."""
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
            else:  # it fits, but no order goes on from it
                done()

    def _when(self, lane: Lane) -> tuple[float, float]:
        event = self._head(lane)
        return event.answered, event.started

    def _head(self, lane: Lane) -> Event:
        return self._lanes[lane][self._next[lane]]


def told(event: Event) -> str:
    """Return an event as one line of text."""
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
    """Return a key that is equal for calls with the same effects."""
    return event.job.tobytes(), event.task.tobytes()


def _assert_one_at_a_time(events: tuple[Event, ...]) -> None:
    for earlier, later in pairwise(events):
        assert earlier.started <= earlier.answered <= later.started, told(later)
