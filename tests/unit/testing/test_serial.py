"""The checker of serialisability: histories made by hand, of which it must reject the bad ones."""

from dataclasses import replace
from uuid import UUID

from omega.model.claims import ConflictRule
from omega.model.jobs import LeasedJob
from omega.testing.builders import a_job, a_spec
from omega.testing.recorder import History
from tests.unit.testing.told import (
    BROKEN,
    FULL,
    LOST,
    NEW,
    STALE,
    TAKEN,
    YES,
    Row,
    accepted,
    claims,
    having_evicted,
    history,
    judged,
    moment,
    over,
    rejected,
)

A, B, C = a_job(9, job=1), a_job(9, job=2), a_job(9, job=3)
GANG = a_job(3, job=4, minimum=2)
TOGETHER = (0.0, 9.0)


class TestGoodHistories:
    """What a cell that judges one at a time could have said."""

    def test_nothing_happened(self) -> None:
        assert [] == accepted(history(jobs=[], after={1: NEW}, runs={}))

    def test_the_revisions_tell_the_order(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (2, 2, 2)}),
            judged("q", TOGETHER, claims(B, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[A, B],
            after={1: (2, 2, 2)},
            runs={(1, 0): (1, 1), (2, 0): (1, 1)},
        )

        assert ["q", "p"] == accepted(told)

    def test_a_refused_transaction_fits_between_two_that_wrote(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1), cores=4), [YES], {1: (4, 1, 1)}),
            judged("q", TOGETHER, claims(B, (0, 1)), [FULL], {1: (4, 1, 1)}),
            over("p", (2, 3), A, 0),
            jobs=[A, B],
            after={1: (0, 1, 2)},
            runs={},
        )

        assert ["p", "q", "p"] == accepted(told)

    def test_two_ends_whose_order_only_a_later_answer_tells(self) -> None:
        """The likelier order is tried first, and taken back."""
        told = history(
            judged("p", (0, 1), claims(A, (0, 1), cores=1), [YES], {1: (1, 1, 1)}),
            judged("q", (2, 3), claims(B, (0, 1), cores=2), [YES], {1: (3, 2, 2)}),
            over("p", (4, 6), A, 0),
            over("q", (4, 7), B, 0),
            judged("r", (4, 8), claims(C, (0, 1), cores=9), [FULL], {1: (1, 2, 3)}),
            jobs=[A, B, C],
            after={1: (0, 2, 4)},
            runs={},
        )

        assert ["p", "q", "q", "r", "p"] == accepted(told)

    def test_a_task_that_another_placed_meanwhile(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            judged("q", TOGETHER, claims(A, (0, 2), (1, 2)), [TAKEN, YES], {2: (1, 1, 1)}),
            jobs=[A],
            after={1: (1, 1, 1), 2: (1, 1, 1)},
            runs={(1, 0): (1, 1), (1, 1): (2, 1)},
        )

        assert ["p", "q"] == accepted(told)

    def test_a_lease_ends_with_the_last_task_placed(self) -> None:
        one = a_job(1, job=7)
        told = history(
            judged("p", TOGETHER, claims(one, (0, 2)), [LOST], {2: NEW}),
            judged("q", TOGETHER, claims(one, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[one],
            after={1: (1, 1, 1)},
            runs={(7, 0): (1, 1)},
        )

        assert ["q", "p"] == accepted(told)

    def test_a_gang_that_stands_grows_by_one(self) -> None:
        told = history(
            judged(
                "p", (0, 1), claims(GANG, (0, 1), (1, 2)), [YES, YES], {1: (1, 1, 1), 2: (1, 1, 1)}
            ),
            judged("q", TOGETHER, claims(GANG, (2, 1)), [YES], {1: (2, 2, 2)}),
            jobs=[GANG],
            after={1: (2, 2, 2), 2: (1, 1, 1)},
            runs={(4, 0): (1, 1), (4, 1): (2, 1), (4, 2): (1, 1)},
        )

        assert ["p", "q"] == accepted(told)

    def test_rows_of_a_repeated_answer_may_be_of_later(self) -> None:
        first = judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (2, 2, 2)})
        told = history(
            replace(first, asked_again=True),
            judged("q", (2, 3), claims(B, (0, 1)), [YES], {1: (2, 2, 2)}),
            jobs=[A, B],
            after={1: (2, 2, 2)},
            runs={(1, 0): (1, 1), (2, 0): (1, 1)},
        )

        assert ["p", "q"] == accepted(told)

    def test_an_order_that_only_a_lease_tells(self) -> None:
        """Whoever places the last task of a job ends its lease, unless one was evicted before.

        Either order of the two leaves the same machines, the same tasks and the same revisions.
        """
        high, low = a_job(spec=a_spec(1, precedence=10), job=8), a_job(2, job=9)
        evicts = judged("q", (2, 9), claims(high, (0, 2), evicts=(9, 0)), [YES], {2: (1, 2, 2)})
        told = history(
            judged("p", (0, 1), claims(low, (0, 2)), [YES], {2: (1, 1, 1)}),
            judged("p", (2, 3), claims(low, (1, 1)), [YES], {1: (1, 1, 1)}),
            judged("p", (4, 9), claims(low, (0, 1)), [YES], {1: (2, 2, 2)}),
            having_evicted(evicts, (9, 0)),
            jobs=[high, low],
            after={1: (2, 2, 2), 2: (1, 2, 2)},
            runs={(8, 0): (2, 1), (9, 0): (1, 1), (9, 1): (1, 1)},
        )

        assert ["p", "q", "p", "p"] == accepted(told)

    def test_others_run_all_the_while(self) -> None:
        start = moment({1: (3, 7, 9), 2: NEW}, {(99, 0): (1, 3)})
        grant = judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (4, 8, 10)})
        end = moment({1: (4, 8, 10), 2: NEW}, {(99, 0): (1, 3), (1, 0): (1, 1)})

        assert ["p"] == accepted(History(start, (A,), ((grant,),), end))


