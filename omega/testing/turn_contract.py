"""What every store must do for schedulers that share out their reading.

Goal     Turns as stories.
Promise  No two of a group hold one turn, or turns of different N; those that go on asking each
         have one of their own in the end.
Source   docs/decisions/0032-turns-are-leased.md.
"""

from dataclasses import replace
from uuid import UUID

import pytest

from omega.cell.partition import PARTS_MAX
from omega.store.protocols import Store
from omega.store.turns import NoTurn, TurnGrant, TurnRequest, TurnStore
from omega.testing.contract import Contract
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS


class Asker:
    """A replica that asks for turns."""

    def __init__(self, store: TurnStore, replica: int, **more: object) -> None:
        self._store = store
        self.request = TurnRequest(UUID(int=replica), 0, "batch", str(replica), 1_000, 0)
        self.request = replace(self.request, **more)  # type: ignore[arg-type]

    def ask(self, lease_ms: int = LONG_MS) -> TurnGrant | NoTurn | None:
        """Ask once more."""
        self.request = replace(self.request, asked=self.request.asked + 1)
        return self._store.take_turn(self.request, lease_ms=lease_ms)

    def leave(self) -> None:
        """Give the turn back."""
        assert NoTurn() == self.ask(OVER_AT_ONCE_MS)


def turns_of(*askers: Asker) -> list[TurnGrant | NoTurn | None]:
    """Let each ask as often as it takes; return the last answers."""
    return [[asker.ask() for asker in askers] for _ in range(3)][-1]


class TurnContract(Contract):
    """Who holds which turn."""

    def test_one_alone_has_the_only_turn(self, store: Store) -> None:
        alone = Asker(store, 1)

        assert [TurnGrant(0, 1)] * 2 == [alone.ask(), alone.ask()]

    def test_a_newcomer_waits_until_the_others_have_given_up_their_turns(
        self, store: Store
    ) -> None:
        old, new = Asker(store, 2), Asker(store, 1)
        old.ask()

        assert NoTurn() == new.ask()
        assert TurnGrant(0, 2) == old.ask()
        assert TurnGrant(1, 2) == new.ask()

    def test_each_of_a_group_has_a_turn_of_its_own_in_the_end(self, store: Store) -> None:
        askers = [Asker(store, number) for number in range(5)]

        assert [TurnGrant(number, 5) for number in range(5)] == turns_of(*askers)

    def test_whoever_leaves_is_no_longer_counted(self, store: Store) -> None:
        askers = [Asker(store, number) for number in range(3)]
        turns_of(*askers)
        askers[0].leave()

        assert [TurnGrant(0, 2), TurnGrant(1, 2)] == turns_of(*askers[1:])

    def test_a_group_is_of_one_gap_and_so_many_parts(self, store: Store) -> None:
        askers = [Asker(store, 1), Asker(store, 2, gap_ms=999), Asker(store, 3, parts=40)]

        assert [TurnGrant(0, 1)] * 3 == turns_of(*askers)

    def test_kinds_share_out_their_reading_together(self, store: Store) -> None:
        askers = [Asker(store, 1), Asker(store, 2, kind="service")]

        assert [TurnGrant(0, 2), TurnGrant(1, 2)] == turns_of(*askers)

    def test_a_given_turn_is_taken_as_it_is(self, store: Store) -> None:
        last, first = Asker(store, 1, fixed=(2, 3)), Asker(store, 2, fixed=(0, 3))

        assert [TurnGrant(2, 3), TurnGrant(0, 3)] == [last.ask(), first.ask()]

    def test_a_given_turn_is_one_replicas_and_the_next_is_told_whose(self, store: Store) -> None:
        holder, other = Asker(store, 1, fixed=(0, 2)), Asker(store, 2, fixed=(0, 2))
        holder.ask()

        assert NoTurn("batch/1") == other.ask()
        holder.leave()
        assert TurnGrant(0, 2) == other.ask()
        assert NoTurn("batch/2") == holder.ask()

    def test_turns_of_different_numbers_of_schedulers_do_not_go_together(
        self, store: Store
    ) -> None:
        of_two, of_three = Asker(store, 1, fixed=(0, 2)), Asker(store, 2, fixed=(1, 3))
        of_two.ask()

        assert NoTurn() == of_three.ask()

    def test_who_asks_in_vain_has_given_up_the_turn_that_it_had(self, store: Store) -> None:
        old, new = Asker(store, 1), Asker(store, 2)
        turns_of(old, new)
        Asker(store, 3).ask()

        assert NoTurn() == old.ask()
        assert TurnGrant(0, 2) == Asker(store, 4, fixed=(0, 2)).ask()

    def test_a_request_that_comes_late_changes_nothing(self, store: Store) -> None:
        old, new = Asker(store, 1), Asker(store, 2)
        late = replace(old.request, asked=1)
        turns_of(old, new)

        for request in (late, new.request):
            assert store.take_turn(request, lease_ms=LONG_MS) is None
            store.take_turn(request, lease_ms=OVER_AT_ONCE_MS)
        assert [TurnGrant(0, 2), TurnGrant(1, 2)] == [old.ask(), new.ask()]

    @pytest.mark.parametrize("lease_ms", [OVER_AT_ONCE_MS, LONG_MS])
    def test_turns_are_by_the_order_of_joining_and_stay_as_they_are(
        self, store: Store, lease_ms: int
    ) -> None:
        askers = [Asker(store, number) for number in (3, 1, 2)]
        turns_of(*askers)
        Asker(store, 4).ask(lease_ms)
        of = 3 + (lease_ms > 0)

        assert [TurnGrant(number, of) for number in range(3)] == turns_of(*askers)

    def test_there_may_be_as_many_schedulers_as_parts(self, store: Store) -> None:
        of = PARTS_MAX
        fixed = Asker(store, 1, fixed=(of - 1, of))

        assert TurnGrant(of - 1, of) == fixed.ask()
