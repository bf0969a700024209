"""Serialisability: is there an order, one after another, that explains all answers?

Goal     Prove of a race that whatever the processes were told is what a cell says to one who asks
         at a time, in an order that real time allows; or show where no order does.
Promise  Complete in both directions: every history that has such an order is accepted, and none
         that has not. The order is replayed through `omega.cell.judge`: verdicts, landing places,
         evictions, rows, sequences and revisions must be the same, and so must the final state.
Source   Wing and Gong, Testing and verifying concurrent objects (1993); Lowe (2017) for the memory
         of what has been tried. docs/decisions/0003-the-commit-rule.md.

Each worker asks one thing at a time, so the next event can only be the first that is left of some
worker: the search walks through all workers' events at once. The machines' revisions, which an
answer shows, leave it hardly ever a choice; where they do, it goes back and tries the other.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from omega.errors import InvariantBroken
from omega.model.outcomes import Verdict
from omega.testing.recorder import Ended, Event, History, Judged
from omega.testing.replay import Replay, Undo

STORY_LINES_MAX = 40


@dataclass(frozen=True, eq=False)
class _Choice:
    """A worker whose next event may be next, and whether that event is to have its effect."""

    worker: int
    has_effect: bool = True


@dataclass(frozen=True, eq=False)
class _Step:
    """An event that has been applied, and what else could have been."""

    chosen: _Choice
    undo: Undo
    others: Iterator[_Choice]


def serial_order(history: History) -> list[Event]:
    """Return the events in an order that explains every answer.

    Raises InvariantBroken, with the story of how far one comes, if there is no such order.
    """
    for events in history.workers:
        _assert_one_at_a_time(events)
    return _Search(history).run()


class _Search:
    def __init__(self, history: History) -> None:
        self._history = history
        self._workers = history.workers
        self._cell = Replay(history.before, history.jobs)
        self._next = [0] * len(history.workers)
        """For each worker, how many of its events have been applied."""
        self._order: list[Event] = []
        self._in_vain: frozenset[tuple[int, int]] = frozenset()
        """The events without an answer that are taken to have had no effect."""
        self._hopeless: set[Hashable] = set()
        """What has been applied, and the revisions it led to, where nothing led to the end."""
        self._farthest = -1
        self._story: list[str] = []

    def run(self) -> list[Event]:
        steps: list[_Step] = []
        choices = self._choices()
        while len(self._order) < len(self._history) or self._ends_otherwise():
            step = self._step(choices)
            if step is not None:
                steps.append(step)
                choices = self._choices()
                continue
            self._remember_this_end()
            if not steps:
                raise InvariantBroken("no serial order explains the answers", story=self._story)
            choices = self._take_back(steps.pop())
        return self._order

    def _ends_otherwise(self) -> bool:
        """Say whether the cell was found otherwise than this order leaves it."""
        return bool(self._cell.where_it_differs(self._history.after))

    def _place(self) -> Hashable:
        """Return what tells where the search is: how the same events were ordered makes no odds."""
        return tuple(self._next), self._in_vain, self._cell.revisions

    def _choices(self) -> Iterator[_Choice]:
        """Return what may be next in real time, likely ones first."""
        progress = zip(self._workers, self._next, strict=True)
        waiting = [worker for worker, (all_of, at) in enumerate(progress) if at < len(all_of)]
        if not waiting:
            return
        # Whoever was answered before another began comes before it.
        until = min(self._head(worker).answered for worker in waiting)
        able = [worker for worker in waiting if self._head(worker).started <= until]
        for worker in sorted(able, key=lambda worker: self._head(worker).answered):
            yield _Choice(worker)
            if _is_unanswered(self._head(worker)):
                yield _Choice(worker, has_effect=False)

    def _step(self, choices: Iterator[_Choice]) -> _Step | None:
        for choice in choices:
            event = self._head(choice.worker)
            if self._cell.strays(event):
                continue
            done = self._cell.apply(event) if choice.has_effect else _nothing
            if isinstance(done, list):
                continue
            # What changed nothing need not be tried later instead: it can only be in the way.
            step = _Step(choice, done, iter(()) if _changes_nothing(event) else choices)
            self._advance(choice, event)
            if self._place() in self._hopeless:
                self._take_back(step)
                continue
            return step
        return None

    def _advance(self, choice: _Choice, event: Event) -> None:
        if not choice.has_effect:
            self._in_vain |= {(choice.worker, self._next[choice.worker])}
        self._next[choice.worker] += 1
        self._order.append(event)

    def _take_back(self, step: _Step) -> Iterator[_Choice]:
        step.undo()
        self._order.pop()
        self._next[step.chosen.worker] -= 1
        self._in_vain -= {(step.chosen.worker, self._next[step.chosen.worker])}
        return step.others

    def _remember_this_end(self) -> None:
        self._hopeless.add(self._place())
        if len(self._order) > self._farthest:
            self._farthest = len(self._order)
            self._story = list(self._tell())[:STORY_LINES_MAX]

    def _tell(self) -> Iterator[str]:
        """Say what happened last here, and why nothing can happen next."""
        yield f"{len(self._order)} of {len(self._history)} events have an order; the last of them:"
        yield from (f"  {told(event)}" for event in self._order[-5:])
        if len(self._order) == len(self._history):
            yield "and then the cell is not as it was found:"
            yield from (f"  {line}" for line in self._cell.where_it_differs(self._history.after))
            return
        yield "and then none of these fits:"
        for choice in self._choices():
            event = self._head(choice.worker)
            yield f"  {told(event)}"
            done = self._cell.apply(event)
            if isinstance(done, list):
                yield from (f"    {line}" for line in done)
            else:  # it fits, but what follows it does not
                done()

    def _head(self, worker: int) -> Event:
        return self._workers[worker][self._next[worker]]


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


def _is_unanswered(event: Event) -> bool:
    return isinstance(event, Ended) and event.ended is None


def _nothing() -> None:
    """Take nothing back."""


def _assert_one_at_a_time(events: tuple[Event, ...]) -> None:
    for earlier, later in pairwise(events):
        assert earlier.started <= earlier.answered <= later.started, told(later)