class TestBadHistories:
    """What no such cell can have said."""

    def test_a_lost_update(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            judged("q", TOGETHER, claims(B, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[A, B],
            after={1: (1, 1, 1)},
            runs={(1, 0): (1, 1), (2, 0): (1, 1)},
        )

        assert "1 of 2 events have an order" in rejected(told)

    def test_a_lost_update_that_raised_the_revision(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            judged("q", TOGETHER, claims(B, (0, 1)), [YES], {1: (1, 2, 2)}),
            jobs=[A, B],
            after={1: (1, 2, 2)},
            runs={(1, 0): (1, 1), (2, 0): (1, 1)},
        )

        assert "machine 1" in rejected(told)

    def test_a_task_granted_twice(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            judged("q", TOGETHER, claims(A, (0, 2)), [YES], {2: (1, 1, 1)}),
            jobs=[A],
            after={1: (1, 1, 1), 2: (1, 1, 1)},
            runs={(1, 0): (1, 1)},
        )

        assert "ALREADY_PLACED expected, ACCEPTED given" in rejected(told)

    def test_a_stale_claim_granted_under_the_sequence_rule(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            judged("q", TOGETHER, claims(B, (0, 1)), [YES], {1: (2, 2, 2)}, ConflictRule.SEQUENCE),
            jobs=[A, B],
            after={1: (2, 2, 2)},
            runs={(1, 0): (1, 1), (2, 0): (1, 1)},
        )

        assert "STALE expected, ACCEPTED given" in rejected(told)

    def test_a_stale_refusal_where_nothing_had_changed(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [STALE], {1: NEW}, ConflictRule.SEQUENCE),
            jobs=[A],
            after={1: NEW},
            runs={},
        )

        assert "ACCEPTED expected, STALE given" in rejected(told)

    def test_write_skew_across_two_machines(self) -> None:
        """Each was refused for what the other was granted: each would have to come second."""
        first = [claims(A, (0, 1), cores=4), claims(B, (0, 2), cores=4)]
        second = [claims(C, (0, 2), cores=4), claims(GANG, (0, 1), (1, 1), cores=2)]
        told = history(
            judged("p", TOGETHER, first, [FULL, YES], {1: (4, 1, 1), 2: (4, 1, 1)}),
            judged("q", TOGETHER, second, [FULL, YES, YES], {1: (4, 1, 1), 2: (4, 1, 1)}),
            jobs=[A, B, C, GANG],
            after={1: (4, 1, 1), 2: (4, 1, 1)},
            runs={(2, 0): (2, 4), (4, 0): (1, 2), (4, 1): (1, 2)},
        )

        assert "0 of 2 events have an order" in rejected(told)

    def test_an_answer_older_than_one_that_was_there_before_it_was_asked_for(self) -> None:
        def told(asked: float) -> History:
            return history(
                judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
                judged("q", (asked, 9), claims(B, (0, 1), cores=9), [FULL], {1: NEW}),
                jobs=[A, B],
                after={1: (1, 1, 1)},
                runs={(1, 0): (1, 1)},
            )

        assert "machine 1" in rejected(told(asked=2))
        assert ["q", "p"] == accepted(told(asked=0.5))

    def test_a_machine_sold_beyond_what_it_has(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1), cores=3), [YES], {1: (3, 1, 1)}),
            judged("q", TOGETHER, claims(B, (0, 1), cores=2), [YES], {1: (5, 2, 2)}),
            jobs=[A, B],
            after={1: (5, 2, 2)},
            runs={(1, 0): (1, 3), (2, 0): (1, 2)},
        )

        assert "OVERCOMMIT expected, ACCEPTED given" in rejected(told)

    def test_a_refusal_where_there_was_room(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [FULL], {1: NEW}),
            jobs=[A],
            after={1: NEW},
            runs={},
        )

        assert "ACCEPTED expected, OVERCOMMIT given" in rejected(told)

    def test_half_a_gang(self) -> None:
        told = history(
            judged("q", (0, 1), claims(B, (0, 2)), [YES], {2: (1, 1, 1)}),
            judged("p", (2, 3), claims(A, (0, 1), (1, 2), cores=4, minimum=2), [YES, FULL],
                   {1: (4, 1, 1), 2: (1, 1, 1)}),
            jobs=[A, B],
            after={1: (4, 1, 1), 2: (1, 1, 1)},
            runs={(1, 0): (1, 4), (2, 0): (2, 1)},
        )  # fmt: skip

        assert "GANG_BROKEN expected, ACCEPTED given" in rejected(told)

    def test_a_broken_gang_that_keeps_what_it_took(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(GANG, (0, 1)), [BROKEN], {1: (1, 1, 1)}),
            jobs=[GANG],
            after={1: (1, 1, 1)},
            runs={},
        )

        assert "machine 1" in rejected(told)

    def test_a_gap_in_the_revisions(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 2)}),
            jobs=[A],
            after={1: (1, 1, 2)},
            runs={(1, 0): (1, 1)},
        )

        assert "machine 1" in rejected(told)

    def test_a_grant_that_does_not_raise_the_sequence(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 0, 1)}),
            jobs=[A],
            after={1: (1, 0, 1)},
            runs={(1, 0): (1, 1)},
        )

        assert "machine 1" in rejected(told)

    def test_an_end_that_raises_the_sequence(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            over("p", (2, 3), A, 0),
            judged("q", (4, 5), claims(B, (0, 1)), [YES], {1: (1, 3, 3)}),
            jobs=[A, B],
            after={1: (1, 3, 3)},
            runs={(2, 0): (1, 1)},
        )

        assert "machine 1" in rejected(told)

    def test_an_end_of_a_task_that_nobody_had_placed_yet(self) -> None:
        told = history(
            over("q", (0, 1), A, 0),
            judged("p", (2, 3), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[A],
            after={1: (0, 1, 2)},
            runs={},
        )

        assert "1 ended by the answer, 0 of them live" in rejected(told)

    def test_a_task_that_ended_twice(self) -> None:
        told = history(
            judged("p", (0, 1), claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            over("p", (2, 9), A, 0),
            over("q", (2, 9), A, 0),
            jobs=[A],
            after={1: (0, 1, 2)},
            runs={},
        )

        assert "1 ended by the answer, 0 of them live" in rejected(told)

    def test_a_lease_lost_by_one_who_holds_it(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [LOST], {1: NEW}),
            jobs=[A],
            after={1: NEW},
            runs={},
        )

        assert "ACCEPTED expected, LEASE_LOST given" in rejected(told)

    def test_a_grant_to_one_who_holds_no_lease(self) -> None:
        stranger = LeasedJob(A.id, UUID(int=77), A.spec, A.unplaced)
        told = history(
            judged("p", TOGETHER, claims(stranger, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[A],
            after={1: (1, 1, 1)},
            runs={(1, 0): (1, 1)},
        )

        assert "LEASE_LOST expected, ACCEPTED given" in rejected(told)

    def test_another_cell_at_the_end(self) -> None:
        def told(after: Row, machine: int) -> History:
            return history(
                judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
                jobs=[A],
                after={1: after},
                runs={(1, 0): (machine, 1)},
            )

        assert ["p"] == accepted(told((1, 1, 1), machine=1))
        assert "machine 1" in rejected(told((2, 1, 1), machine=1))
        assert "found on 2" in rejected(told((1, 1, 1), machine=2))

    def test_a_grant_that_is_lost_at_the_end(self) -> None:
        told = history(
            judged("p", TOGETHER, claims(A, (0, 1)), [YES], {1: (1, 1, 1)}),
            jobs=[A],
            after={1: (1, 1, 1)},
            runs={},
        )

        assert "found on None" in rejected(told)
