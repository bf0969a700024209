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

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from omega.errors import InvariantBroken
from omega.model.outcomes import Verdict
from omega.testing.recorder import Ended, Event, History, Judged
from omega.testing.replay import Replay, Undo

STORY_LINES_MAX = 40


@dataclass(frozen=True, eq=False)
class _Step:
    """An event that has been applied, and what else could have been."""

    worker: int
    undo: Undo
    others: Iterator[int]


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
        self._hopeless: set[tuple[int | bytes, ...]] = set()
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

    def _place(self) -> tuple[int | bytes, ...]:
        """Return what tells where the search is: how the same events were ordered makes no odds."""
        return (*self._next, self._cell.revisions)

    def _choices(self) -> Iterator[int]:
        """Return the workers whose next event may be next in real time, likely ones first."""
        progress = zip(self._workers, self._next, strict=True)
        waiting = [worker for worker, (all_of, at) in enumerate(progress) if at < len(all_of)]
        if not waiting:
            return iter(())
        # Whoever was answered before another began comes before it.
        until = min(self._head(worker).answered for worker in waiting)
        able = [worker for worker in waiting if self._head(worker).started <= until]
        return iter(sorted(able, key=lambda worker: self._head(worker).answered))

    def _step(self, choices: Iterator[int]) -> _Step | None:
        for worker in choices:
            event = self._head(worker)
            if self._cell.strays(event):
                continue
            done = self._cell.apply(event)
            if isinstance(done, list):
                continue
            self._next[worker] += 1
            if self._place() in self._hopeless:
                self._next[worker] -= 1
                done()
                continue
            self._order.append(event)
            # What changed nothing need not be tried later instead: it can only be in the way.
            others = iter(()) if _changes_nothing(event) else choices
            return _Step(worker, done, others)
        return None

    def _take_back(self, step: _Step) -> Iterator[int]:
        step.undo()
        self._order.pop()
        self._next[step.worker] -= 1
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
        for worker in self._choices():
            event = self._head(worker)
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
        return f"{when}: {event.ended} ended of {tasks}"
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
    return event.ended == 0 and not event.asked_again


def _assert_one_at_a_time(events: tuple[Event, ...]) -> None:
    for earlier, later in pairwise(events):
        assert earlier.started <= earlier.answered <= later.started, told(later)
