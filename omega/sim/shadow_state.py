"""The shadow state of a simulated cell, computed only from what was granted and what ended.

Goal     Know what every machine must hold, and show its last events when the cell differs.
Promise  The shadow state shares no array with the cell; tasks are entered one at a time. A
         contradiction raises InvariantBroken with the last events of a machine that shows it.
Source   TigerBeetle's auditor; docs/decisions/0023-sweeps-and-audits.md.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Final, NoReturn

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Amounts, Index, Mask, all_true, any_kind
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import Kind

STORY_LINES_MAX: Final = 30
OPEN: Final = int(MachineState.OPEN)

Task = tuple[int, int]
"""A job and the index of its task; jobs of the start state are negative."""
Held = tuple[int, tuple[int, ...]]
"""A machine, and the amounts held on it, one for each kind."""
Line = tuple[float, str, Iterable[int], Task | None]
"""An entry of a story: time, what happened, amounts, and the task concerned."""


class ShadowState:
    """What must be true of a cell."""

    def __init__(self, rows: MachineRows, now_s: Callable[[], float]) -> None:
        """Copy the cell's rows; `start` then enters the tasks that hold what is used."""
        self._now_s = now_s
        machines = int(rows.id.max(initial=0)) + 1  # ids count from 1
        self.capacity: Amounts = np.zeros((machines, len(Kind)), np.int64)
        self.used = self.capacity.copy()
        """What tasks hold."""
        self.locked = self.capacity.copy()
        """What is offered and not yet granted: (machines, kinds)."""
        self.sequence = np.zeros(machines, np.int64)
        self.state = np.full(machines, MachineState.GONE, np.int64)
        self.capacity[rows.id], self.used[rows.id] = rows.capacity, rows.used
        self.sequence[rows.id], self.state[rows.id] = rows.sequence, rows.state
        self.live: dict[Task, Held] = {}
        self.over: set[Task] = set()
        self._placed: Counter[int] = Counter()
        """By job, how many of its tasks run or have ended."""
        self._gangs: dict[int, int] = {}
        """By job, the minimum of its gang."""
        self._offers: list[Amounts] = []
        """Each with a row for each machine, from machine 1 on, and the kinds that are offered."""
        self._taken: Amounts | None = None
        """What was granted since an offer was last given back; None before the first offer."""
        self._offers_told: deque[tuple[float, str, Amounts]] = deque(maxlen=STORY_LINES_MAX)
        self._due: dict[float, list[dict[Task, Held]]] = defaultdict(list)
        self._due_with: dict[Task, dict[Task, Held]] = {}
        """By task, the tasks that are due to end in the same event."""
        self._times_due: list[float] = []
        self._stories: dict[int, deque[Line]] = defaultdict(lambda: deque(maxlen=STORY_LINES_MAX))

    def start(self, tasks: Iterable[tuple[Task, Held]]) -> None:
        """Enter the tasks that run at the start; fail unless they hold exactly what is used."""
        self.live.update(tasks)
        held = np.zeros_like(self.used)
        for on, amounts in self.live.values():
            held[on] += amounts
        if (machine := _first(any_kind(self.used != held))) is not None:
            told = f"starts with {_said(self.used[machine])}, its tasks {_said(held[machine])}"
            self.fail(machine, told)

    def commit(self, transaction: Transaction, job: LeasedJob, outcome: Outcome) -> None:
        """Enter an outcome, claim by claim; fail if a grant or a refusal was wrong."""
        claims, (part,) = transaction.claims, transaction.jobs
        shapes = [tuple(row) for row in claims.shapes.tolist()]
        landed = outcome.machine
        of_claims = (claims.seen_on(landed), claims.shape_on(landed))
        columns = (claims.task, landed, *of_claims, outcome.verdicts)
        self._gangs[job.id] = job.spec.minimum
        # A gang may have broken since its scheduler planned: then it must be granted whole again.
        must_get = max(part.grants_min, job.spec.minimum - self._placed[job.id])
        granted_on: dict[int, None] = {}
        granted = 0
        for task, machine, seen, shape, verdict in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            who, wants = (job.id, task), shapes[shape]
            if verdict == Verdict.ACCEPTED:
                if transaction.rule is ConflictRule.SEQUENCE and seen != self.sequence[machine]:
                    what = f"granted on sequence {seen}; it was {self.sequence[machine]}"
                    self.fail(machine, f"{_named(who)} was {what}")
                self._grant(who, machine, wants)
                granted_on[machine] = None
                granted += 1
            else:
                self._tell(machine, f"refused to {_named(who)}: {Verdict(verdict).name}", wants)
                self._expect_a_cause(verdict, machine, wants, seen, in_turn=must_get <= 0)
        if granted and granted < part.grants_min:
            self.fail(next(iter(granted_on)), f"job {job.id} got {granted} of {part.grants_min}")
        if granted and self._placed[job.id] < job.spec.minimum:
            what = f"job {job.id}, a gang of {job.spec.minimum}, has {self._placed[job.id]} tasks"
            self.fail(next(iter(granted_on)), what)
        self._expect_room(np.array([*granted_on], dtype=np.intp))
        for machine in granted_on:
            self.sequence[machine] += 1

    def expect_ends(self, ends: Iterable[tuple[float, Iterable[Task]]]) -> None:
        """Enter when granted tasks are due: one entry for each event in which tasks end."""
        for at_s, tasks in ends:
            batch = {}
            for task in tasks:
                if task not in self.live:
                    raise InvariantBroken(f"{_named(task)} is to run and was never granted")
                batch[task] = self.live[task]
                self._due_with[task] = batch
            self._due[at_s].append(batch)
            heappush(self._times_due, at_s)

    def end(self, released: Iterable[Held]) -> None:
        """Remove tasks that end now; fail unless they are due now and hold these amounts."""
        given_back = Counter(released)
        batches = self._due[self._now_s()]
        for batch in batches:
            if Counter(batch.values()) == given_back:
                break
        else:
            machine, amounts = next(iter(given_back))
            self._tell(machine, "given back", amounts)
            self.fail(machine, f"{given_back.total()} tasks end that were not to, or not so")
        batches.remove(batch)
        for task, (machine, amounts) in batch.items():
            del self.live[task], self._due_with[task]
            self.over.add(task)
            self.used[machine] -= amounts
            self._tell(machine, "ended", amounts, task)

    def lose(self, tasks: Mapping[Task, Held]) -> None:
        """Remove lost tasks; fail if tasks run of a gang that is below its minimum."""
        for task, held in tasks.items():
            machine, amounts = held
            if self.live.pop(task, None) != held:
                self.fail(machine, f"{_named(task)} is lost and did not run so")
            self._due_with.pop(task, {}).pop(task, None)
            self._placed[task[0]] -= 1
            self.used[machine] -= amounts
            self._tell(machine, "lost", amounts, task)
        jobs = {job for job, _ in tasks if self._gangs.get(job)}
        fallen = {job for job in jobs if self._placed[job] < self._gangs[job]}
        for task, (machine, _) in self.live.items() if fallen else ():
            if task[0] in fallen:
                self.fail(machine, f"{_named(task)} runs on, and its gang has fallen")

    def set_state(self, machine: int, state: MachineState) -> None:
        """Enter a machine's state; fail if a machine that is down has running tasks."""
        if self.state[machine] == state:
            return
        self.state[machine] = state
        self.sequence[machine] += 1
        self._tell(machine, state.name.lower(), self.capacity[machine].tolist())
        if state is MachineState.DOWN and self.used[machine].any():
            self.fail(machine, f"is down and holds {_said(self.used[machine])}")

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Enter a machine's new capacity."""
        self.capacity[machine] = capacity
        self.sequence[machine] += 1
        self._tell(machine, "resized", capacity.tolist())

    @property
    def cpu_used(self) -> int:
        """CPU that tasks use."""
        return int(self.used[:, Kind.CPU_MILLI].sum())

    @property
    def cpu_open(self) -> int:
        """CPU capacity of the open machines."""
        return int(self.capacity[self.state == OPEN, Kind.CPU_MILLI].sum())

    @property
    def cpu_offered(self) -> int:
        """CPU of all offers that have not been given back."""
        return sum(int(offered[:, Kind.CPU_MILLI].sum()) for offered in self._offers)

    def offer(self, amounts: Amounts) -> None:
        """Lock an offer, (machines, kinds); after the first, only offered amounts are granted."""
        if self._taken is None:
            self._taken = np.zeros_like(amounts)
        self._lock(amounts, 1)
        self._offers_told.append((self._now_s(), "offered", amounts))
        kinds = amounts.shape[1]
        held = self.used[1:, :kinds] + self.locked[1:, :kinds]
        if (at := _first(any_kind(held > self.capacity[1:, :kinds]))) is not None:
            self._expect_room(np.array([at + 1]))
        self._offers.append(amounts)

    def take_back(self, left: Amounts) -> None:
        """Unlock the rest of an offer; fail unless it is what was offered less what was granted."""
        taken, self._taken = self._taken, np.zeros_like(left)
        meant = (at for at, one in enumerate(self._offers) if all_true(one - left == taken))
        if (number := next(meant, None)) is None:
            machine = 1 + (_first(any_kind(left > 0)) or 0)
            self.fail(machine, "what is given back is not what is left of an offer")
        del self._offers[number]
        self._lock(left, -1)
        self._offers_told.append((self._now_s(), "given back of an offer", left))

    def compare_free(self, free: Amounts) -> None:
        """Fail unless the allocator's free amounts are those neither used nor offered."""
        expected = (self.capacity - self.used - self.locked)[1:, : free.shape[1]]
        if (at := _first(any_kind(expected != free))) is not None:
            self.fail(at + 1, f"has {_said(expected[at])} to offer; told {_said(free[at])}")

    def expect_punctual_ends(self) -> None:
        """Fail if a task runs that was due to end earlier than now."""
        while self._times_due and self._times_due[0] < self._now_s():
            at_s = heappop(self._times_due)
            for batch in self._due.pop(at_s, ()):
                for task, (machine, _) in batch.items():
                    self.fail(machine, f"{_named(task)} was to end at {at_s:.3f} s and runs on")

    def compare(self, rows: MachineRows) -> None:
        """Fail unless the cell's rows equal the shadow state."""
        at = rows.id
        differs = any_kind(rows.used != self.used[at])
        differs |= any_kind(rows.capacity != self.capacity[at])
        differs |= (rows.sequence != self.sequence[at]) | (rows.state != self.state[at])
        if (row := _first(differs)) is None:
            return
        machine = int(at[row])
        if (rows.used[row] != self.used[machine]).any():
            told = f"expected {_said(self.used[machine])}, cell {_said(rows.used[row])}"
        elif rows.sequence[row] != self.sequence[machine]:
            told = f"sequence {rows.sequence[row]}; it rose to {self.sequence[machine]}"
        elif rows.state[row] != self.state[machine]:
            now, known = MachineState(int(rows.state[row])), MachineState(int(self.state[machine]))
            told = f"is {now.name}; it became {known.name}"
        else:
            told = f"has {_said(rows.capacity[row])}; it had {_said(self.capacity[machine])}"
        self.fail(machine, told)

    def fail(self, machine: int, what: str) -> NoReturn:
        """Raise InvariantBroken with the last events of a machine."""
        offers = [
            (at_s, what, rows[machine - 1].tolist(), None)
            for at_s, what, rows in self._offers_told
            if rows[machine - 1].any()
        ]
        lines = sorted([*self._stories[machine], *offers], key=lambda line: line[0])
        story = [
            f"{at_s:.3f} s: {line}{f' {_named(task)}' if task else ''}: {_said(amounts)}"
            for at_s, line, amounts, task in lines[-STORY_LINES_MAX:]
        ]
        raise InvariantBroken(f"{self._now_s():.3f} s: machine {machine}: {what}", story=story)

    def _grant(self, task: Task, machine: int, amounts: tuple[int, ...]) -> None:
        self._tell(machine, "granted to", amounts, task)
        if not 0 < machine < len(self.capacity):
            self.fail(1, f"{_named(task)} was granted on machine {machine}, which is not there")
        if self.state[machine] != OPEN:
            self.fail(machine, f"{_named(task)} was granted on a machine that is not open")
        if task in self.live:
            self.fail(machine, f"{_named(task)} runs on machine {self.live[task][0]} already")
        if task in self.over:
            self.fail(machine, f"{_named(task)} is over already")
        self.live[task] = machine, amounts
        self._placed[task[0]] += 1
        self.used[machine] += amounts
        if self._taken is not None:
            self.locked[machine] -= amounts
            self._taken[machine - 1] += amounts[: self._taken.shape[1]]

    def _lock(self, amounts: Amounts, sign: int) -> None:
        self.locked[1:, : amounts.shape[1]] += sign * amounts

    def _expect_room(self, machines: Index) -> None:
        """Fail if an amount of these machines is used or offered twice."""
        used, locked = self.used[machines], self.locked[machines]
        if (at := _first(any_kind(locked < 0))) is not None:
            self.fail(int(machines[at]), "was granted what was not offered")
        if (at := _first(any_kind(used + locked > self.capacity[machines]))) is not None:
            machine = int(machines[at])
            held = f"{_said(used[at])} and {_said(locked[at])} offered"
            self.fail(machine, f"holds {held}, of {_said(self.capacity[machine])}")

    def _expect_a_cause(
        self, verdict: int, machine: int, wants: tuple[int, ...], seen: int, *, in_turn: bool
    ) -> None:
        """Fail if a claim was refused although there was room or its sequence was current."""
        if not 0 < machine < len(self.capacity):
            return
        would_hold = self.used[machine] + self.locked[machine] + wants
        fits = bool((would_hold <= self.capacity[machine]).all())
        if verdict == Verdict.OVERCOMMIT and in_turn and fits:
            self.fail(machine, "a claim was refused for want of room, and there is room")
        if verdict == Verdict.CLOSED and self.state[machine] == OPEN:
            self.fail(machine, "a claim was refused, for it is closed, and it is open")
        if verdict == Verdict.STALE and seen == self.sequence[machine]:
            self.fail(machine, f"a claim was refused as stale, and its sequence is {seen}")

    def _tell(
        self, machine: int, line: str, amounts: Iterable[int], task: Task | None = None
    ) -> None:
        self._stories[machine].append((self._now_s(), line, amounts, task))


def _named(task: Task) -> str:
    """Return a task in words; a job of the start state by its number, counted from 1."""
    job, index = task
    return f"task {index} of job {job}" if job > 0 else f"task {index} of start job {-job}"


def _said(amounts: Iterable[int]) -> str:
    """Return the amounts that are not 0, each after the name of its kind."""
    # The amounts of an offer may be only those of the first kinds of `Kind`.
    named = zip(Kind, amounts, strict=False)
    return ", ".join(f"{kind.column} {amount}" for kind, amount in named if amount) or "nothing"


def _first(which: Mask) -> int | None:
    """Return the position of the first True; None if there is none."""
    at = int(which.argmax()) if len(which) else 0
    return at if len(which) and which[at] else None
