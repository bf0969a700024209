"""A small cell with two tenants, and operations that change what one of them holds.

Ann has one job of the kind `batch`: some of its tasks run, the others are unplaced, and it is
leased. Bob has such a job of the kind `service`. Each operation leaves a transaction open in which
tasks of Ann have started or ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from psycopg.types.json import Jsonb

from tests.attack.calls import (
    Claim,
    Lease,
    Outcome,
    Transaction,
    call,
    commit,
    lease_jobs,
    make_transaction,
    submit_jobs,
    try_call,
)
from tests.attack.machine_rows import DEFAULT_CAPACITY, DOWN, OPEN, add_machines
from tests.attack.sessions import Answer, Database, Session
from tests.attack.wires import KINDS, UNLIMITED, a_group, a_job

ANN = ("tenant", "ann")
TASKS = 6
RUNNING = 2
OVER_QUOTA = 9
"""The verdict."""
LOCK_NOT_AVAILABLE = "55P03"


def cores(number: int, jobs: int = UNLIMITED) -> list[int]:
    """Return the limits of a quota of so many cores and jobs."""
    return [number * 1_000, UNLIMITED, UNLIMITED, UNLIMITED, jobs]


@dataclass
class QuotaScenario:
    """The sessions, and the leases of both tenants."""

    database: Database
    owner: Session
    submitter: Session
    scheduler: Session
    other_scheduler: Session
    node: Session
    submitting_scheduler: Session
    """Its login may submit jobs and place tasks."""
    ann: Lease = field(init=False)
    bob: Lease = field(init=False)
    transaction_numbers: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.machines = add_machines(self.owner, 3)
        group = a_group(tasks=TASKS)
        submit_jobs(self.submitter, a_job(group))
        (self.ann,) = lease_jobs(self.scheduler)
        submit_jobs(self.submitter, a_job(group, tenant="bob", scheduler="service", precedence=50))
        (self.bob,) = lease_jobs(self.scheduler, "service")
        for lease in (self.ann, self.bob):
            commit(self.scheduler, self.claim_cores(lease, *range(RUNNING)))
        assign = "SELECT omega.assign_machines(%s, NULL)"
        self.owner.execute(assign, [self.node.connection.info.user])

    def claim_cores(self, lease: Lease, *tasks: int, machine: int = 0) -> Transaction:
        """Return a new transaction that claims a core of one machine for each task."""
        machine = self.machines[machine]
        return self.transaction(*(Claim(lease, task, machine) for task in tasks))

    def transaction(self, *claims: Claim) -> Transaction:
        """Return a transaction with an id that no other has."""
        return make_transaction(next(self.transaction_numbers), *claims)

    def restore_machines(self) -> None:
        """Set the state and capacity of all machines to the initial ones."""
        call(self.owner, "set_state", self.machines, OPEN)
        for machine in self.machines:
            call(self.owner, "resize_machine", machine, list(DEFAULT_CAPACITY), 0)

    def set_quota(self, limits: list[int], scope_and_name: tuple[str, str] = ANN) -> bool:
        """Set a quota; say whether it is counted already."""
        ((is_counted,),) = call(self.owner, "set_quota", *scope_and_name, limits)
        return bool(is_counted)

    def count_quota(self, scope_and_name: tuple[str, str] = ANN) -> Answer:
        """Count what the jobs of a quota hold."""
        return try_call(self.owner, "count_quota", *scope_and_name)

    def place_for_ann(self, *tasks: int) -> tuple[int, ...]:
        """Claim a core for tasks of Ann, each in its own transaction; return the verdicts."""
        transactions = [self.claim_cores(self.ann, task) for task in tasks]
        return tuple(commit(self.other_scheduler, it).verdicts[0] for it in transactions)

    def cores_held(self) -> int:
        """Return how many cores the tasks of Ann hold."""
        query = """
            SELECT coalesce(sum(cpu_milli), 0) / 1000 FROM omega.allocation
              JOIN omega.job_spec USING (job_id) WHERE tenant = 'ann'"""
        return int(self.database.query(query)[0][0])

    def cores_left(self) -> int:
        """Return how many cores remain of Ann's quota, according to `read_quotas`."""
        query = "SELECT remains[1] / 1000 FROM omega.read_quotas() WHERE name = 'ann'"
        return int(self.database.query(query)[0][0])


