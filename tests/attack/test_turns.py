"""Turns: no two holders have one, whoever asks, dies, asks late or leaves a transaction open."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from tests.attack.calls import call, call_sql, try_call
from tests.attack.hostile_names import INVALID
from tests.attack.run_sizes import ExampleCount, ResultTable
from tests.attack.sessions import Database, Rows, Session

LONG_MS = 86_400_000
OVER_MS = 0
HOLDERS_MAX = 8
LOGINS = ("turns", "other_turns")
TURN = ("batch", "0", 1_000, 0, None, None, LONG_MS)
"""A kind, a replica, a gap, parts, no given turn, and a lease."""


@dataclass(frozen=True)
class Grant:
    """What a holder was last told that it has."""

    group: tuple[int, int]
    number: int
    schedulers: int


@dataclass(frozen=True)
class Known:
    """What a holder knows of itself."""

    asked: int = 0
    """The last request that changed anything."""
    grant: Grant | None = None
    leased: int | None = None
    """The request whose lease goes on, with a turn or without one. After a turn was given back that
    may be an old one, which came late."""


@dataclass
class Holder:
    """One that asks for turns in a session."""

    session: Session
    login: int
    id: UUID
    group: tuple[int, int]
    fixed: tuple[int | None, int | None]
    known: Known = Known()
    before: Known = Known()
    """What it knew before the transaction under way."""

    def ask(self, lease_ms: int, asked: int | None = None) -> None:
        """Ask for a turn, or send an old request again; note the answer."""
        request = self.known.asked + 1 if asked is None else asked
        ((granted, number, schedulers, _),) = call(
            self.session,
            "take_turn",
            self.id,
            request,
            "batch",
            str(self.id.int),
            *self.group,
            *self.fixed,
            lease_ms,
        )
        if granted is None or (lease_ms == OVER_MS and request <= self.known.asked):
            return
        last = max(request, self.known.asked)
        leased = self.known.leased
        assert leased is None or request > leased, "an old request was answered"
        grant = Grant(self.group, number, schedulers) if granted and lease_ms else None
        self.known = Known(last, grant, request if lease_ms > 0 else None)


@dataclass
class History:
    """Holders of two logins that ask at random; each session has some of them."""

    sessions: Sequence[Session]
    rng: np.random.Generator
    holders: list[Holder] = field(default_factory=list)

    def step(self) -> None:
        """Let one begin, ask, leave, or end a transaction."""
        if len(self.holders) < HOLDERS_MAX and self.rng.random() < 0.3:
            self.join()
        if not self.holders:
            return
        holder = self.holders[int(self.rng.integers(len(self.holders)))]
        draw = self.rng.random()
        if draw < 0.25:
            self.begin_or_end(holder.session)
        elif draw < 0.35:
            holder.ask(LONG_MS, asked=int(self.rng.integers(-1, holder.known.asked + 1)))
        else:
            holder.ask(OVER_MS if draw < 0.45 else LONG_MS)

    def join(self) -> None:
        """Add a holder; the two logins use the same ids."""
        rng = self.rng
        at = int(rng.integers(len(self.sessions)))
        fixed = (int(rng.integers(0, 3)), 3) if rng.random() < 0.2 else (None, None)
        login = at // 2
        id_ = UUID(int=sum(it.login == login for it in self.holders))
        group = (1_000, int(rng.choice([0, 0, 40])))
        self.holders.append(Holder(self.sessions[at], login, id_, group, fixed))

    def begin_or_end(self, session: Session) -> None:
        """Begin a transaction, or commit it, or roll it back."""
        its = [it for it in self.holders if it.session is session]
        if not session.in_transaction:
            session.execute("BEGIN")
            for it in its:
                it.before = it.known
        elif self.rng.random() < 0.5:
            session.execute("COMMIT")
        else:
            session.execute("ROLLBACK")
            for it in its:
                it.known = it.before

    def shared(self) -> list[tuple[Grant, Grant]]:
        """Return the grants that cannot be held together."""
        grants = [it.known.grant for it in self.holders if it.known.grant is not None]
        return [
            (one, other)
            for at, one in enumerate(grants)
            for other in grants[at + 1 :]
            if one.group == other.group
            and (one.schedulers != other.schedulers or one.number == other.number)
        ]

    def settle(self) -> list[Grant | None]:
        """Let those without a given turn ask until all have one; return their grants."""
        for session in self.sessions:
            session.execute("COMMIT")
        for holder in self.holders:
            if holder.fixed != (None, None):
                holder.ask(OVER_MS)
        askers = [it for it in self.holders if it.fixed == (None, None)]
        for _ in range(3):
            for holder in askers:
                holder.ask(LONG_MS)
        return [it.known.grant for it in askers]


def test_no_two_holders_have_one_turn(
    database: Database, example_count: ExampleCount, result_table: ResultTable
) -> None:
    owner = database.owner()
    sessions = [
        database.session_of(f"{login} {n}", f"attack_{login}", "omega_scheduler")
        for login in LOGINS
        for n in range(2)
    ]
    with result_table("histories of turns", of="attack") as row:
        for seed in range(example_count(4, 400)):
            owner.execute("TRUNCATE omega.turn")
            history = History(sessions, np.random.default_rng(seed))
            for _ in range(80):
                row.tried += 1
                history.step()
                assert [] == history.shared(), seed
                row.survived += 1
            grants = history.settle()

            assert None not in grants, seed
            for group in {grant.group for grant in grants if grant is not None}:
                its = [grant for grant in grants if grant is not None and grant.group == group]
                assert {len(its)} == {grant.schedulers for grant in its}
                assert list(range(len(its))) == sorted(grant.number for grant in its)


def ask(session: Session, holder: int, asked: int = 1) -> Rows:
    """Ask for any turn of a group of one gap."""
    return call(session, "take_turn", UUID(int=holder), asked, *TURN)


def test_an_open_transaction_makes_nobody_wait(database: Database, scheduler: Session) -> None:
    hostile = database.session_of("hostile", "attack_hostile", "omega_scheduler")
    assert [(True, 0, 1, "")] == ask(scheduler, 1)
    hostile.execute("BEGIN")
    ask(hostile, 2)

    assert database.step(scheduler, call_sql("take_turn"), [UUID(int=1), 2, *TURN]), (
        "it waits for the hostile transaction"
    )
    assert [(None, None, None, None)] == scheduler.answer.rows
    hostile.execute("ROLLBACK")
    assert [(True, 0, 1, "")] == ask(scheduler, 1, asked=3)


def test_another_login_with_the_same_id_is_another_holder(
    database: Database, scheduler: Session
) -> None:
    hostile = database.session_of("hostile", "attack_hostile", "omega_scheduler")
    ask(scheduler, 1)

    assert [(False, None, None, "")] == ask(hostile, 1)
    assert [(True, 0, 2, "")] == ask(scheduler, 1, asked=2)
    assert [(2,)] == database.query("SELECT count(*) FROM omega.turn")


def test_a_turn_is_whole_or_none(owner: Session) -> None:
    insert = (
        "INSERT INTO omega.turn (holder, asked, kind, replica, gap_ms, parts, number, schedulers)"
        " VALUES (gen_random_uuid(), 1, 'batch', '0', 1, 0, %s, %s)"
    )
    answers = {
        turn: owner.try_execute(insert, turn).sqlstate
        for turn in ((None, 3), (1, None), (3, 3), (-1, 3), (1, 3), (None, None))
    }

    refused = "23514"
    assert {
        **dict.fromkeys([(None, 3), (1, None), (3, 3), (-1, 3)], refused),
        **dict.fromkeys([(1, 3), (None, None)], ""),
    } == answers


def test_the_turn_of_one_that_died_is_free_once_its_lease_is_over(
    database: Database, owner: Session, scheduler: Session
) -> None:
    ask(scheduler, 1)
    owner.execute("UPDATE omega.turn SET expires_at = clock_timestamp()")

    assert [(True, 0, 1, "")] == ask(scheduler, 2)
    assert [(UUID(int=2),)] == database.query("SELECT holder FROM omega.turn")


def add_members(owner: Session, login: str, members: int, *, gap_ms: int) -> None:
    """Add members of a group that hold no turn."""
    owner.execute(
        "INSERT INTO omega.turn (login, holder, asked, kind, replica, gap_ms, parts, expires_at)"
        " SELECT %s, gen_random_uuid(), 1, 'batch', '0', %s, 0, clock_timestamp() + interval '1 h'"
        " FROM generate_series(1, %s)",
        [login, gap_ms, members],
    )


def test_the_first_1024_have_turns_and_no_more(owner: Session, scheduler: Session) -> None:
    add_members(owner, "somebody", 1_023, gap_ms=1_000)
    last = ask(scheduler, 1)
    one_too_many = ask(scheduler, 2)

    assert [(True, 1_023, 1_024, "")] == last
    assert [(False, None, None, "")] == one_too_many
    assert [(True, 1_023, 1_024, "")] == ask(scheduler, 1, asked=2)


def test_a_turn_is_given_back_whoever_keeps_a_transaction_open(
    database: Database, scheduler: Session
) -> None:
    hostile = database.session_of("hostile", "attack_hostile", "omega_scheduler")
    ask(scheduler, 1)
    hostile.execute("BEGIN")
    ask(hostile, 2)

    arguments = [UUID(int=1), 2, *TURN[:-1], OVER_MS]
    assert database.step(scheduler, call_sql("take_turn"), arguments), "it waits"
    assert [(False, None, None, None)] == scheduler.answer.rows
    hostile.execute("ROLLBACK")
    assert [(0,)] == database.query("SELECT count(*) FROM omega.turn")


def test_one_login_has_a_thousand_turns_at_most(
    database: Database, owner: Session, scheduler: Session
) -> None:
    ask(scheduler, 0)
    ((login,),) = database.query("SELECT login FROM omega.turn")
    add_members(owner, login, 998, gap_ms=1)
    ask(scheduler, 1)

    assert "54000" == try_call(scheduler, "take_turn", UUID(int=2), 1, *TURN).sqlstate
    ask(scheduler, 1, asked=2)


def test_turns_that_are_no_turns_are_refused(database: Database, scheduler: Session) -> None:
    good = [UUID(int=1), 1, *TURN]
    bad = [
        *[(at, None) for at in (0, 1, 2, 3, 4, 5, 8)],
        *[(2, name) for name in ("", "a\x1bb", "x" * 201)],
        *[(3, name) for name in ("", "a\nb")],
        *[(4, gap) for gap in (0, -1, LONG_MS + 1, 2**63 - 1)],
        *[(5, parts) for parts in (-1, 1_025, 2**31 - 1)],
        *[(6, number) for number in (0, -1)],
        *[(7, schedulers) for schedulers in (0, 1)],
        *[(8, lease) for lease in (-1, LONG_MS + 1)],
    ]
    fixed = [(0, 0), (-1, 1), (1, 1), (0, 1_025), (2**31 - 1, 2**31 - 1)]
    requests = [
        *[[*good[:at], value, *good[at + 1 :]] for at, value in bad],
        *[[*good[:6], *turn, LONG_MS] for turn in fixed],
    ]

    taken = [it for it in requests if try_call(scheduler, "take_turn", *it).sqlstate != INVALID]

    assert [] == taken
    assert [(0,)] == database.query("SELECT count(*) FROM omega.turn")
