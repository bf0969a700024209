"""Those who take part in a history: each draws its next statement, and reads what comes of it.

What a statement did becomes facts for the shadow, once they are acknowledged. A statement may be a
call of any function that its login may make, with arguments that could be right.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

import numpy as np
from psycopg.types.json import Jsonb

from tests.attack.calls import LEASE_MS, Claim, Commit, Lease, Outcome, calling
from tests.attack.machine_rows import DOWN, DRAINING, OPEN
from tests.attack.sessions import Rows, Stage
from tests.attack.shadow import Fact
from tests.attack.wires import UNLIMITED, Wire, a_group, a_job, demand_of, tasks_of

Chance = np.random.Generator
Reader = Callable[[Rows], Fact | None]
KINDS = ("batch", "service")
TENANTS = ("ann", "bob")
SIZE = (6_000,) + (0,) * 10


@dataclass(frozen=True)
class Move:
    """A statement, and what its answer tells."""

    function: str
    arguments: tuple[object, ...]
    read: Reader = lambda _rows: None

    @property
    def statement(self) -> str:
        return calling(self.function)


@dataclass
class World:
    """What the players know, acknowledged or not."""

    stage: Stage
    chance: Chance
    machines: list[int]
    wires: dict[int, Wire] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    sent: list[Commit] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def below(self, number: int) -> int:
        return int(self.chance.integers(number))

    def some_jobs(self) -> list[int]:
        """Return a few that were heard of."""
        known = sorted(self.wires)
        return sorted({known[self.below(len(known))] for _ in range(2)}) if known else [1]

    def some_leases(self, most: int = 2) -> list[Lease]:
        """Return a few, each of another job: mostly such as are held, else such as once were."""
        latest = self.leases[-8:]
        if self.below(8):
            rows = self.stage.see("SELECT id, lease_token FROM omega.job WHERE state = 'planning'")
            latest = [Lease(job, token) for job, token in sorted(rows)]
        drawn = [latest[self.below(len(latest))] for _ in range(most)] if latest else []
        return list({it.job: it for it in drawn}.values())

    def some_tasks(self, job: int) -> list[int]:
        """Return a few tasks of a job, mostly such as wait."""
        rows = self.stage.see(
            "SELECT task FROM omega.job, generate_series(0, tasks - 1) AS task"
            " WHERE id = %s AND (unplaced @> task OR %s)",
            [job, self.below(8) == 0],
        )
        tasks: list[int] = self.chance.permutation([task for (task,) in rows]).tolist()
        return tasks[: 1 + self.below(3)]

    def live(self) -> list[tuple[int, int, int, int]]:
        """Return what runs, as it is committed: job, task, machine and start."""
        rows = self.stage.see(
            "SELECT job_id, task, machine_id, (extract(epoch FROM started_at) * 1000)::bigint"
            " FROM omega.allocation ORDER BY job_id, task"
        )
        return [(job, task, machine, start) for job, task, machine, start in rows]

    def a_live_one(self) -> tuple[int, int, int, int] | None:
        live = self.live()
        return live[self.below(len(live))] if live else None


def submits(world: World) -> Move:
    wires = [
        a_job(
            a_group(tasks=1 + world.below(3), cpu_milli=1_000 * (1 + world.below(2))),
            scheduler=KINDS[world.below(2)],
            tenant=TENANTS[world.below(2)],
            precedence=world.below(3),
        )
        for _ in range(1 + world.below(2))
    ]
    for wire in wires:
        if world.below(3) == 0:
            wire["minimum"] = tasks_of(wire)

    def read(rows: Rows) -> Fact:
        ((ids,),) = rows
        world.wires.update(zip(ids, wires, strict=True))
        return lambda shadow: shadow.jobs.update(ids)

    return Move("submit_jobs", (Jsonb(wires),), read)


def cancels(world: World) -> Move:
    (job, *_) = world.some_jobs()

    def read(rows: Rows) -> Fact | None:
        return (lambda shadow: shadow.cancelled.add(job)) if rows == [(True,)] else None

    return Move("cancel_job", (job,), read)


def leases(world: World) -> Move:
    def read(rows: Rows) -> None:
        world.leases += [Lease(row[0], row[1]) for row in rows]

    kind = KINDS[world.below(2)]
    return Move("lease_jobs", (kind, "player", 1 + world.below(3), LEASE_MS), read)


def claims(world: World) -> Move:
    drawn: list[Claim] = []
    for lease in world.some_leases(1 + world.below(2)):
        wire = world.wires.get(lease.job, a_job())
        for task in world.some_tasks(lease.job):
            machine, evicts = world.machines[world.below(len(world.machines))], ()
            victim = world.a_live_one() if world.below(3) == 0 else None
            others: tuple[int, ...] = ()
            if victim is not None:
                machine = victim[2]
                evicts = ((victim[0], victim[1]),)  # type: ignore[assignment]
            elif world.below(3) == 0:
                others = tuple({*world.machines[:2]} - {machine})
            drawn.append(
                Claim(lease, task, machine, demand_of(wire, task), others=others, evicts=evicts)
            )
    if not drawn:
        return leases(world)
    transaction = Commit(UUID(int=next(world.numbers)), tuple(drawn))
    world.sent.append(transaction)
    return sends(transaction)


def repeats(world: World) -> Move:
    """Send again what was sent before, acknowledged or taken back."""
    if not world.sent:
        return leases(world)
    return sends(world.sent[-1 - world.below(min(len(world.sent), 10))])


def sends(transaction: Commit) -> Move:
    def read(rows: Rows) -> Fact:
        outcome = Outcome.of(rows)
        return lambda shadow: shadow.note(transaction, outcome)

    return Move("commit_claims", tuple(transaction.arguments), read)


def keeps_or_gives_back(world: World) -> Move:
    held = world.some_leases()
    jobs, tokens = [it.job for it in held], [it.token for it in held]
    match world.below(4):
        case 0:
            return Move("renew_leases", (jobs, tokens, LEASE_MS))
        case 1:
            return Move("park_jobs", (jobs, tokens, ["no_room"] * len(held), ["full"] * len(held)))
        case 2:
            return Move("renew_leases", (jobs, tokens, 0))
        case _:
            return Move("hand_back_jobs", (jobs, tokens, [0] * len(held), [True] * len(held)))


def wakes(world: World) -> Move:
    if world.below(2):
        return Move("rescue_jobs", ())
    return Move("wake_jobs", (sorted(world.wires),))


def ended_by(cause: str) -> Reader:
    """Read how many tasks have ended."""

    def read(rows: Rows) -> Fact:
        ((ended,),) = rows
        return lambda shadow: shadow.ends.update({cause: ended})

    return read


def clears(world: World) -> Move:
    if world.below(2):
        return Move("lose_tasks", (world.machines,), ended_by("lost"))
    machine = world.machines[world.below(len(world.machines))]
    return Move("enforce_notice", (machine,), ended_by("resized"))


def begins_a_round(world: World) -> Move:
    return Move("begin_round", (KINDS[world.below(2)], "player", 0))


def recalls(world: World) -> Move:
    kind = KINDS[world.below(2)]
    rows = world.stage.see("SELECT number FROM omega.round WHERE scheduler = %s", [kind])
    number = rows[0][0] if rows else 1

    def read(rows: Rows) -> None:
        world.leases += [Lease(row[0], row[1]) for row in rows]

    jobs = None if world.below(2) else world.some_jobs()
    return Move("recall_jobs", (kind, number, jobs, LEASE_MS), read)


def ends(world: World) -> Move:
    chosen = [it for it in (world.a_live_one() for _ in range(2)) if it is not None]
    jobs, tasks, _, starts = ([row[n] for row in chosen] for n in range(4))
    return Move("end_tasks", (jobs, tasks, starts if world.below(2) else None), ended_by("ended"))


def looks(_world: World) -> Move:
    """Look at the cell, as whoever is to hear of changes does."""
    return Move("read_mark", ())


def changes_a_machine(world: World) -> Move:
    machine = world.machines[world.below(len(world.machines))]

    def moved(rows: Rows) -> Fact:
        changed = rows != [(0,)]
        return lambda shadow: shadow.moves.update([machine] * changed)

    if world.below(2):
        state = (OPEN, OPEN, OPEN, OPEN, DRAINING, DOWN)[world.below(6)]
        return Move("set_state", ([machine], state), moved)
    size = [1_000 * (1 + world.below(8)), *SIZE[1:]]
    return Move("resize_machine", (machine, size, 0), lambda _rows: moved([(1,)]))


def changes_a_quota(world: World) -> Move:
    whose = (("tenant", "ann"), ("scheduler", "batch"))[world.below(2)]
    match world.below(8):
        case 0:
            return Move("remove_quota", whose)
        case 1 | 2 | 3:
            return Move("count_quota", whose)
        case _:
            limits = [1_000 * world.below(24), *[UNLIMITED] * 3, 2 + world.below(9)]
            return Move("set_quota", (*whose, limits))


def prunes(world: World) -> Move:
    if world.below(2):
        return Move("forget_changes", ())
    return Move("prune_history", ("transaction", 0, 0, 2**20))


def may_park(world: World) -> Move:
    """Do what ends a lease, or takes others': seldom, or nothing would ever be placed."""
    draws = (keeps_or_gives_back, keeps_or_gives_back, wakes, begins_a_round, recalls)
    return draws[world.below(len(draws))](world)


Draw = Callable[[World], Move]
PLACES: tuple[Draw, ...] = (*(leases,) * 3, *(claims,) * 8, *(repeats,) * 2, clears, may_park)
PARTS: dict[str, tuple[tuple[str, ...], tuple[Draw, ...]]] = {
    "one": (("omega_scheduler",), PLACES),
    "two": (("omega_scheduler",), PLACES),
    "both": (("omega_submitter", "omega_scheduler"), (submits, *PLACES)),
    "node": (("omega_node",), (ends, looks, looks)),
    "submitter": (("omega_submitter",), (submits, submits, submits, submits, cancels)),
    "owner": ((), (changes_a_machine, changes_a_machine, changes_a_quota, prunes, clears)),
}
"""By name, the roles of a player and what it does; whoever has none is the owner."""
