"""Rounds: whole GPUs for whole rounds, by what everybody was promised and has had."""

import numpy as np

from omega.model.arrays import integers
from schedulers.ml_gpu.problem import NOBODY, NOWHERE
from schedulers.ml_gpu.rounds import Ledger, LeftoverPolicy, fastest_first, select


def a_ledger(share: list[list[float]], *, second: list[int] | None = None) -> Ledger:
    first = integers(range(len(share)))
    others = integers([NOBODY] * len(share) if second is None else second)
    empty = Ledger.empty(len(share[0]), 180.0)
    return empty.reset(first, others, np.array(share), 0.0)


def chosen(
    ledger: Ledger,
    free: list[int],
    *,
    rate: list[list[float]] | None = None,
    size: list[int] | None = None,
    leftovers: LeftoverPolicy = LeftoverPolicy.AS_MET,
) -> list[int]:
    units = len(ledger)
    on = select(
        ledger,
        np.ones(ledger.share.shape) if rate is None else np.array(rate),
        integers([1] * units if size is None else size),
        integers(free),
        np.arange(len(free)),
        leftovers,
    )
    return [int(type_) for type_ in on]


def test_over_rounds_everybody_gets_what_was_promised() -> None:
    promised = [[0.5, 0.25], [0.25, 0.5], [0.25, 0.25]]
    ledger = a_ledger(promised)
    had = np.zeros((3, 2))
    for _ in range(200):
        on = np.array(chosen(ledger, [1, 1]))
        runs = np.flatnonzero(on != NOWHERE)
        had[runs, on[runs]] += 1
        ledger = ledger.charged(runs, on[runs], np.full(len(runs), 360.0))

    np.testing.assert_allclose(promised, had / 200, atol=0.03)


def test_who_has_had_less_of_its_share_goes_first() -> None:
    ledger = a_ledger([[0.5], [0.5]]).charged(np.array([0]), np.array([0]), np.array([360.0]))

    assert [NOWHERE, 0] == chosen(ledger, [1])


def test_among_equals_who_is_owed_more_goes_first_then_who_came_first() -> None:
    owed = a_ledger([[0.5], [0.5]])
    owed = owed.charged(np.array([0]), np.array([0]), np.array([360.0]))
    owed = owed.reset(owed.first, owed.second, owed.share, 360.0)

    assert [NOWHERE, 0] == chosen(owed, [1])
    assert [0, NOWHERE] == chosen(a_ledger([[0.5], [0.5]]), [1])


def test_what_is_owed_is_what_was_promised_and_not_had() -> None:
    ledger = a_ledger([[0.5], [0.5]]).charged(np.array([0]), np.array([0]), np.array([300.0]))
    later = ledger.reset(ledger.first, ledger.second, ledger.share, 400.0)

    assert [[-100.0], [200.0]] == later.deficit_s.tolist()
    assert [[180.0], [180.0]] == later.received_s.tolist()


def test_a_smaller_gang_may_pass_one_that_does_not_fit() -> None:
    assert [NOWHERE, 0] == chosen(a_ledger([[0.9], [0.1]]), [2], size=[4, 2])


def test_a_job_runs_on_one_type_and_only_where_it_can() -> None:
    assert [0, 1] == chosen(a_ledger([[0.5, 0.5], [0.5, 0.5]]), [1, 2])
    assert [1, 0] == chosen(
        a_ledger([[0.9, 0.1], [0.1, 0.1]]), [1, 1], rate=[[0.0, 1.0], [1.0, 1.0]]
    )


def test_jobs_without_a_share_have_what_is_left_over_if_they_may() -> None:
    ledger = a_ledger([[1.0], [0.0]])

    assert [0, 0] == chosen(ledger, [2])
    assert [0, NOWHERE] == chosen(ledger, [2], leftovers=LeftoverPolicy.NEVER)


def test_leftovers_go_to_who_had_least_if_that_is_told() -> None:
    ledger = a_ledger([[0.0], [0.0], [1.0]])
    size, rate = integers([1, 1, 1]), np.ones((3, 1))

    on = select(
        ledger,
        rate,
        size,
        integers([2]),
        np.array([0]),
        LeftoverPolicy.LAST,
        had=np.array([9.0, 1.0, 0.0]),
    )

    assert [NOWHERE, 0, 0] == on.tolist()


def test_who_has_a_share_of_a_later_type_can_be_spared_the_holes_of_an_earlier_one() -> None:
    ledger = a_ledger([[0.0, 1.0], [0.5, 0.0]])

    assert [0, 0] == chosen(ledger, [2, 2])
    assert [1, 0] == chosen(ledger, [2, 2], leftovers=LeftoverPolicy.LAST)
    assert [0, NOWHERE, 0] == chosen(
        a_ledger([[0.0], [0.0], [1.0]]), [2], leftovers=LeftoverPolicy.LAST
    )


def test_nobody_runs_alone_and_in_a_pair_at_once() -> None:
    pair = Ledger.empty(1, 180.0).reset(
        integers([0, 1, 0]), integers([NOBODY, NOBODY, 1]), np.array([[0.1], [0.1], [0.9]]), 0.0
    )

    assert [NOWHERE, NOWHERE, 0] == chosen(pair, [3])


def test_jobs_come_without_a_share_and_go_with_their_pairs() -> None:
    ledger = Ledger.empty(1, 180.0).reset(
        integers([4, 7, 4]), integers([NOBODY, NOBODY, 7]), np.array([[0.1], [0.1], [0.9]]), 0.0
    )
    ledger = ledger.joined_by(integers([9])).without(integers([4]))

    assert [7, 9] == ledger.first.tolist()
    assert [True, False] == ledger.is_promised.tolist()
    assert [0.1, 0.0] == ledger.share[:, 0].tolist()
    assert [180.0, 180.0] == ledger.received_s[:, 0].tolist()


def test_the_type_that_most_run_fastest_on_is_first() -> None:
    table = np.array([[1.0, 4.0, 2.0], [3.0, 2.0, 1.0], [1.0, 2.0, 0.0]])

    assert [1, 0, 2] == fastest_first(table).tolist()
