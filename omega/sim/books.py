"""A second set of books of a simulated cell, kept from what was granted and what ended alone.

Goal     Know of every machine what it must hold, and tell its story when the cell says otherwise.
Promise  Plain integers in dictionaries, one task at a time: nothing of the arrays that are audited.
         What cannot be is InvariantBroken, with the last events of the machine that shows it.
Source   TigerBeetle's auditor; docs/decisions/0023-sweeps-and-audits.md.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Final, NoReturn

from omega.errors import InvariantBroken
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
"""A machine, and what is held of it in each kind."""
Rows = dict[int, list[int]]
"""Amounts of each kind by machine, of those machines that have some."""
Line = tuple[float, str, tuple[int, ...]]


class Books:
    """What must be true of a cell."""

    def __init__(self, rows: MachineRows, now_s: Callable[[], float]) -> None:
        """Begin with the cell as it is; `start` tells what it is that it holds."""
        self._now_s = now_s
        ids = rows.id.tolist()
        self.capacity = dict(zip(ids, rows.capacity.tolist(), strict=True))
        self.used: dict[int, list[int]] = dict(zip(ids, rows.used.tolist(), strict=True))
        """By machine, what tasks hold."""
        self.locked: dict[int, list[int]] = {machine: [0] * len(Kind) for machine in ids}
        """By machine, what is offered and not yet granted."""
        self.sequence = dict(zip(ids, rows.sequence.tolist(), strict=True))
        self.state = dict(zip(ids, rows.state.tolist(), strict=True))
        self.live: dict[Task, Held] = {}
        self.over: set[Task] = set()
        self._placed: Counter[int] = Counter()
        """By job, its tasks that are live or over."""
        self._gangs: dict[int, int] = {}
        """By job, the fewest tasks of which it stands."""
        self._nothing = [0] * len(Kind)
        self._offers: list[Rows] = []
        self._taken: Rows | None = None
        """Of offers, since one was last given back; None while nothing is ever offered."""
        self._due: dict[float, list[dict[Task, Held]]] = defaultdict(list)
        self._due_with: dict[Task, dict[Task, Held]] = {}
        """By task, those that are to end with it."""
        self._times_due: list[float] = []
        self._stories: dict[int, deque[Line]] = defaultdict(lambda: deque(maxlen=STORY_LINES_MAX))

    def start(self, tasks: Iterable[tuple[Task, Held]]) -> None:
        """Enter the tasks that run at the start; they hold what is used, and nothing else does."""
        self.live.update(tasks)
        held = {machine: [0] * len(Kind) for machine in self.used}
        for machine, amounts in self.live.values():
            self._add(held, machine, amounts, 1)
        for machine, used in self.used.items():
            if used != held[machine]:
                self.accuse(machine, f"starts with {_said(used)}, its tasks {_said(held[machine])}")

    def commit(self, transaction: Transaction, job: LeasedJob, outcome: Outcome) -> None:
        """Enter what was granted, claim by claim."""
        claims, (part,) = transaction.claims, transaction.jobs
        shapes = [tuple(row) for row in claims.shapes.tolist()]
        columns = (claims.task, outcome.machine, claims.seen, claims.shape, outcome.verdicts)
        self._gangs[job.id] = job.spec.minimum
        granted_on: dict[int, None] = {}
        granted = 0
        for task, machine, seen, shape, verdict in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            who, wants = (job.id, task), shapes[shape]
            if verdict == Verdict.ACCEPTED:
                if transaction.rule is ConflictRule.SEQUENCE and seen != self.sequence[machine]:
                    what = f"granted on sequence {seen}; it was {self.sequence[machine]}"
                    self.accuse(machine, f"{_named(who)} was {what}")
                self._grant(who, machine, wants)
                granted_on[machine] = None
                granted += 1
            else:
                self._tell(machine, f"refused to {_named(who)}: {Verdict(verdict).name}", wants)
                self._expect_a_cause(verdict, machine, wants, seen, in_turn=not part.minimum)
        if granted and granted < part.minimum:
            self.accuse(next(iter(granted_on)), f"job {job.id} got {granted} of {part.minimum}")
        if granted and self._placed[job.id] < job.spec.minimum:
            what = f"job {job.id}, a gang of {job.spec.minimum}, has {self._placed[job.id]} tasks"
            self.accuse(next(iter(granted_on)), what)
        for machine in granted_on:
            self.sequence[machine] += 1

    def expect_ends(self, ends: Mapping[float, Iterable[Task]]) -> None:
        """Note when tasks that were granted are to end, those of one moment in one event."""
        for at_s, tasks in ends.items():
            batch = {}
            for task in tasks:
                if task not in self.live:
                    raise InvariantBroken(f"{_named(task)} is to run and was never granted")
                batch[task] = self.live[task]
                self._due_with[task] = batch
            self._due[at_s].append(batch)
            heappush(self._times_due, at_s)

    def end(self, released: Iterable[Held]) -> None:
        """Strike out tasks that end now; they were to, and they held just this."""
        given_back = Counter(released)
        batches = self._due[self._now_s()]
        for batch in batches:
            if Counter(batch.values()) == given_back:
                break
        else:
            machine, amounts = next(iter(given_back))
            self._tell(machine, "given back", amounts)
            self.accuse(machine, f"{given_back.total()} tasks end that were not to, or not so")
        batches.remove(batch)
        for task, (machine, amounts) in batch.items():
            del self.live[task], self._due_with[task]
            self.over.add(task)
            self._add(self.used, machine, amounts, -1)
            self._tell(machine, f"ended {_named(task)}", amounts)

    def lose(self, tasks: Mapping[Task, Held]) -> None:
        """Strike out tasks that have lost their place; a gang stands whole or has fallen."""
        for task, held in tasks.items():
            machine, amounts = held
            if self.live.pop(task, None) != held:
                self.accuse(machine, f"{_named(task)} is lost and did not run so")
            self._due_with.pop(task, {}).pop(task, None)
            self._placed[task[0]] -= 1
            self._add(self.used, machine, amounts, -1)
            self._tell(machine, f"lost {_named(task)}", amounts)
        jobs = {job for job, _ in tasks if self._gangs.get(job)}
        fallen = {job for job in jobs if self._placed[job] < self._gangs[job]}
        for task, (machine, _) in self.live.items() if fallen else ():
            if task[0] in fallen:
                self.accuse(machine, f"{_named(task)} runs on, and its gang has fallen")

    def set_state(self, machine: int, state: MachineState) -> None:
        """Enter that a machine takes claims, or is down and runs nothing."""
        if self.state[machine] == state:
            return
        self.state[machine] = state
        self.sequence[machine] += 1
        self._tell(machine, state.name.lower(), tuple(self.capacity[machine]))
        if state is MachineState.DOWN and any(self.used[machine]):
            self.accuse(machine, f"is down and holds {_said(self.used[machine])}")

    def resize(self, machine: int, capacity: list[int]) -> None:
        """Enter what a machine has from now on."""
        self.capacity[machine] = capacity
        self.sequence[machine] += 1
        self._tell(machine, "resized", tuple(capacity))

    @property
    def cpu_open(self) -> int:
        """CPU of the machines that are open."""
        rows = self.capacity.items()
        return sum(row[Kind.CPU_MILLI] for one, row in rows if self.state[one] == OPEN)

    def offer(self, amounts: Rows) -> None:
        """Lock what is offered; from then on, nothing is granted but what is."""
        self._taken = self._taken or {}
        for machine, row in amounts.items():
            self._add(self.locked, machine, row, 1)
            self._tell(machine, "offered", tuple(row))
            self._expect_room(machine)
        self._offers.append(amounts)

    def take_back(self, left: Rows) -> None:
        """Unlock what is left of an offer: all of it but what has been granted since the last."""
        taken, self._taken = self._taken, {}
        for offered in self._offers:
            if taken == _differences(offered, left):
                break
        else:
            machine = next(iter({**left, **(taken or {})}), 1)
            self.accuse(machine, "what is given back is not what is left of an offer")
        self._offers.remove(offered)
        for machine, row in left.items():
            self._add(self.locked, machine, row, -1)
            self._tell(machine, "given back of an offer", tuple(row))

    @property
    def cpu_offered(self) -> int:
        """CPU of all offers that have not been given back."""
        return sum(row[Kind.CPU_MILLI] for one in self._offers for row in one.values())

    def compare_free(self, free: Rows) -> None:
        """See that what may be offered is all that nobody uses and nobody is offered."""
        for machine, capacity in self.capacity.items():
            rows = zip(capacity, self.used[machine], self.locked[machine], strict=True)
            expected = [all_ - used - locked for all_, used, locked in rows]
            told = free.get(machine, self._nothing)
            if told != expected:
                self.accuse(machine, f"has {_said(expected)} to offer; told {_said(told)}")

    def expect_punctual_ends(self) -> None:
        """See that nothing runs whose time was up before now."""
        while self._times_due and self._times_due[0] < self._now_s():
            at_s = heappop(self._times_due)
            for batch in self._due.pop(at_s, ()):
                for task, (machine, _) in batch.items():
                    self.accuse(machine, f"{_named(task)} was to end at {at_s:.3f} s and runs on")

    def compare(self, rows: MachineRows) -> None:
        """See that the cell's rows are what is in the books."""
        columns = (rows.id, rows.used, rows.sequence, rows.capacity, rows.state)
        for machine, used, sequence, capacity, state in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            expected = self.used[machine]
            if used != expected:
                self.accuse(machine, f"books {_said(expected)}, cell {_said(used)}")
            if sequence != self.sequence[machine]:
                self.accuse(machine, f"sequence {sequence}; it rose to {self.sequence[machine]}")
            if state != self.state[machine]:
                known = MachineState(self.state[machine]).name
                self.accuse(machine, f"is {MachineState(state).name}; it became {known}")
            if capacity != self.capacity[machine]:
                self.accuse(
                    machine, f"has {_said(capacity)}; it had {_said(self.capacity[machine])}"
                )

    def accuse(self, machine: int, what: str) -> NoReturn:
        """Raise InvariantBroken with the machine's story."""
        story = [
            f"{at_s:.3f} s: {line}: {_said(amounts)}"
            for at_s, line, amounts in self._stories[machine]
        ]
        raise InvariantBroken(f"{self._now_s():.3f} s: machine {machine}: {what}", story=story)

    def _grant(self, task: Task, machine: int, amounts: tuple[int, ...]) -> None:
        self._tell(machine, f"granted to {_named(task)}", amounts)
        if machine not in self.capacity:
            self.accuse(machine, "there is no such machine")
        if self.state[machine] != OPEN:
            self.accuse(machine, f"{_named(task)} was granted on a machine that is not open")
        if task in self.live:
            self.accuse(machine, f"{_named(task)} runs on machine {self.live[task][0]} already")
        if task in self.over:
            self.accuse(machine, f"{_named(task)} is over already")
        self.live[task] = machine, amounts
        self._placed[task[0]] += 1
        self._add(self.used, machine, amounts, 1)
        if self._taken is not None and any(amounts):
            self._take_of_offers(machine, amounts)
        self._expect_room(machine)

    def _take_of_offers(self, machine: int, amounts: tuple[int, ...]) -> None:
        assert self._taken is not None
        self._add(self.locked, machine, amounts, -1)
        if min(self.locked[machine]) < 0:
            self.accuse(machine, "was granted what was not offered")
        self._taken.setdefault(machine, self._nothing)
        self._add(self._taken, machine, amounts, 1)

    def _expect_room(self, machine: int) -> None:
        rows = zip(self.used[machine], self.locked[machine], self.capacity[machine], strict=True)
        if any(used + locked > capacity for used, locked, capacity in rows):
            held = f"{_said(self.used[machine])} and {_said(self.locked[machine])} offered"
            self.accuse(machine, f"holds {held}, of {_said(self.capacity[machine])}")

    def _expect_a_cause(
        self, verdict: int, machine: int, wants: tuple[int, ...], seen: int, *, in_turn: bool
    ) -> None:
        """See that a claim was refused for something: what is left at its turn, or a sequence."""
        if machine not in self.capacity:
            return
        rows = zip(
            self.used[machine], self.locked[machine], wants, self.capacity[machine], strict=True
        )
        fits = all(used + locked + more <= capacity for used, locked, more, capacity in rows)
        if verdict == Verdict.OVERCOMMIT and in_turn and fits:
            self.accuse(machine, "a claim was refused for want of room, and there is room")
        if verdict == Verdict.CLOSED and self.state[machine] == OPEN:
            self.accuse(machine, "a claim was refused, for it is closed, and it is open")
        if verdict == Verdict.STALE and seen == self.sequence[machine]:
            self.accuse(machine, f"a claim was refused as stale, and its sequence is {seen}")

    def _tell(self, machine: int, line: str, amounts: tuple[int, ...]) -> None:
        self._stories[machine].append((self._now_s(), line, amounts))

    @staticmethod
    def _add(held: dict[int, list[int]], machine: int, amounts: Iterable[int], sign: int) -> None:
        held[machine] = [
            there + sign * more for there, more in zip(held[machine], amounts, strict=True)
        ]


def _named(task: Task) -> str:
    job, index = task
    return f"task {index} of job {job}" if job > 0 else f"task {index} of start job {-job}"


def _said(amounts: Iterable[int]) -> str:
    named = zip(Kind, amounts, strict=True)
    return ", ".join(f"{kind.column} {amount}" for kind, amount in named if amount) or "nothing"


def _differences(offered: Rows, left: Rows) -> Rows | None:
    """Return what is less on each machine; None where there is more."""
    if not left.keys() <= offered.keys():
        return None
    less = {
        machine: [there - still for there, still in zip(row, left[machine], strict=True)]
        if machine in left
        else row
        for machine, row in offered.items()
        if row != left.get(machine)
    }
    return less if all(min(row) >= 0 for row in less.values()) else None
