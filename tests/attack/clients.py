"""The clients of a random history: each draws its next call and reads the answer.

A client may call any function that its login may execute, with plausible arguments. An answer
becomes an effect on the expected state, which counts once it is acknowledged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

import numpy as np
from psycopg.types.json import Jsonb

from tests.attack.calls import LEASE_MS, Claim, Lease, Outcome, Transaction, call_sql
from tests.attack.expected_state import Effect
from tests.attack.machine_rows import DOWN, DRAINING, OPEN
from tests.attack.sessions import Database, Rows
from tests.attack.wires import UNLIMITED, Wire, a_group, a_job, demand_of, tasks_of

Rng = np.random.Generator
AnswerReader = Callable[[Rows], Effect | None]
KINDS = ("batch", "service")
TENANTS = ("ann", "bob")
CAPACITY = (6_000,) + (0,) * 10


@dataclass(frozen=True)
class Call:
    """A call of a function, and how its answer is read."""

    function: str
    arguments: tuple[object, ...]
    read: AnswerReader = lambda _rows: None

    @property
    def statement(self) -> str:
        return call_sql(self.function)


@dataclass
class Workload:
    """What the clients draw their arguments from: all answers so far, acknowledged or not."""

    database: Database
    rng: Rng
    machines: list[int]
    wires: dict[int, Wire] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    sent: list[Transaction] = field(default_factory=list)
    transaction_numbers: "count[int]" = field(default_factory=lambda: count(1))

    def below(self, number: int) -> int:
        """Draw an integer from 0 to number - 1."""
        return int(self.rng.integers(number))

    def random_jobs(self) -> list[int]:
        """Draw one or two submitted jobs."""
        known = sorted(self.wires)
        return sorted({known[self.below(len(known))] for _ in range(2)}) if known else [1]

    def random_leases(self, most: int = 2) -> list[Lease]:
        """Draw leases of different jobs: mostly current leases, sometimes expired ones."""
        latest = self.leases[-8:]
        if self.below(8):
            rows = self.database.query(
                "SELECT id, lease_token FROM omega.job WHERE state = 'planning'"
            )
            latest = [Lease(job, token) for job, token in sorted(rows)]
        drawn = [latest[self.below(len(latest))] for _ in range(most)] if latest else []
        return list({lease.job: lease for lease in drawn}.values())

    def random_tasks(self, job: int) -> list[int]:
        """Draw up to three tasks of a job: mostly unplaced tasks, sometimes any."""
        rows = self.database.query(
            "SELECT task FROM omega.job, generate_series(0, tasks - 1) AS task"
            " WHERE id = %s AND (unplaced @> task OR %s)",
            [job, self.below(8) == 0],
        )
        tasks: list[int] = self.rng.permutation([task for (task,) in rows]).tolist()
        return tasks[: 1 + self.below(3)]

    def allocations(self) -> list[tuple[int, int, int, int]]:
        """Return the job, task, machine and start of each committed allocation."""
        rows = self.database.query(
            "SELECT job_id, task, machine_id, (extract(epoch FROM started_at) * 1000)::bigint"
            " FROM omega.allocation ORDER BY job_id, task"
        )
        return [(job, task, machine, start) for job, task, machine, start in rows]

    def random_allocation(self) -> tuple[int, int, int, int] | None:
        allocations = self.allocations()
        return allocations[self.below(len(allocations))] if allocations else None


def submission(workload: Workload) -> Call:
    wires = [
        a_job(
            a_group(tasks=1 + workload.below(3), cpu_milli=1_000 * (1 + workload.below(2))),
            scheduler=KINDS[workload.below(2)],
            tenant=TENANTS[workload.below(2)],
            precedence=(0, 9, 10, 20)[workload.below(4)],
        )
        for _ in range(1 + workload.below(2))
    ]
    for wire in wires:
        if workload.below(3) == 0:
            wire["minimum"] = tasks_of(wire)

    def read(rows: Rows) -> Effect:
        ((ids,),) = rows
        workload.wires.update(zip(ids, wires, strict=True))
        return lambda expected: expected.jobs.update(ids)

    return Call("submit_jobs", (Jsonb(wires),), read)


def cancellation(workload: Workload) -> Call:
    (job, *_) = workload.random_jobs()

    def read(rows: Rows) -> Effect | None:
        return (lambda expected: expected.cancelled.add(job)) if rows == [(True,)] else None

    return Call("cancel_job", (job,), read)


def new_leases(workload: Workload) -> Call:
    def read(rows: Rows) -> None:
        workload.leases += [Lease(row[0], row[1]) for row in rows]

    kind = KINDS[workload.below(2)]
    return Call("lease_jobs", (kind, "client", 1 + workload.below(3), LEASE_MS), read)


def new_commit(workload: Workload) -> Call:
    """Claim machines for tasks of one or two leases; some claims evict or have alternates."""
    claims: list[Claim] = []
    for lease in workload.random_leases(1 + workload.below(2)):
        wire = workload.wires.get(lease.job, a_job())
        for task in workload.random_tasks(lease.job):
            machine = workload.machines[workload.below(len(workload.machines))]
            evicts: tuple[tuple[int, int], ...] = ()
            alternates: tuple[int, ...] = ()
            victim = workload.random_allocation() if workload.below(3) == 0 else None
            if victim is not None:
                machine = victim[2]
                evicts = ((victim[0], victim[1]),)
            elif workload.below(3) == 0:
                alternates = tuple({*workload.machines[:2]} - {machine})
            demand = demand_of(wire, task)
            claims.append(Claim(lease, task, machine, demand, alternates=alternates, evicts=evicts))
    if not claims:
        return new_leases(workload)
    transaction = Transaction(UUID(int=next(workload.transaction_numbers)), tuple(claims))
    workload.sent.append(transaction)
    return commit_of(transaction)


def repeated_commit(workload: Workload) -> Call:
    """Send one of the last ten transactions again, whether it was acknowledged or rolled back."""
    if not workload.sent:
        return new_leases(workload)
    return commit_of(workload.sent[-1 - workload.below(min(len(workload.sent), 10))])


def commit_of(transaction: Transaction) -> Call:
    def read(rows: Rows) -> Effect:
        outcome = Outcome.of(rows)
        return lambda expected: expected.record_commit(transaction, outcome)

    return Call("commit_claims", tuple(transaction.arguments), read)


def change_of_leases(workload: Workload) -> Call:
    """Renew leases, end them, park their jobs or hand them back."""
    leases = workload.random_leases()
    jobs, tokens = [lease.job for lease in leases], [lease.token for lease in leases]
    number = len(leases)
    match workload.below(4):
        case 0:
            return Call("renew_leases", (jobs, tokens, LEASE_MS))
        case 1:
            return Call("park_jobs", (jobs, tokens, ["no_room"] * number, ["full"] * number))
        case 2:
            return Call("renew_leases", (jobs, tokens, 0))
        case _:
            return Call("hand_back_jobs", (jobs, tokens, [0] * number, [True] * number))


def wake_up(workload: Workload) -> Call:
    if workload.below(2):
        return Call("rescue_jobs", ())
    return Call("wake_jobs", (sorted(workload.wires),))


def count_ends(cause: str) -> AnswerReader:
    """Return a reader that counts the tasks that a call has ended."""

    def read(rows: Rows) -> Effect:
        ((ended,),) = rows
        return lambda expected: expected.ends.update({cause: ended})

    return read


def forced_end(workload: Workload) -> Call:
    """End the tasks of machines that are down, or that no longer fit on a machine."""
    if workload.below(2):
        return Call("lose_tasks", (workload.machines,), count_ends("lost"))
    machine = workload.machines[workload.below(len(workload.machines))]
    return Call("enforce_notice", (machine,), count_ends("resized"))


def new_round(workload: Workload) -> Call:
    return Call("begin_round", (KINDS[workload.below(2)], "client", 0))


def recall(workload: Workload) -> Call:
    kind = KINDS[workload.below(2)]
    rows = workload.database.query("SELECT number FROM omega.round WHERE scheduler = %s", [kind])
    number = rows[0][0] if rows else 1

    def read(rows: Rows) -> None:
        workload.leases += [Lease(row[0], row[1]) for row in rows]

    jobs = None if workload.below(2) else workload.random_jobs()
    return Call("recall_jobs", (kind, number, jobs, LEASE_MS), read)


def end_of_tasks(workload: Workload) -> Call:
    drawn = [workload.random_allocation() for _ in range(2)]
    chosen = [allocation for allocation in drawn if allocation is not None]
    jobs, tasks, _, starts = ([row[n] for row in chosen] for n in range(4))
    known_starts = starts if workload.below(2) else None
    return Call("end_tasks", (jobs, tasks, known_starts), count_ends("ended"))


def read_of_mark(_workload: Workload) -> Call:
    """Read the low-water mark, as every replica does before it reads changes."""
    return Call("read_mark", ())


def change_of_machine(workload: Workload) -> Call:
    """Set the state or the capacity of a machine."""
    machine = workload.machines[workload.below(len(workload.machines))]

    def read(rows: Rows) -> Effect:
        changed = rows != [(0,)]
        return lambda expected: expected.sequences.update([machine] * changed)

    if workload.below(2):
        state = (OPEN, OPEN, OPEN, OPEN, DRAINING, DOWN)[workload.below(6)]
        return Call("set_state", ([machine], state), read)
    capacity = [1_000 * (1 + workload.below(8)), *CAPACITY[1:]]
    return Call("resize_machine", (machine, capacity, 0), lambda _rows: read([(1,)]))


def change_of_quota(workload: Workload) -> Call:
    """Set, count or remove a quota."""
    scope_and_name = (("tenant", "ann"), ("scheduler", "batch"))[workload.below(2)]
    match workload.below(8):
        case 0:
            return Call("remove_quota", scope_and_name)
        case 1 | 2 | 3:
            return Call("count_quota", scope_and_name)
        case _:
            limits = [1_000 * workload.below(24), *[UNLIMITED] * 3, 2 + workload.below(9)]
            return Call("set_quota", (*scope_and_name, limits))


def pruning(workload: Workload) -> Call:
    if workload.below(2):
        return Call("forget_changes", ())
    return Call("prune_history", ("transaction", 0, 0, 2**20))


def rare_call(workload: Workload) -> Call:
    """Draw a call that may end leases. It is rare: otherwise hardly any task would be placed."""
    draws = (change_of_leases, change_of_leases, wake_up, new_round, recall)
    return draws[workload.below(len(draws))](workload)


Draw = Callable[[Workload], Call]
SCHEDULER_CALLS: tuple[Draw, ...] = (
    *(new_leases,) * 3,
    *(new_commit,) * 8,
    *(repeated_commit,) * 2,
    forced_end,
    rare_call,
)
CLIENTS: dict[str, tuple[tuple[str, ...], tuple[Draw, ...]]] = {
    "scheduler 1": (("omega_scheduler",), SCHEDULER_CALLS),
    "scheduler 2": (("omega_scheduler",), SCHEDULER_CALLS),
    "submitter and scheduler": (
        ("omega_submitter", "omega_scheduler"),
        (submission, *SCHEDULER_CALLS),
    ),
    "node": (("omega_node",), (end_of_tasks, read_of_mark, read_of_mark)),
    "submitter": (
        ("omega_submitter",),
        (submission, submission, submission, submission, cancellation),
    ),
    "owner": (
        (),
        (change_of_machine, change_of_machine, change_of_quota, pruning, forced_end),
    ),
}
"""The roles of each client and the calls that it draws; the owner has no role."""
