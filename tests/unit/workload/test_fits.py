"""What is found of a trace's jobs, and that what is drawn is like them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.testing.builders import a_spec
from omega.workload import fits
from omega.workload.arrivals import BATCH, SERVICE, Arrival
from omega.workload.fits import DURATION, GAP, QUANTITIES, TASKS, draw_list, fitted
from omega.workload.laws import Weibull
from omega.workload.synthetic import W2, arrivals_of
from omega.workload.traces.omega_sim import read_job_list


def drawn_batch(hours: float = 2) -> tuple[Arrival, ...]:
    return arrivals_of(W2.batch, hours * 3_600, np.random.default_rng(3))


def written(folder: Path, text: str) -> Path:
    path = folder / "drawn.csv"
    path.write_text(text)
    return path


def test_the_laws_of_the_paper_are_found_where_they_were_drawn_from() -> None:
    found = fitted(drawn_batch())[BATCH]
    means = {name: found.fits[name].laws["exponential"].parameters["mean"] for name in QUANTITIES}

    assert {GAP: 5, TASKS: 20, DURATION: 100} == pytest.approx(means, rel=0.06)
    for fit in found.fits.values():
        assert fit.distances["exponential"] < fit.by_sampling
        assert fit.distances["lognormal"] > fit.by_sampling
    assert abs(found.size_and_duration) < 0.1
    assert {(1_000, 2_048)} == set(found.shapes)


def test_what_runs_on_was_not_seen_to_end() -> None:
    """Half of the jobs run on: their durations count as at least what was left of the trace."""
    whole = drawn_batch()
    cut_s = whole[-1].submit_s
    jobs = [
        one
        if one.submit_s + (one.spec.groups[0].duration_ms or 0) / 1_000 <= cut_s
        else replace(
            one, spec=replace(one.spec, groups=(replace(one.spec.groups[0], duration_ms=None),))
        )
        for one in whole
    ]
    fit = fitted(jobs)[BATCH].fits[DURATION]

    assert 5 < fit.seen.is_censored.sum() < len(jobs) / 4
    assert 100 == pytest.approx(fit.laws["exponential"].parameters["mean"], rel=0.06)


def test_sizes_that_go_with_durations_are_told() -> None:
    jobs = [Arrival(float(n), a_spec(tasks=n + 1, duration_ms=1_000 * (n + 1))) for n in range(20)]
    (found,) = fitted(jobs).values()

    assert 1.0 == pytest.approx(found.size_and_duration)


def test_a_job_that_never_ends_has_no_law_of_durations() -> None:
    jobs = [Arrival(float(n), a_spec(tasks=n + 1, duration_ms=None)) for n in range(5)]
    (found,) = fitted(jobs).values()

    assert {GAP, TASKS} == found.fits.keys()
    assert 0.0 == found.size_and_duration


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        ([], "no workload has 3 jobs"),
        ([Arrival(1.0, a_spec())] * 2, "no workload has 3 jobs"),
        ([Arrival(1.0, a_spec())] * 3, "come at once"),
    ],
)
def test_what_tells_nothing_is_bad_input(jobs: list[Arrival], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        fitted(jobs)


@pytest.mark.parametrize("law", ["exponential", "lognormal", "weibull", "empirical"])
def test_a_list_that_is_drawn_is_like_the_trace(law: str, tmp_path: Path) -> None:
    found = fitted(drawn_batch())
    laws = {(BATCH, name): found[BATCH].fits[name].laws[law] for name in QUANTITIES}
    text = draw_list(found, laws, 2 * 3_600, np.random.default_rng(4))
    again = fitted(read_job_list(written(tmp_path, text)))[BATCH]

    assert text == draw_list(found, laws, 2 * 3_600, np.random.default_rng(4))
    for name in QUANTITIES:
        off = 2 * found[BATCH].fits[name].by_sampling
        middle = found[BATCH].fits[name].quantiles(laws[BATCH, name], (0.5,))[0]
        shares = dict(zip(*again.fits[name].seen.steps(), strict=True))
        below = max((share for at, share in shares.items() if at <= middle), default=0.0)

        assert abs(below - 0.5) < off + (0.06 if name == TASKS else 0)


def test_no_two_jobs_of_a_drawn_list_have_one_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fits.LISTED, SERVICE, ("Service", 3))
    both = fitted(
        sorted(
            [*drawn_batch(), *arrivals_of(W2.service, 7_200, np.random.default_rng(1))],
            key=lambda one: one.submit_s,
        )
    )
    laws = {(kind, name): both[kind].fits[name].best for kind in both for name in QUANTITIES}
    text = draw_list(both, laws, 1_800, np.random.default_rng(4))
    ids = [int(line.partition(",")[0]) for line in text.splitlines()[1:]]

    assert list(range(1, len(ids) + 1)) == ids
    assert len(ids) == len(read_job_list(written(tmp_path, text)))


def test_more_jobs_than_a_list_may_have_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fitted(drawn_batch())
    laws = {(BATCH, name): found[BATCH].fits[name].best for name in QUANTITIES}
    text = draw_list(found, laws, 1_800, np.random.default_rng(4))
    jobs = text.count("\n") - 1

    monkeypatch.setattr(fits, "DRAWN_MAX", jobs)
    assert text == draw_list(found, laws, 1_800, np.random.default_rng(4))
    monkeypatch.setattr(fits, "DRAWN_MAX", jobs - 1)
    with pytest.raises(BadInput, match="field --hours: more than"):
        draw_list(found, laws, 1_800, np.random.default_rng(4))


def test_a_time_that_is_as_good_as_none_is_none() -> None:
    """The quotient of two times must be a float, too."""
    lasting = (5e-324, 1e-300, 0.0, 1e9, 2.0)
    jobs = [Arrival(float(n), a_spec(tasks=n + 1), (s,)) for n, s in enumerate(lasting)]
    seen = next(iter(fitted(jobs).values())).fits[DURATION].seen

    assert [1.0, 1.0, 1.0, 1e9, 2.0] == seen.values.tolist()


def test_only_what_a_list_can_hold_is_drawn(tmp_path: Path) -> None:
    both = fitted(
        sorted(
            [*drawn_batch(0.5), *arrivals_of(W2.service, 7_200, np.random.default_rng(1))],
            key=lambda one: one.submit_s,
        )
    )
    laws = {(kind, name): both[kind].fits[name].best for kind in both for name in QUANTITIES}
    far_out = Weibull(shape=0.001, scale=1.0)  # half of what it draws is beyond every float
    laws |= {(SERVICE, TASKS): far_out, (SERVICE, DURATION): far_out}
    text = draw_list(both, laws, 1_800, np.random.default_rng(4))
    arrivals = read_job_list(written(tmp_path, text))

    assert {BATCH, SERVICE} == {one.spec.scheduler for one in arrivals}
    assert max(one.submit_s for one in arrivals) < 1_800
