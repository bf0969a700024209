"""What happens to machines, as it is drawn."""

from itertools import pairwise

import numpy as np
import pytest

from omega.workload.machine_events import Failures


def test_each_machine_fails_and_comes_back_in_turn_within_the_horizon() -> None:
    events = Failures(every_s=100.0, repair_s=10.0).draw(20, 1_000.0, np.random.default_rng(0))

    assert all(earlier.time_s <= later.time_s for earlier, later in pairwise(events))
    assert 1_000.0 >= events[-1].time_s
    for machine in range(20):
        ups = [event.up for event in events if event.machine == machine]
        assert [bool(number % 2) for number in range(len(ups))] == ups


def test_how_many_failures_there_are_is_known_before_they_are_drawn() -> None:
    failures = Failures(every_s=100.0, repair_s=25.0)
    events = failures.draw(200, 10_000.0, np.random.default_rng(0))

    assert 16_000 == failures.mean(200, 10_000.0)
    assert 16_000 == pytest.approx(sum(not event.up for event in events), rel=0.02)


def test_the_means_are_those_asked_for() -> None:
    events = Failures(every_s=100.0, repair_s=25.0).draw(200, 10_000.0, np.random.default_rng(0))

    by_machine: dict[int, list[float]] = {}
    for event in events:
        by_machine.setdefault(event.machine, [0.0]).append(event.time_s)
    up_s = [gap for times in by_machine.values() for gap in np.diff(times)[::2]]
    down_s = [gap for times in by_machine.values() for gap in np.diff(times)[1::2]]

    assert 95 < np.mean(up_s) < 105
    assert 23 < np.mean(down_s) < 27
