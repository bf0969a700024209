"""A sweep's grid, its runs on an executor, and what several seeds are folded into."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from omega.sim.sweep import Figures, Trial, grid, mean_and_deviation, run_trials


class Here(Executor):
    """Does at once what it is given, and remembers how many it had at a time."""

    def __init__(self) -> None:
        self.given = 0

    def submit(self, task: Callable[..., Any], /, *args: Any, **how: Any) -> Future[Any]:  # noqa: ANN401 - the executor's own
        self.given += 1
        future: Future[Any] = Future()
        try:
            future.set_result(task(*args, **how))
        except BaseException as error:
            future.set_exception(error)
        return future


def trials(*works: int) -> list[Trial[int]]:
    return [Trial(at, 0, work) for at, work in enumerate(works)]


def squared(number: int) -> Figures:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return {"square": number * number}


def test_a_grid_has_every_combination_the_last_axis_changing_fastest() -> None:
    axes: dict[str, list[object]] = {"a": [1, 2], "b": ["x", "y"]}

    assert [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ] == grid(axes)


def test_of_several_seeds_there_are_means_and_sample_deviations() -> None:
    means, deviations = mean_and_deviation(
        [
            {"batch": {"busy": 1.0, "wait": None}, "events": 3},
            {"batch": {"busy": 3.0, "wait": 5.0}, "events": 3},
        ]
    )

    assert {"batch": {"busy": 2.0, "wait": 5.0}, "events": 3.0} == means
    assert {"batch": {"busy": pytest.approx(2**0.5), "wait": None}, "events": 0.0} == deviations


def test_one_seed_is_what_it_is() -> None:
    means, deviations = mean_and_deviation([{"batch": {"jobs": 3, "wait": None}}])

    assert {"batch": {"jobs": 3, "wait": None}} == means
    assert {"batch": {"jobs": None, "wait": None}} == deviations


def test_every_trial_is_settled_whatever_becomes_of_the_others() -> None:
    settled: dict[int, Figures | Exception] = {}
    with ThreadPoolExecutor(2) as executor:
        whole = run_trials(
            executor,
            squared,
            trials(1, -2, 3),
            at_once=2,
            settle=lambda trial, came: settled.update({trial.point: came}),
        )

    assert whole
    assert {"square": 1} == settled[0]
    assert "-2 is negative" == str(settled[1])
    assert {"square": 9} == settled[2]


def test_nothing_is_handed_out_once_it_is_to_stop() -> None:
    settled: list[int] = []
    executor = Here()
    whole = run_trials(
        executor,
        squared,
        trials(1, 2, 3, 4, 5, 6),
        at_once=2,
        settle=lambda trial, _: settled.append(trial.point),
        stopped=lambda: len(settled) >= 2,
    )

    assert not whole
    assert [0, 1] == sorted(settled)
    assert 2 == executor.given


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenProcessPool])
def test_an_executor_that_is_gone_ends_the_sweep(error: type[BaseException]) -> None:
    def broken(_: int) -> Figures:
        raise error

    with pytest.raises(error):
        run_trials(Here(), broken, trials(1, 2), at_once=1, settle=lambda _, __: None)
