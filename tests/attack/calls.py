"""Calls of the product's SQL functions, with the type of each parameter written out."""

from dataclasses import dataclass, field
from itertools import accumulate
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.attack.sessions import Answer, Database, Rows, Session
from tests.attack.wires import KINDS, Wire

LEASE_MS = 600_000
CORE = (1_000,) + (0,) * (len(KINDS) - 1)

TYPES = {
    "submit_jobs": "jsonb",
    "lease_jobs": "text text integer bigint",
    "renew_leases": "bigint[] uuid[] bigint",
    "hand_back_jobs": "bigint[] uuid[] bigint[] boolean[]",
    "park_jobs": "bigint[] uuid[] text[] text[]",
    "parked_jobs": "text integer",
    "wake_jobs": "bigint[]",
    "rescue_jobs": "",
    "begin_round": "text text bigint",
    "note_round": "text bigint jsonb",
    "recall_jobs": "text bigint bigint[] bigint",
    "read_lanes": "text",
    "read_tenant_use": "bigint",
    "agree_on_order": "text text text bigint",
    "lease_reclaim": "uuid text text bigint",
    "set_tenant": "text integer text",
    "remove_tenant": "text",
    "take_turn": "uuid bigint text text bigint integer integer integer bigint",
    "lose_tasks": "integer[]",
    "enforce_notice": "integer",
    "report_process": "text text integer jsonb",
    "forget_process": "text text",
    "read_report": "text text",
    "report_progress": "bigint[] bigint[] bigint[]",
    "end_tasks": "bigint[] integer[] bigint[]",
    "cancel_job": "bigint",
    "hold_job": "bigint",
    "release_job": "bigint",
    "requeue_job": "bigint",
    "set_job_precedence": "bigint integer",
    "read_mark": "",
    "begin_incarnation": "",
    "read_quotas": "",
    "verify": "",
    "set_state": "integer[] smallint",
    "resize_machine": "integer integer[] bigint",
    "set_quota": "text text bigint[]",
    "count_quota": "text text",
    "remove_quota": "text text",
    "assign_machines": "text text[]",
    "forget_changes": "",
    "prune_history": "text bigint bigint bigint",
    "commit_claims": "uuid text text boolean bigint[] uuid[] integer[] integer[]"
    " integer[] integer[] bigint[] integer[] integer[]"
    " integer[] integer[] bigint[] integer[] integer[] bigint[] integer[]",
}
"""The parameter types of each function."""


def call_sql(function: str) -> str:
    """Return the statement that calls a function."""
    parameters = ", ".join(f"%s::{sql_type}" for sql_type in TYPES[function].split())
    return f"SELECT * FROM omega.{function}({parameters})"


def try_call(session: Session, function: str, *arguments: object) -> Answer:
    """Call a function; return its rows or its error."""
    return session.try_execute(call_sql(function), arguments)


def call(session: Session, function: str, *arguments: object) -> Rows:
    """Call a function that must succeed; return its rows."""
    return session.execute(call_sql(function), arguments)


def start(session: Session, function: str, *arguments: object) -> None:
    """Begin a call without waiting for its answer."""
    session.start(call_sql(function), arguments)


def step(database: Database, session: Session, function: str, *arguments: object) -> bool:
    """Call a function until it returns or waits for a lock; say whether it has returned."""
    return database.step(session, call_sql(function), arguments)


def submit_jobs(session: Session, *wires: Wire) -> list[int]:
    """Submit jobs; return their ids."""
    ((ids,),) = call(session, "submit_jobs", Jsonb(list(wires)))
    return [int(job) for job in ids]


@dataclass(frozen=True)
class Lease:
    """The right to place the tasks of one job."""

    job: int
    token: UUID


def lease_jobs(
    session: Session, kind: str = "batch", *, holder: str = "attacker", jobs_max: int = 1_000
) -> list[Lease]:
    """Lease the pending jobs of a kind; return the leases in the order of the answer."""
    rows = call(session, "lease_jobs", kind, holder, jobs_max, LEASE_MS)
    return [Lease(row[0], row[1]) for row in rows]


@dataclass(frozen=True)
class Claim:
    """A claim on one machine for one task of a leased job."""

    lease: Lease
    task: int
    machine: int
    amounts: tuple[int, ...] = CORE
    seen: int = 0
    alternates: tuple[int, ...] = ()
    """Machines to try if the task does not fit on `machine`."""
    evicts: tuple[tuple[int, int], ...] = ()
    """Jobs and tasks that are evicted if the claim is granted."""


@dataclass(frozen=True)
class Transaction:
    """Claims that are committed together; the claims of one job follow one another."""

    id: UUID
    claims: tuple[Claim, ...]
    minimums: dict[int, int] = field(default_factory=dict)
    """The least number of granted claims of each job; 0 for jobs that are not listed."""
    by_sequence: bool = False
    scheduler: str = "batch"
    replica: str = "attacker"

    @property
    def leases(self) -> list[Lease]:
        """The lease of each job, in the order of the claims."""
        return list({claim.lease.job: claim.lease for claim in self.claims}.values())

    @property
    def arguments(self) -> list[object]:
        """The arguments of `commit_claims`."""
        leases, numbered = self.leases, list(enumerate(self.claims, start=1))
        counts = [sum(claim.lease.job == lease.job for claim in self.claims) for lease in leases]
        alternates = [(n, machine) for n, claim in numbered for machine in claim.alternates]
        evictions = [(n, *victim) for n, claim in numbered for victim in claim.evicts]
        return [
            self.id,
            self.scheduler,
            self.replica,
            self.by_sequence,
            [lease.job for lease in leases],
            [lease.token for lease in leases],
            [self.minimums.get(lease.job, 0) for lease in leases],
            list(accumulate(counts)),
            [claim.task for claim in self.claims],
            [claim.machine for claim in self.claims],
            [claim.seen for claim in self.claims],
            [n for n, _ in numbered],
            [amount for claim in self.claims for amount in claim.amounts],
            [n for n, _ in alternates],
            [machine for _, machine in alternates],
            [0 for _ in alternates],
            [n for n, _ in alternates],
            [n for n, _, _ in evictions],
            [job for _, job, _ in evictions],
            [task for _, _, task in evictions],
        ]


@dataclass(frozen=True)
class Outcome:
    """The answer to a commit."""

    verdicts: tuple[int, ...]
    landed: tuple[int, ...]
    """The machine of each claim."""
    evicted: tuple[tuple[int, int], ...]
    replayed: bool

    @classmethod
    def of(cls, rows: Rows) -> "Outcome":
        """Read the row that `commit_claims` returns."""
        ((verdicts, landed, jobs, tasks, _fresh, replayed),) = rows
        evicted = tuple(zip(jobs, tasks, strict=True))
        return cls(tuple(verdicts), tuple(landed), evicted, replayed)

    @property
    def grants(self) -> list[int]:
        """The positions of the claims that were granted."""
        return [n for n, verdict in enumerate(self.verdicts) if verdict == 0]

    def matches(self, other: "Outcome") -> bool:
        """Say whether both have the same verdicts, machines and evictions."""
        mine = (self.verdicts, self.landed, self.evicted)
        return mine == (other.verdicts, other.landed, other.evicted)


def commit(session: Session, transaction: Transaction) -> Outcome:
    """Commit a transaction; the call must succeed."""
    return Outcome.of(call(session, "commit_claims", *transaction.arguments))


def make_transaction(number: int, *claims: Claim) -> Transaction:
    """Return a transaction whose id is this number."""
    return Transaction(UUID(int=number), claims)
