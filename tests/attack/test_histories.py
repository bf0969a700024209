"""Random histories of several sessions, one statement at a time, in an order drawn from a seed.

Some leave transactions open, and others wait for what these hold. What was acknowledged is kept in
books apart from the cell, and compared at the end; the cell's own laws are looked at all along.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.attack.books import leftovers, wrongs
from tests.attack.calls import Outcome, do
from tests.attack.doses import Dose, Tally
from tests.attack.machine_rows import add_machines, empty, places
from tests.attack.players import PARTS, SIZE, Move, World
from tests.attack.sessions import Session, Stage, wait_until
from tests.attack.shadow import Fact, Shadow, disagreements

COLLISIONS = {"40P01", "40001", "55P03"}
"""Whoever holds rows over several statements is in others' way, and they may be in his."""
ROW_LOCKS = {"transactionid", "tuple", "spectoken"}
REFUSED = {("count_quota", "22023"), ("commit_claims", "22023")}
"""A quota is not counted in the transaction that set it. Under leases that are not committed, twins
may differ: one of them is told that another has its id."""
LOOK_EVERY = 8


@dataclass
class Player:
    """A session, what it is at, and what it was told that is not acknowledged yet."""

    session: Session
    move: Move | None = None
    unacknowledged: list[Fact] = field(default_factory=list)
    calls: int = 0
    """In the open transaction."""


@dataclass
class History:
    """Players on one stage."""

    stage: Stage
    world: World
    players: dict[str, Player]
    shadow: Shadow = field(default_factory=Shadow)
    story: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        """What went before, a line each."""
        return "\n".join(self.story)

    def collect(self) -> None:
        """Read the answers of those who are done."""
        for name, player in self.players.items():
            if player.move is None or not player.session.is_done:
                continue
            move, answer = player.move, player.session.answer
            player.move = None
            self.story.append(f"{name}: {move.function} answered {answer.sqlstate or 'well'}")
            if answer.sqlstate:
                allowed = (move.function, answer.sqlstate) in REFUSED
                assert allowed or answer.sqlstate in COLLISIONS, f"{answer}\n{self.told}"
                # A single statement takes its rows in one order: with others such, nobody collides.
                others = [it for it in self.players.values() if it.session.in_transaction]
                assert answer.sqlstate != "40P01" or others, self.told
                continue
            fact = move.read(answer.rows)
            player.calls += 1
            if fact is not None:
                player.unacknowledged.append(fact)
            if not player.session.in_transaction:
                self.acknowledge(player)

    def acknowledge(self, player: Player) -> None:
        """What a player was told is true from now on."""
        for fact in player.unacknowledged:
            fact(self.shadow)
        player.unacknowledged.clear()
        player.calls = 0

    def end(self, name: str, how: str) -> None:
        """End a player's transaction."""
        player = self.players[name]
        self.story.append(f"{name}: {how}")
        player.session.do(how)
        if how == "COMMIT":
            self.acknowledge(player)
        player.unacknowledged.clear()
        player.calls = 0

    def step(self) -> None:
        """Let one who does not wait go on; see who waits then, and for what."""
        self.collect()
        free = [name for name, it in self.players.items() if it.move is None]
        if not free:
            wait_until(lambda: any(it.session.is_done for it in self.players.values()), "a victim")
            return
        name = free[self.world.below(len(free))]
        player, lot = self.players[name], self.world.below(10)
        if player.session.has_failed:
            self.end(name, "ROLLBACK")
        elif player.session.in_transaction and lot < 5:
            self.end(name, "ROLLBACK" if lot == 0 else "COMMIT")
        else:
            if not player.session.in_transaction and lot < 4:
                player.session.do("BEGIN")
                self.story.append(f"{name}: BEGIN")
            self.go(name)
        self.stage.settle()
        kinds = {kind for of in self.stage.waiting().values() for kind in of.split(", ")}
        assert ROW_LOCKS.issuperset(kinds), self.told

    def go(self, name: str) -> None:
        """Have a player make its next call."""
        draws = PARTS[name][1]
        player = self.players[name]
        player.move = draws[self.world.below(len(draws))](self.world)
        self.story.append(f"{name}: {player.move.function}{player.move.arguments}")
        player.session.start(player.move.statement, player.move.arguments)

    def close(self) -> None:
        """End all transactions, one after the other, and read the last answers."""
        for _ in range(1_000):
            self.stage.settle()
            self.collect()
            open_ones = [
                name
                for name, it in self.players.items()
                if it.move is None and it.session.in_transaction
            ]
            if not open_ones and all(it.move is None for it in self.players.values()):
                return
            for name in open_ones[:1]:
                failed = self.players[name].session.has_failed
                self.end(name, "ROLLBACK" if failed else "COMMIT")


def begin(stage: Stage, seed: int) -> History:
    """Empty the stage, and bring the players onto it, and a few machines."""
    owner = stage.sessions.get("owner") or stage.owner()
    empty(owner)
    world = World(stage, np.random.default_rng([seed, 7]), add_machines(owner, 3, SIZE))
    history = History(stage, world, {"owner": Player(owner)})
    for name, (roles, _) in PARTS.items():
        if roles:
            session = stage.sessions.get(name) or stage.session(name, *roles)
            history.players[name] = Player(session)
    node = history.players["node"].session.connection.info.user
    owner.do("SELECT omega.assign_machines(%s, NULL)", [node])
    return history


def looks_well(history: History) -> None:
    """See that no law is broken, whoever is at whatever."""
    assert [] == wrongs(history.stage), history.told
    assert [] == leftovers(history.stage), history.told


def is_answered_alike(history: History) -> None:
    """Send again whatever was granted something: it is answered as before, or grants no more."""
    before = places(history.stage)
    session = history.players["one"].session
    for transaction, outcome in history.shadow.answers.values():
        if outcome.grants:
            again = Outcome.of(do(session, "commit_claims", *transaction.arguments))
            assert not again.replayed or again.is_like(outcome), history.told
            assert again.replayed or not set(again.grants) & set(outcome.grants), history.told
    ours = [it for it in places(history.stage) if it not in before]
    assert not ours, history.told


def play(history: History, steps: int) -> None:
    """Play it to its end, and compare what there is with what was told."""
    for n in range(steps):
        history.step()
        if n % LOOK_EVERY == 0:
            looks_well(history)
    history.close()

    looks_well(history)
    assert [] == disagreements(history.shadow, history.stage), history.told
    is_answered_alike(history)
    looks_well(history)
    for job in history.shadow.jobs:
        do(history.players["submitter"].session, "cancel_job", job)
    looks_well(history)
    assert [] == places(history.stage), history.told


@pytest.mark.parametrize("part", range(2))
def test_what_was_acknowledged_is_so(stage: Stage, dose: Dose, tally: Tally, part: int) -> None:
    with tally("histories", of="attack") as row:
        for seed in range(dose(1, 25)):
            row.tried += 1
            play(begin(stage, 1_000 * part + seed), dose(60, 150))
            row.survived += 1
