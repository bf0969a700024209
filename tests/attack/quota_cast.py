"""A small cell with two tenants, and those who are at work in it while quotas are set.

Ann has a job of which some tasks run and some wait, under a lease; so has Bob, of another kind of
scheduler. Each deed below leaves a transaction open in which something of Ann's has begun or ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from psycopg.types.json import Jsonb

from tests.attack.calls import (
    Claim,
    Commit,
    Lease,
    Outcome,
    ask,
    commit,
    do,
    lease,
    one,
    submit,
)
from tests.attack.machine_rows import DOWN, OPEN, ROOMY, add_machines
from tests.attack.sessions import Answer, Session, Stage
from tests.attack.wires import KINDS, UNLIMITED, a_group, a_job

ANN = ("tenant", "ann")
CPU, JOBS = 0, 4
TASKS = 6
RUNNING = 2
QUOTA = 9
STILL_OPEN = "55P03"


def cores(number: int, jobs: int = UNLIMITED) -> list[int]:
    """Return the limits of a quota of so many cores, and jobs."""
    return [number * 1_000, UNLIMITED, UNLIMITED, UNLIMITED, jobs]


@dataclass
class Cast:
    """Who is there, and what they hold."""

    stage: Stage
    owner: Session
    submitter: Session
    scheduler: Session
    other: Session
    """A second scheduler ..."""
    node: Session
    both: Session
    """... and a login that may submit and schedule."""
    ann: Lease = field(init=False)
    bob: Lease = field(init=False)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.machines = add_machines(self.owner, 3)
        groups = a_group(tasks=TASKS)
        submit(self.submitter, a_job(groups))
        (self.ann,) = lease(self.scheduler)
        submit(self.submitter, a_job(groups, tenant="bob", scheduler="service", precedence=5))
        (self.bob,) = lease(self.scheduler, "service")
        for mine in (self.ann, self.bob):
            commit(self.scheduler, self.claims(mine, *range(RUNNING)))
        user = "SELECT omega.assign_machines(%s, NULL)"
        self.owner.do(user, [self.node.connection.info.user])

    def claims(self, mine: Lease, *tasks: int, machine: int = 0) -> Commit:
        """Return a new transaction that claims a core for each of these tasks."""
        at = self.machines[machine]
        return one(next(self.numbers), *(Claim(mine, task, at) for task in tasks))

    def repair(self) -> None:
        """Make all machines what they were at first."""
        do(self.owner, "set_state", self.machines, OPEN)
        for machine in self.machines:
            do(self.owner, "resize_machine", machine, list(ROOMY), 0)

    def set(self, limits: list[int], whose: tuple[str, str] = ANN) -> bool:
        """Set a quota; say whether it counts."""
        ((counts,),) = do(self.owner, "set_quota", *whose, limits)
        return bool(counts)

    def count(self, whose: tuple[str, str] = ANN) -> Answer:
        """Have a quota count."""
        return ask(self.owner, "count_quota", *whose)

    def take(self, *tasks: int) -> tuple[int, ...]:
        """Claim for Ann, a transaction a task; return the verdicts."""
        return tuple(commit(self.other, self.claims(self.ann, task)).verdicts[0] for task in tasks)

    def held(self) -> int:
        """Return how many cores Ann holds."""
        query = """
            SELECT coalesce(sum(cpu_milli), 0) / 1000 FROM omega.allocation
              JOIN omega.job_spec USING (job_id) WHERE tenant = 'ann'"""
        return int(self.stage.see(query)[0][0])

    def left(self) -> int:
        """Return how many cores are left of Ann's quota, as everybody reads it."""
        query = "SELECT remains[1] / 1000 FROM omega.read_quotas() WHERE name = 'ann'"
        return int(self.stage.see(query)[0][0])


Deed = Callable[[Cast, Session], None]


def places(cast: Cast, session: Session) -> None:
    """Place a task of Ann's that waits."""
    outcome = commit(session, cast.claims(cast.ann, RUNNING))
    assert (0,) == outcome.verdicts


def ends(cast: Cast, session: Session) -> None:
    """End a task of Ann's."""
    assert [(1,)] == do(session, "end_tasks", [cast.ann.job], [0], None)


def cancels(cast: Cast, session: Session) -> None:
    """Cancel Ann's job."""
    assert [(True,)] == do(session, "cancel_job", cast.ann.job)


def comes_and_goes_in(cast: Cast, session: Session) -> None:
    """Submit a job of Ann's, lease it and place it, all where nobody sees it yet."""
    wires = Jsonb([a_job(a_group(tasks=2), scheduler="sudden")])
    do(session, "submit_jobs", wires)
    (mine,) = lease(session, "sudden")
    assert (0, 0) == commit(session, cast.claims(mine, 0, 1)).verdicts


def evicts(cast: Cast, session: Session) -> None:
    """Let a job of Bob's take the place of a task of Ann's."""
    claim = Claim(cast.bob, RUNNING, cast.machines[0], evicts=((cast.ann.job, 0),))
    assert (0,) == commit(session, one(next(cast.numbers), claim)).verdicts


def moves(cast: Cast, session: Session) -> None:
    """Move a task of Ann's to another machine, and place one more."""
    move = Claim(cast.ann, 0, cast.machines[1], evicts=((cast.ann.job, 0),))
    more = Claim(cast.ann, RUNNING, cast.machines[1])
    assert (0, 0) == commit(session, one(next(cast.numbers), move, more)).verdicts


def loses(cast: Cast, session: Session) -> None:
    """Lose what runs on a machine that is down."""
    do(cast.owner, "set_state", [cast.machines[0]], DOWN)
    assert [(2 * RUNNING,)] == do(session, "lose_tasks", [cast.machines[0]])


def enforces(cast: Cast, session: Session) -> None:
    """End what no longer fits on a machine that has shrunk."""
    less = [RUNNING * 1_000 + 500, *ROOMY[1:]]
    assert len(KINDS) == len(less)
    do(cast.owner, "resize_machine", cast.machines[0], less, 0)
    ((ended,),) = do(session, "enforce_notice", cast.machines[0])
    assert ended > 0


DEEDS: dict[str, tuple[str, Deed]] = {
    "places": ("other", places),
    "ends": ("node", ends),
    "cancels": ("submitter", cancels),
    "comes and goes in": ("both", comes_and_goes_in),
    "evicts": ("other", evicts),
    "moves": ("other", moves),
    "loses": ("other", loses),
    "enforces": ("other", enforces),
}
"""What may be under way in an open transaction, and in whose."""


def do_deed(cast: Cast, deed: str) -> Session:
    """Do it in a transaction that is left open; return whose."""
    who, act = DEEDS[deed]
    session: Session = getattr(cast, who)
    session.do("BEGIN")
    act(cast, session)
    return session


def outcome_of(session: Session) -> Outcome:
    """Return what came of a commit that was begun."""
    answer = session.answer
    assert not answer.sqlstate, f"{answer.sqlstate}: {answer.said}"
    return Outcome.of(answer.rows)
