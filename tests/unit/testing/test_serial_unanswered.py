"""The checker of serialisability, where ends of tasks were asked for and no answer came."""

from omega.testing.builders import a_job
from omega.testing.recorder import History
from tests.unit.testing.told import (
    FULL,
    YES,
    Row,
    accepted,
    claims,
    history,
    judged,
    over,
    rejected,
    unanswered,
)

A, B, C = a_job(9, job=1), a_job(9, job=2), a_job(9, job=3)


class TestGoodHistories:
    """Each may have had its effect at any moment after it was asked for, or never."""

    def test_an_end_without_an_answer_had_its_effect_or_had_none(self) -> None:
        def told(after: Row, runs: dict[tuple[int, int], tuple[int, int]]) -> History:
            return history(
                judged("p", (0, 1), claims(A, (0, 1), (1, 1)), [YES, YES], {1: (2, 1, 1)}),
                unanswered("p", 2, A, 0),
                judged("p", (3, 4), claims(B, (0, 2)), [YES], {2: (1, 1, 1)}),
                jobs=[A, B],
                after={1: after, 2: (1, 1, 1)},
                runs=runs | {(1, 1): (1, 1), (2, 0): (2, 1)},
            )

        assert ["p", "p"] == accepted(told((2, 1, 1), {(1, 0): (1, 1)}))
        assert ["p", "p", "p"] == accepted(told((1, 1, 2), {}))

    def test_an_end_without_an_answer_may_come_long_after_its_worker_gave_up(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1), cores=4), [YES], {1: (4, 1, 1)}),
            unanswered("p", 2, A, 0),
            judged("p", (3, 4), claims(B, (0, 1)), [FULL], {1: (4, 1, 1)}),
            judged("q", (5, 6), claims(C, (0, 1)), [YES], {1: (1, 2, 3)}),
            over("p", (5, 6), A, 0, ended=0),
            jobs=[A, B, C],
            after={1: (1, 2, 3)},
            runs={(3, 0): (1, 1)},
        )

        assert ["p", "p", "p", "p", "q"] == accepted(told)

    def test_an_end_that_was_asked_for_again_may_have_been_carried_out_in_parts(self) -> None:
        """The first time one of the tasks ran, the second time the other."""
        told = history(
            judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            unanswered("p", 2, A, 0, 1),
            judged("q", (3, 4), claims(A, (1, 1)), [YES], {1: (1, 2, 3)}),
            over("p", (5, 6), A, 0, 1, ended=1),
            jobs=[A],
            after={1: (0, 2, 4)},
            runs={},
        )

        assert ["p", "p", "q", "p"] == accepted(told)

    def test_many_ends_without_an_answer(self) -> None:
        """Of many that ask for the same it is all one which of them came through."""
        told = history(
            judged("p", (0, 1), claims(A, *((n, 1) for n in range(4))), [YES] * 4, {1: (4, 1, 1)}),
            *(unanswered("p", 2 + n / 100, A, *range(4)) for n in range(90)),
            judged("q", (0, 5), claims(B, (0, 1)), [YES], {1: (1, 2, 3)}),
            jobs=[A, B],
            after={1: (1, 2, 3)},
            runs={(2, 0): (1, 1)},
        )

        assert ["p", "p", "q"] == accepted(told)


class TestBadHistories:
    """But not before, not twice, and on no other tasks."""

    def test_an_end_without_an_answer_that_came_before_it_was_asked_for(self) -> None:
        def told(asked: float) -> History:
            return history(
                judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
                judged("q", (2, 3), claims(B, (0, 1)), [YES], {1: (1, 2, 3)}),
                unanswered("p", asked, A, 0),
                jobs=[A, B],
                after={1: (1, 2, 3)},
                runs={(2, 0): (1, 1)},
            )

        assert ["p", "p", "q"] == accepted(told(asked=2.5))
        assert "machine 1" in rejected(told(asked=3.5))

    def test_an_end_without_an_answer_that_came_twice(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            unanswered("p", 2, A, 0),
            judged("q", (3, 4), claims(B, (0, 1)), [YES], {1: (1, 2, 3)}),
            over("p", (5, 6), A, 0),
            jobs=[A, B],
            after={1: (0, 2, 4)},
            runs={},
        )

        assert "1 ended by the answer, 0 of them live" in rejected(told)

    def test_an_end_without_an_answer_of_other_tasks_than_those_that_ended(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1), (1, 1)), [YES, YES], {1: (2, 1, 1)}),
            unanswered("p", 2, A, 0),
            jobs=[A],
            after={1: (1, 1, 2)},
            runs={(1, 0): (1, 1)},
        )

        assert "found on None" in rejected(told)
