"""The life of a job as one table."""

from itertools import product

import pytest

from omega.lifecycle.states import FINAL, MOVES, ParkReason, State, Trigger


def reachable(start: State) -> set[State]:
    seen, edge = {start}, [start]
    while edge:
        state = edge.pop()
        for (before, _), after in MOVES.items():
            if before is state and after not in seen:
                seen.add(after)
                edge.append(after)
    return seen


def test_every_state_is_reached_from_the_first() -> None:
    assert set(State) == reachable(State.PENDING)


def test_a_job_that_is_over_stays_over() -> None:
    assert {State.SUCCEEDED, State.CANCELLED, State.FAILED} == FINAL
    assert not [move for move in MOVES if move[0] in FINAL]


def test_from_every_live_state_a_job_can_be_cancelled_can_fail_and_can_succeed() -> None:
    for state in set(State) - FINAL:
        assert State.CANCELLED is MOVES[state, Trigger.CANCEL]
        assert State.FAILED is MOVES[state, Trigger.FAIL]
        assert State.SUCCEEDED in reachable(state)


def test_every_trigger_moves_something() -> None:
    assert set(Trigger) == {trigger for _, trigger in MOVES}


def test_only_planning_is_left_by_what_a_lease_allows() -> None:
    allowed = {
        Trigger.PLACE_ALL,
        Trigger.HAND_BACK,
        Trigger.PARK,
        Trigger.LEASE_EXPIRED,
        Trigger.GO_ON,
    }

    held = {state for state, trigger in product(State, allowed) if (state, trigger) in MOVES}

    assert {State.PLANNING} == held


@pytest.mark.parametrize("reason", ParkReason)
def test_a_reason_for_parking_is_permanent_unless_room_others_or_a_quota_are_to_blame(
    reason: ParkReason,
) -> None:
    assert (reason.name in {"NO_ROOM", "CONFLICTS", "OVER_QUOTA"}) is not reason.is_permanent
