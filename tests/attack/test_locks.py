"""A transaction that is left open holds up nobody but those who want the very rows it changed."""

from collections.abc import Callable
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, Claim, Lease, do, lease, one, step, submit
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Session, Stage
from tests.attack.wires import a_group, a_job

NOBODYS = UUID(int=99)
LONG_MS = 86_400_000


class Neighbours:
    """An honest scheduler with a job of its own, and one who leaves a transaction open."""

    def __init__(self, stage: Stage, owner: Session) -> None:
        self.stage = stage
        self.machines = add_machines(owner, 2)
        self.submitter = stage.session("submitter", "omega_submitter")
        self.honest = stage.session("honest", "omega_scheduler")
        self.node = stage.session("node", "omega_node")
        self.rogue = stage.session_of("rogue", "attack_rogue", "omega_scheduler")
        self.rogue_node = stage.session_of("rogue node", "attack_rogue_node", "omega_node")
        for role in (self.node, self.rogue_node):
            owner.do(
                "SELECT omega.assign_machines(%s, %s)",
                [
                    role.connection.info.user,
                    None if role is self.node else [f"machine-{self.machines[1]}"],
                ],
            )
        submit(self.submitter, a_job(a_group(tasks=4)), a_job(a_group(tasks=4)))
        self.mine, self.other = lease(self.honest)
        do(self.honest, "commit_claims", *self.claims(1, self.mine, 0))
        do(self.honest, "begin_round", "rounds", "honest", LONG_MS)

    def claims(self, number: int, mine: Lease, task: int, machine: int = 0) -> list[object]:
        return one(number, Claim(mine, task, self.machines[machine])).arguments

    @property
    def ids(self) -> list[int]:
        return [self.mine.job, self.other.job]

    def is_free(self) -> list[str]:
        """Return what the honest scheduler, node and submitter have to wait for."""
        tokens = [self.mine.token, self.other.token]
        work: list[tuple[Session, str, list[object]]] = [
            (self.honest, "renew_leases", [self.ids, tokens, LEASE_MS]),
            (self.honest, "commit_claims", self.claims(7, self.mine, 1)),
            (self.honest, "note_round", ["rounds", 1, Jsonb({})]),
            (self.honest, "report_process", ["batch", "honest", 1, Jsonb({})]),
            (self.node, "end_tasks", [[self.mine.job], [0], None]),
            (self.submitter, "cancel_job", [self.other.job]),
        ]
        for session, function, arguments in work:
            session.do("BEGIN")
            if not step(self.stage, session, function, *arguments):
                waits = [f"{function}: {self.stage.waiting()}"]
                session.connection.cancel_safe()
                assert session.answer.sqlstate
                session.do("ROLLBACK")
                return waits
            assert not session.answer.sqlstate, f"{function}: {session.answer.said}"
            session.do("ROLLBACK")
        return []


@pytest.fixture
def neighbours(stage: Stage, owner: Session) -> Neighbours:
    return Neighbours(stage, owner)


Lock = Callable[[Neighbours], object]


def with_wrong_tokens(function: str, *more: object) -> Lock:
    return lambda it: do(it.rogue, function, it.ids, [NOBODYS] * 2, *more)


OPEN: dict[str, Lock] = {
    "a renewal of others' leases": with_wrong_tokens("renew_leases", LEASE_MS),
    "others' jobs handed back": with_wrong_tokens("hand_back_jobs", [0, 0], [True, True]),
    "others' jobs parked": with_wrong_tokens("park_jobs", ["no_room"] * 2, [""] * 2),
    "jobs woken that are not parked": lambda it: do(it.rogue, "wake_jobs", it.ids),
    "leases that have not run out": lambda it: do(it.rogue, "rescue_jobs"),
    "an empty lease": lambda it: do(it.rogue, "lease_jobs", "batch", "me", 9, LEASE_MS),
    "a recall under no round": lambda it: do(it.rogue, "recall_jobs", "batch", 1, None, LEASE_MS),
    "ends of tasks that do not run": lambda it: do(
        it.rogue_node, "end_tasks", it.ids * 2, [1, 2, 3, 2], None
    ),
    "ends of tasks of other starts": lambda it: do(
        it.rogue_node, "end_tasks", it.ids, [0, 0], [1, 1]
    ),
    "machines that are not down": lambda it: do(it.rogue, "lose_tasks", it.machines),
    "a notice that there is not": lambda it: do(it.rogue, "enforce_notice", it.machines[0]),
    "progress of jobs elsewhere": lambda it: do(
        it.rogue_node, "report_progress", it.ids, [1, 1], [1, 1]
    ),
    "a round that is not due": lambda it: do(it.rogue, "begin_round", "rounds", "rogue", LONG_MS),
    "a commit under no lease": lambda it: do(
        it.rogue, "commit_claims", *it.claims(9, Lease(it.mine.job, NOBODYS), 2)
    ),
    "a commit for a job that there is not": lambda it: do(
        it.rogue, "commit_claims", *it.claims(9, Lease(99, NOBODYS), 0)
    ),
    "evictions for a job that there is not": lambda it: do(
        it.rogue,
        "commit_claims",
        *one(9, Claim(Lease(99, NOBODYS), 0, it.machines[0], evicts=((it.mine.job, 0),))).arguments,
    ),
    "reads": lambda it: [do(it.rogue, name) for name in ("read_mark", "read_quotas")],
}


def test_what_is_not_ones_own_is_not_locked(stage: Stage, neighbours: Neighbours) -> None:
    rogues = (neighbours.rogue, neighbours.rogue_node)
    waits = {}
    for what, lock in OPEN.items():
        for session in rogues:
            session.do("BEGIN")
        lock(neighbours)
        waits[what] = neighbours.is_free()
        for session in rogues:
            session.do("ROLLBACK")

    assert {what: [] for what in OPEN} == waits
    assert [] == wrongs(stage)


def test_the_rows_that_are_answered_are_those_of_one_moment(
    stage: Stage, neighbours: Neighbours
) -> None:
    """A grant on an alternate waits for who was told of its row, and has not let go of another.

    If it did not wait, a third who then reads both rows would find the second changed and the first
    as it was, and no order of the three would explain that.
    """
    first, second = neighbours.machines
    mine, other = neighbours.mine, neighbours.other
    rival = stage.session("rival", "omega_scheduler")
    neighbours.honest.do("BEGIN")
    with_an_alternate = one(7, Claim(mine, 1, first, others=(second,)))
    do(neighbours.honest, "commit_claims", *with_an_alternate.arguments)

    on_the_alternate = one(8, Claim(other, 0, second))
    assert not step(stage, rival, "commit_claims", *on_the_alternate.arguments)

    neighbours.honest.do("COMMIT")
    assert not rival.answer.sqlstate
    assert [] == wrongs(stage)
