"""The turn of a process that leases it: how long it is used, and what is told of it."""

from dataclasses import replace
from uuid import UUID

import pytest

from omega.cell.partition import PARTS_MAX
from omega.clock import ManualClock
from omega.errors import BadInput, StoreUnavailable
from omega.events import Event, TurnChanged
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.store.memory.store import MemoryStore
from omega.store.turns import NoTurn, TurnGrant, TurnRequest
from omega.sync.choice import Sync
from omega.sync.turns import RENEWALS, TRIES, LeasedTurns, Turn, TurnSettings
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell
from omega.testing.twin import row_differences

LEASE_S = 8.0
SHARING = TurnSettings(kind="batch", replica="0", gap_s=2.0, lease_ms=round(LEASE_S * 1_000))


class Watched(PassThrough):
    """Counts requests; may be away, or asked by somebody else at the same moment."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(MemoryStore(clock))
        self.clock = clock
        self.requests: list[TurnRequest] = []
        self.takes_s = 0.0
        """How long an answer takes, once the store has given it."""
        self.away = self.busy = False

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        self.requests.append(request)
        if self.away:
            raise StoreUnavailable("the server is away")
        answer = None if self.busy else super().take_turn(request, lease_ms=lease_ms)
        self.clock.advance(self.takes_s)
        return answer


class TestLeasedTurns:
    """One replica, and others by name."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Watched(self.clock)
        self.events: list[Event] = []
        self.turns = self.of("0")

    def of(
        self, replica: str, *, fixed: tuple[int, int] | None = None, parts: int = 0
    ) -> LeasedTurns:
        holder = UUID(int=len(self.store.requests) + int(replica) * 1_000)
        its = replace(SHARING, replica=replica, fixed=fixed, parts=parts, holder=holder)
        return LeasedTurns(its, self.store, self.clock, self.events.append)

    def test_a_turn_is_renewed_a_few_times_a_lease_however_often_it_is_read_by(self) -> None:
        for _ in range(16 * RENEWALS):
            self.turns.current()
            self.clock.advance(LEASE_S / 16 / RENEWALS)
            self.turns.current()

        assert RENEWALS + 1 == len(self.store.requests)
        assert [TurnChanged((0, 1))] == self.events

    def test_whoever_waits_for_a_turn_asks_more_often_and_reads_everything(self) -> None:
        self.turns.current()
        other = self.of("1")

        assert Turn(0, 1, 2.0) == other.current()
        assert other.held() is None
        self.clock.advance(LEASE_S / RENEWALS)
        assert Turn(0, 2, 2.0) == self.turns.current()
        self.clock.advance(LEASE_S / TRIES)
        assert Turn(1, 2, 2.0) == other.current()
        assert [TurnChanged((0, 1)), TurnChanged((0, 2)), TurnChanged((1, 2))] == self.events

    def test_a_lease_that_is_over_is_not_used_even_if_nobody_answers(self) -> None:
        self.turns.current()
        self.store.busy = True
        self.clock.advance(LEASE_S - 0.001)
        self.turns.current()
        nearly_over = self.turns.held()
        self.clock.advance(0.001)

        assert TurnGrant(0, 1) == nearly_over
        assert self.turns.held() is None

    def test_an_answer_that_is_lost_ends_the_turn(self) -> None:
        self.turns.current()
        self.clock.advance(LEASE_S / RENEWALS)
        self.store.away = True
        with pytest.raises(StoreUnavailable):
            self.turns.current()

        assert self.turns.held() is None
        self.store.away = False
        assert Turn(0, 1, 2.0) == self.turns.current()
        assert TurnGrant(0, 1) == self.turns.held()

    def test_somebody_who_asks_at_the_same_moment_takes_nothing_away(self) -> None:
        self.turns.current()
        self.clock.advance(LEASE_S / RENEWALS)
        self.store.busy = True
        self.turns.current()

        assert TurnGrant(0, 1) == self.turns.held()

    def test_requests_are_counted_so_that_late_ones_are_known(self) -> None:
        for _ in range(3):
            self.turns.current()
            self.clock.advance(LEASE_S)

        assert [1, 2, 3] == [request.asked for request in self.store.requests]

    def test_a_given_turn_of_another_replica_is_refused_with_its_name(self) -> None:
        self.of("1", fixed=(0, 2)).current()

        with pytest.raises(BadInput, match="field --turn: 1/2 is the turn of batch/1: give each"):
            self.of("2", fixed=(0, 2)).current()

    def test_a_given_turn_of_the_same_name_is_waited_for(self) -> None:
        self.of("1", fixed=(0, 2)).current()
        restarted = self.of("1", fixed=(0, 2))

        assert Turn(0, 1, 2.0) == restarted.current()
        self.clock.advance(LEASE_S)
        assert Turn(0, 2, 2.0) == restarted.current()

    def test_another_of_the_same_name_and_turn_is_refused_after_a_lease(self) -> None:
        first = self.of("1", fixed=(0, 2))
        first.current()
        second = self.of("1", fixed=(0, 2))
        for _ in range(4):
            second.current()
            self.clock.advance(LEASE_S / 4)
            first.current()
        self.clock.advance(LEASE_S / 8)

        with pytest.raises(BadInput, match="1/2 is the turn of batch/1"):
            second.current()

    def test_whoever_lost_a_given_turn_goes_on_and_has_it_again_when_it_is_free(self) -> None:
        mine = self.of("1", fixed=(0, 2))
        mine.current()
        self.clock.advance(LEASE_S)
        self.of("2", fixed=(0, 2)).current()

        assert Turn(0, 1, 2.0) == mine.current()
        self.clock.advance(LEASE_S)
        assert Turn(0, 2, 2.0) == mine.current()

    def test_one_by_itself_asks_nobody(self) -> None:
        its = replace(SHARING, fixed=(0, 1), parts=6)

        assert Turn(0, 1, 2.0, 6) == its.turns(self.store, self.clock, self.events.append).current()
        assert [] == self.store.requests

    def test_a_lease_counts_from_before_it_was_asked_for(self) -> None:
        self.store.takes_s = 1.0
        self.turns.current()
        self.clock.advance(LEASE_S - 1.0 - 0.001)
        nearly_over = self.turns.held()
        self.clock.advance(0.001)

        assert TurnGrant(0, 1) == nearly_over
        assert self.turns.held() is None

    def test_a_turn_that_is_given_back_is_free_at_once(self) -> None:
        self.turns.close()
        assert [] == self.store.requests, "nothing was asked for yet"
        self.turns.current()
        self.turns.close()

        assert self.turns.held() is None
        assert Turn(0, 1, 2.0) == self.of("1").current()

    def test_whoever_has_had_no_turn_for_a_whole_lease_says_so_once(self) -> None:
        self.of("1", fixed=(0, 2)).current()
        waits = self.of("2", fixed=(1, 3))
        waits.current()
        for _ in range(12):
            self.clock.advance(LEASE_S / 4)
            self.of("1", fixed=(0, 2)).current()
            waits.current()

        assert [TurnChanged((0, 2)), TurnChanged(None)] == list(dict.fromkeys(self.events))
        assert 1 == self.events.count(TurnChanged(None))

    def test_a_group_has_one_gap_to_the_millisecond(self) -> None:
        turns = [
            replace(SHARING, gap_s=gap_s).turn(TurnGrant(0, 2)) for gap_s in (1.0, 1.0004, 0.9996)
        ]

        assert [Turn(0, 2, 1.0)] * 3 == turns
        assert 1 == replace(SHARING, gap_s=0.0001).request(1).gap_ms

    def test_as_many_parts_as_schedulers_is_what_there_is_without_saying(self) -> None:
        said = replace(SHARING, fixed=(0, 2), parts=2)

        assert replace(said, parts=0).request(1) == said.request(1)
        assert 4 == replace(said, parts=4).request(1).parts

    @pytest.mark.parametrize(
        ("parts", "of", "divided"),
        [(0, 3, 3), (1, 3, 3), (40, 1, 40), (40, 4, 40), (40, 3, 42), (PARTS_MAX, 3, 1_023)],
    )
    def test_the_cell_is_divided_into_a_multiple_of_the_schedulers(
        self, parts: int, of: int, divided: int
    ) -> None:
        its = replace(SHARING, parts=parts)

        assert Turn(of - 1, of, 2.0, divided) == its.turn(TurnGrant(of - 1, of))

    def test_a_view_is_brought_up_to_date_when_the_turn_changes(self) -> None:
        machines = integers(add_a_cell(self.store, 64))
        mine, other = (
            Sync.PARTITIONED.refresher(
                self.store,
                self.clock,
                self.events.append,
                replace(SHARING, parts=3, holder=UUID(int=holder)),
            )
            for holder in (1, 2)
        )
        view = mine.refresh(None)
        assert 3 == len(view.parts_read_s)
        other.refresh(None)
        self.clock.advance(LEASE_S / RENEWALS)
        self.store.set_state(machines, MachineState.DRAINING)

        assert view is mine.refresh(view)
        assert [self.clock.now()] * 4 == view.parts_read_s.tolist()
        assert [] == row_differences(self.store.snapshot().rows, view.rows())
