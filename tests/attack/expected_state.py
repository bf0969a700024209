"""The state that the answers of a history imply; the database must agree with it at the end.

An answer counts when it is acknowledged: its statement has returned and its transaction has
committed. The answers of a transaction that rolls back are dropped.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from tests.attack.calls import Outcome, Transaction
from tests.attack.machine_rows import running_tasks, sequences
from tests.attack.sessions import Database

Effect = Callable[["ExpectedState"], None]
"""Records what an acknowledged answer said."""


@dataclass
class ExpectedState:
    """Everything that was acknowledged."""

    jobs: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    grants: "Counter[tuple[int, int, int]]" = field(default_factory=Counter)
    """How often each task was granted a machine: by job, task and machine."""
    evictions: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    ends: "Counter[str]" = field(default_factory=Counter)
    """How many tasks ended, by cause."""
    sequences: "Counter[int]" = field(default_factory=Counter)
    """For each machine, its granted commits and its changes of state and size."""
    answers: dict[UUID, tuple[Transaction, Outcome]] = field(default_factory=dict)
    granted: set[tuple[UUID, int]] = field(default_factory=set)
    """The granted claims, by transaction and position."""
    errors: list[str] = field(default_factory=list)

    def record_commit(self, transaction: Transaction, outcome: Outcome) -> None:
        """Record the outcome of a commit; a replayed outcome changes nothing."""
        _, known = self.answers.get(transaction.id, (transaction, None))
        if outcome.replayed:
            # The first commit may be unacknowledged still: its outcome is not known then. One of
            # several concurrent copies may be granted nothing; another then leaves the record.
            if known is not None and known.grants and not outcome.matches(known):
                self.errors.append(f"{transaction.id} was answered {known} and then {outcome}")
            return
        # The transaction is new, was rolled back, or its record was pruned.
        if known is None or outcome.grants:
            self.answers[transaction.id] = (transaction, outcome)
        for n in outcome.grants:
            claim = transaction.claims[n]
            if (transaction.id, n) in self.granted:
                self.errors.append(f"{claim} of {transaction.id} was granted twice")
            self.granted.add((transaction.id, n))
            self.grants[claim.lease.job, claim.task, outcome.landed[n]] += 1
        self.sequences.update({outcome.landed[n] for n in outcome.grants})
        self.evictions.update(outcome.evicted)


ENDED_TASKS = "SELECT job_id, task, machine_id, cause FROM omega.ended_task"


def differences(expected: ExpectedState, database: Database) -> list[str]:
    """Compare the expected state with the database; no transaction may be open."""
    ended = database.query(ENDED_TASKS)
    running = Counter(running_tasks(database))
    over = Counter((job, task, machine) for job, task, machine, _ in ended)
    causes = Counter(cause for *_, cause in ended)
    evicted = Counter((job, task) for job, task, _, cause in ended if cause == "evicted")
    not_cancelled = sum(
        cause == "ended" and job not in expected.cancelled for job, _, _, cause in ended
    )
    states: dict[int, str] = dict(database.query("SELECT id, state::text FROM omega.job"))
    checks = {
        "jobs": (expected.jobs, set(states)),
        "grants": (expected.grants, running + over),
        "evictions": (expected.evictions, evicted),
        "lost tasks": (expected.ends["lost"], causes["lost"]),
        "tasks ended by a resize": (expected.ends["resized"], causes["resized"]),
        "sequences": (
            {machine: expected.sequences[machine] for machine in sequences(database)},
            sequences(database),
        ),
        "states of cancelled jobs": (
            {"cancelled"} if expected.cancelled else set(),
            {states.get(job) for job in expected.cancelled},
        ),
    }
    found = [
        f"{what}: expected {told}, found {actual}"
        for what, (told, actual) in checks.items()
        if told != actual
    ]
    # Some tasks of cancelled jobs ended before the cancellation.
    if not not_cancelled <= (told := expected.ends["ended"]) <= causes["ended"]:
        found.append(f"ends: expected {told}, found {not_cancelled} to {causes['ended']}")
    return [*expected.errors, *found]
