"""When room is looked for on behalf of parked jobs."""

from itertools import pairwise

from omega.clock import ManualClock
from omega.framework.room_watch import RoomWatch


def test_without_a_parked_job_nobody_looks() -> None:
    clock = ManualClock()
    watch = RoomWatch(clock, 2_000)
    clock.advance(60.0)

    assert not watch.due()


def test_pauses_grow_with_the_wait_until_regular_checks_suffice() -> None:
    clock = ManualClock()
    watch = RoomWatch(clock, 2_000)
    watch.begin()
    looks = []
    for step in range(1, 6_000):
        clock.advance(0.01)
        if watch.due():
            looks.append(step / 100)

    pauses = [after - before for before, after in pairwise(looks)]
    assert looks[0] <= 0.02
    assert all(pause <= after / 8 + 0.02 for pause, after in zip(pauses, looks[1:], strict=True))
    assert all(pause >= after / 8 - 0.02 for pause, after in zip(pauses, looks[1:], strict=True))
    assert 14.0 < looks[-1] <= 16.0  # then a pause would be longer than 2 s


def test_the_next_parked_job_begins_anew() -> None:
    clock = ManualClock()
    watch = RoomWatch(clock, 2_000)
    watch.begin()
    clock.advance(8.0)
    assert watch.due()
    clock.advance(0.5)
    assert not watch.due()

    watch.begin()
    clock.advance(0.5)
    assert watch.due()