Operation = Callable[[QuotaScenario, Session], None]


def place_task(scenario: QuotaScenario, session: Session) -> None:
    """Place an unplaced task of Ann."""
    outcome = commit(session, scenario.claim_cores(scenario.ann, RUNNING))
    assert (0,) == outcome.verdicts


def end_task(scenario: QuotaScenario, session: Session) -> None:
    """End a running task of Ann."""
    assert [(1,)] == call(session, "end_tasks", [scenario.ann.job], [0], None)


def cancel_job(scenario: QuotaScenario, session: Session) -> None:
    """Cancel the job of Ann."""
    assert [(True,)] == call(session, "cancel_job", scenario.ann.job)


def submit_and_place(scenario: QuotaScenario, session: Session) -> None:
    """Submit, lease and place a job of Ann, all in the open transaction."""
    wires = Jsonb([a_job(a_group(tasks=2), scheduler="sudden")])
    call(session, "submit_jobs", wires)
    (lease,) = lease_jobs(session, "sudden")
    assert (0, 0) == commit(session, scenario.claim_cores(lease, 0, 1)).verdicts


def evict_task(scenario: QuotaScenario, session: Session) -> None:
    """Place a task of Bob that evicts a task of Ann."""
    claim = Claim(scenario.bob, RUNNING, scenario.machines[0], evicts=((scenario.ann.job, 0),))
    assert (0,) == commit(session, scenario.transaction(claim)).verdicts


def move_task(scenario: QuotaScenario, session: Session) -> None:
    """Move a task of Ann to another machine, and place one more."""
    move = Claim(scenario.ann, 0, scenario.machines[1], evicts=((scenario.ann.job, 0),))
    more = Claim(scenario.ann, RUNNING, scenario.machines[1])
    assert (0, 0) == commit(session, scenario.transaction(move, more)).verdicts


def lose_tasks(scenario: QuotaScenario, session: Session) -> None:
    """Take a machine down, and end the tasks on it."""
    call(scenario.owner, "set_state", [scenario.machines[0]], DOWN)
    assert [(2 * RUNNING,)] == call(session, "lose_tasks", [scenario.machines[0]])


def shrink_machine(scenario: QuotaScenario, session: Session) -> None:
    """Shrink a machine, and end the tasks that do not fit any more."""
    less = [RUNNING * 1_000 + 500, *DEFAULT_CAPACITY[1:]]
    assert len(KINDS) == len(less)
    call(scenario.owner, "resize_machine", scenario.machines[0], less, 0)
    ((ended,),) = call(session, "enforce_notice", scenario.machines[0])
    assert ended > 0


OPERATIONS: dict[str, tuple[str, Operation]] = {
    "place": ("other_scheduler", place_task),
    "end": ("node", end_task),
    "cancel": ("submitter", cancel_job),
    "submit and place": ("submitting_scheduler", submit_and_place),
    "evict": ("other_scheduler", evict_task),
    "move": ("other_scheduler", move_task),
    "lose": ("other_scheduler", lose_tasks),
    "shrink": ("other_scheduler", shrink_machine),
}
"""By name, the session that executes an operation, and the operation."""


def begin_operation(scenario: QuotaScenario, name: str) -> Session:
    """Execute an operation in a transaction that stays open; return its session."""
    attribute, operation = OPERATIONS[name]
    session: Session = getattr(scenario, attribute)
    session.execute("BEGIN")
    operation(scenario, session)
    return session


def outcome_of(session: Session) -> Outcome:
    """Return the outcome of a commit that was started in this session."""
    answer = session.answer
    assert not answer.sqlstate, f"{answer.sqlstate}: {answer.message}"
    return Outcome.of(answer.rows)
