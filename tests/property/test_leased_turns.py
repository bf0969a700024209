"""However replicas come, die, fall silent and lose answers, no two of them read by one turn."""

from collections.abc import Sequence
from contextlib import suppress
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.events import ignore
from omega.store.memory.store import MemoryStore
from omega.store.turns import NoTurn, TurnGrant, TurnRequest
from omega.sync.turns import RENEWALS, TRIES, LeasedTurns, Turn, TurnSettings
from omega.testing.pass_through import PassThrough
from tests.fixtures.doses import examples

LEASE_S = 8.0
REPLICAS = 5
STEP_S = 0.125


class Unsteady(PassThrough):
    """Loses requests, or answers; whatever was lost as a request arrives later, or never."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.loses: str = ""
        self.late: list[TurnRequest] = []

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        if self.loses == "request":
            self.late.append(request)
            raise StoreUnavailable("the request was lost")
        answer = super().take_turn(request, lease_ms=lease_ms)
        if self.loses == "answer":
            raise StoreUnavailable("the answer was lost")
        return answer


class Fleet:
    """Replicas in virtual time, and what each goes by as it last read."""

    def __init__(self, parts: int) -> None:
        self.clock = ManualClock()
        self.store = Unsteady(MemoryStore(self.clock))
        self.turns: list[LeasedTurns | None] = [None] * REPLICAS
        self.parts = parts

    def start(self, number: int) -> None:
        sharing = TurnSettings(
            kind="batch",
            replica=str(number),
            gap_s=1.0,
            parts=self.parts,
            lease_ms=round(LEASE_S * 1_000),
        )
        self.turns[number] = LeasedTurns(sharing, self.store, self.clock, ignore)

    def read(self, number: int) -> Turn | None:
        """Let a replica find out its turn; None: it is not there, or got no answer."""
        turns = self.turns[number]
        with suppress(StoreUnavailable):
            return None if turns is None else turns.current()
        return None

    def held(self) -> list[Turn]:
        """Return the turns that replicas hold at this moment, as they know."""
        grants = [turns.held() for turns in self.turns if turns is not None]
        return [Turn(grant.number, grant.of) for grant in grants if grant is not None]


def overlapping(turns: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Return the pairs of turns that read one part in one round, or are of different N."""
    return [
        (one, other)
        for at, one in enumerate(turns)
        for other in turns[at + 1 :]
        if one.of != other.of
        or any(set(one.parts_of(r)) & set(other.parts_of(r)) for r in range(one.of))
    ]


STEPS = st.tuples(
    st.sampled_from(["read", "read", "read", "start", "kill", "late"]),
    st.integers(0, REPLICAS - 1),
    st.integers(0, ceil(LEASE_S / STEP_S)),
    st.sampled_from(["", "", "", "request", "answer"]),
)


@examples(600)
@given(steps=st.lists(STEPS, max_size=60), parts=st.sampled_from([0, 1, 7, 40, 1_024]))
def test_no_two_replicas_hold_one_turn_and_all_have_one_in_the_end(
    steps: list[tuple[str, int, int, str]], parts: int
) -> None:
    fleet = Fleet(parts)
    for what, number, pause, loses in steps:
        fleet.clock.advance(pause * STEP_S)
        match what:
            case "start":
                fleet.start(number)
            case "kill":
                fleet.turns[number] = None
            case "late":
                if fleet.store.late:
                    request = fleet.store.late.pop(number % len(fleet.store.late))
                    fleet.store.take_turn(request, lease_ms=round(LEASE_S * 1_000))
            case _:
                fleet.store.loses = loses
                fleet.read(number)
        fleet.store.loses = ""

        assert [] == overlapping(fleet.held())

    settled = LEASE_S + 3 * LEASE_S / RENEWALS + REPLICAS * LEASE_S / TRIES
    for _ in range(ceil(settled / STEP_S)):
        fleet.clock.advance(STEP_S)
        for number in range(REPLICAS):
            fleet.read(number)
            assert [] == overlapping(fleet.held())

    there = [turns for turns in fleet.turns if turns is not None]
    grants = {turns.held() for turns in there}
    assert {TurnGrant(number, len(there)) for number in range(len(there))} == grants
    assert all(turns.current().parts % len(there) == 0 for turns in there)
