"""Memos and progress that a stranger has forged at their bounds: the next rounds are played."""

import copy
from typing import Any

import pytest

from omega.model.arrays import integers
from omega.model.round_summary import RoundSummary
from schedulers.ml_gpu.record import AMOUNT_MAX
from tests.unit.schedulers.ml_gpu.rounds_at_work import RunningSchedulers, machines, training
from tests.unit.schedulers.ml_gpu.test_live import K80
from tests.unit.schedulers.ml_gpu.test_round_told import make_steps, told

WHOLE_MAX = 2**63 - 1
AMOUNTS = ("share", "received_s", "deficit_s", "promised_by")
MOMENTS = ("since_ms", "charged_ms", "done", "run_ms")
FORGED = [
    *((name, value) for name in AMOUNTS for value in (AMOUNT_MAX, 0.0, 5e-324)),
    *((name, value) for name in MOMENTS for value in (WHOLE_MAX, 0)),
    *(("deficit_s", -AMOUNT_MAX), ("credit_s", AMOUNT_MAX), ("credit_s", 5e-324)),
    *(("round", WHOLE_MAX), ("reset_ms", WHOLE_MAX), ("gpus", WHOLE_MAX)),
    *((f"history.{name}", AMOUNT_MAX) for name in ("promised_s", "had_s", "idle_s")),
    *((f"history.{name}", WHOLE_MAX) for name in ("preempted", "preempted_in")),
]


def at_work() -> RunningSchedulers:
    """Return two jobs that take turns on one machine, after some rounds."""
    running = RunningSchedulers(machines(K80, 1), jobs=[training(4), training(4)])
    for _ in range(3):
        running.play()
        make_steps(running)
    return running


def filled(value: object, number: float) -> object:
    """Return lists, or lists of lists, with this number at each place."""
    return [filled(each, number) for each in value] if isinstance(value, list) else number


@pytest.mark.parametrize(("where", "number"), FORGED)
def test_rounds_go_on_with_numbers_at_the_bounds(where: str, number: float) -> None:
    running = at_work()
    plan: dict[str, Any] = copy.deepcopy(dict(running.record()))
    part, name = plan, where
    if where.startswith("history."):
        part, name = plan["history"], where.removeprefix("history.")
    part[name] = filled(part[name], number)
    (last,) = running.store.last_rounds()
    running.store.note_round("ml-gpu", last.number, {"jobs": running.jobs, "plan": plan})
    running.clock.advance(1.001)

    for _ in range(6):
        running.play()
        make_steps(running)
        last, summary, shares = told(running)
        assert summary == RoundSummary.of(summary.row())

    assert 1 == len(running.running())
    assert set(running.jobs) == shares.keys()


def test_rounds_go_on_with_steps_that_no_machine_makes() -> None:
    running = at_work()
    jobs = integers(sorted(running.running()))
    before = running.store.progress(jobs)
    running.store.report_progress(jobs, before.wanted - 1, before.run_ms + 1)

    for _ in range(6):
        running.play()

    assert 1 == len(running.running())
