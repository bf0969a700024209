"""Calls of the cell's functions, as SQL with every parameter's type written out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.attack.sessions import Answer, Rows, Session, Stage
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
    "lose_tasks": "integer[]",
    "enforce_notice": "integer",
    "report_process": "text text integer jsonb",
    "forget_process": "text text",
    "report_progress": "bigint[] bigint[] bigint[]",
    "end_tasks": "bigint[] integer[] bigint[]",
    "cancel_job": "bigint",
    "read_mark": "",
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
"""By function, its parameters' types."""


def calling(function: str) -> str:
    """Return the statement that calls a function."""
    given = ", ".join(f"%s::{of}" for of in TYPES[function].split())
    return f"SELECT * FROM omega.{function}({given})"


def ask(session: Session, function: str, *arguments: object) -> Answer:
    """Call a function, and take whatever comes of it."""
    return session.ask(calling(function), arguments)


def do(session: Session, function: str, *arguments: object) -> Rows:
    """Call a function that is to answer."""
    return session.do(calling(function), arguments)


def start(session: Session, function: str, *arguments: object) -> None:
    """Call a function that may have to wait."""
    session.start(calling(function), arguments)


def step(stage: Stage, session: Session, function: str, *arguments: object) -> bool:
    """Call a function until it is done or waits; say whether it is done."""
    return stage.step(session, calling(function), arguments)


def submit(session: Session, *wires: Wire) -> list[int]:
    """Submit jobs; return their ids."""
    ((ids,),) = do(session, "submit_jobs", Jsonb(list(wires)))
    return [int(job) for job in ids]


@dataclass(frozen=True)
class Lease:
    """The right to place a job's tasks."""

    job: int
    token: UUID


def lease(
    session: Session, kind: str = "batch", *, holder: str = "attacker", jobs_max: int = 1_000
) -> list[Lease]:
    """Lease what waits of a kind, in the order in which it is given."""
    rows = do(session, "lease_jobs", kind, holder, jobs_max, LEASE_MS)
    return [Lease(row[0], row[1]) for row in rows]


@dataclass(frozen=True)
class Claim:
    """Room for one task of the job that stands before it."""

    lease: Lease
    task: int
    machine: int
    amounts: tuple[int, ...] = CORE
    seen: int = 0
    others: tuple[int, ...] = ()
    """Machines to be tried if it cannot stand on its own."""
    evicts: tuple[tuple[int, int], ...] = ()
    """Jobs and tasks that are to go for it."""


@dataclass(frozen=True)
class Commit:
    """A transaction of claims; those of one job stand together."""

    id: UUID
    claims: tuple[Claim, ...]
    minimums: dict[int, int] = field(default_factory=dict)
    """By job; 0 where nothing is said."""
    by_sequence: bool = False
    scheduler: str = "batch"
    replica: str = "attacker"

    @property
    def leases(self) -> list[Lease]:
        """The jobs, each once, in order."""
        return list({claim.lease.job: claim.lease for claim in self.claims}.values())

    @property
    def arguments(self) -> list[object]:
        """What `commit_claims` is to be given."""
        leases, numbered = self.leases, list(enumerate(self.claims, start=1))
        counts = [sum(claim.lease.job == it.job for claim in self.claims) for it in leases]
        others = [(n, machine) for n, claim in numbered for machine in claim.others]
        evictions = [(n, *victim) for n, claim in numbered for victim in claim.evicts]
        return [
            self.id,
            self.scheduler,
            self.replica,
            self.by_sequence,
            [it.job for it in leases],
            [it.token for it in leases],
            [self.minimums.get(it.job, 0) for it in leases],
            list(accumulate(counts)),
            [claim.task for claim in self.claims],
            [claim.machine for claim in self.claims],
            [claim.seen for claim in self.claims],
            [n for n, _ in numbered],
            [amount for claim in self.claims for amount in claim.amounts],
            [n for n, _ in others],
            [machine for _, machine in others],
            [0 for _ in others],
            [n for n, _ in others],
            [n for n, _, _ in evictions],
            [job for _, job, _ in evictions],
            [task for _, _, task in evictions],
        ]


@dataclass(frozen=True)
class Outcome:
    """What a commit answered."""

    verdicts: tuple[int, ...]
    landed: tuple[int, ...]
    evicted: tuple[tuple[int, int], ...]
    replayed: bool

    @classmethod
    def of(cls, rows: Rows) -> "Outcome":
        """Read the answer of `commit_claims`."""
        ((verdicts, landed, jobs, tasks, _fresh, replayed),) = rows
        evicted = tuple(zip(jobs, tasks, strict=True))
        return cls(tuple(verdicts), tuple(landed), evicted, replayed)

    @property
    def grants(self) -> list[int]:
        """Which of the claims were granted, by their place."""
        return [n for n, verdict in enumerate(self.verdicts) if verdict == 0]

    def is_like(self, other: "Outcome") -> bool:
        """Say whether both tell of the same grants and evictions."""
        mine, others = (it.verdicts + it.landed for it in (self, other))
        return mine == others and self.evicted == other.evicted


def commit(session: Session, transaction: Commit) -> Outcome:
    """Commit claims that are to be judged."""
    return Outcome.of(do(session, "commit_claims", *transaction.arguments))


def one(number: int, *claims: Claim) -> Commit:
    """Return a transaction with an id of this number."""
    return Commit(UUID(int=number), claims)


def at_once(leases: Sequence[Lease], machine: int) -> tuple[Claim, ...]:
    """Return a claim for the first task of each job, all on one machine."""
    return tuple(Claim(it, 0, machine) for it in leases)
