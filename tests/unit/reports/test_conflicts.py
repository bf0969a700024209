"""Who refused whom."""

from collections.abc import Iterable
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from omega.model.outcomes import Verdict
from omega.reports import conflicts
from omega.reports.conflicts import (
    BUCKET_S,
    BY_OTHERS,
    GANG,
    LATER_ONES,
    NOBODY,
    UNKNOWN,
    WINDOW_S,
    ConflictTally,
)
from omega.store.watching import Judged

ACCEPTED, STALE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.STALE, Verdict.OVERCOMMIT

Transaction = tuple[str, list[tuple[int, Verdict]]]
"""Who, as `kind/replica`, and machine and verdict of each claim."""


def read(
    *transactions: Transaction, ids: Iterable[UUID] | None = None, are_all: bool = True
) -> Judged:
    """Return what a read of these transactions returns."""
    named = [who.split("/") for who, _ in transactions]
    claims = [claim for _, its in transactions for claim in its]
    return Judged(
        id=tuple(ids) if ids else tuple(uuid4() for _ in transactions),
        scheduler=tuple(kind for kind, _ in named),
        replica=tuple(replica for _, replica in named),
        ends=np.cumsum([len(its) for _, its in transactions]).astype(np.intp),
        machine=integers([machine for machine, _ in claims]),
        verdict=np.array([verdict for _, verdict in claims], dtype=np.int8),
        mark=0,
        are_all=are_all,
    )


def refused(tally: ConflictTally) -> dict[tuple[str, str, Verdict], int]:
    """Return the refused claims by who was refused, who had been granted, and the verdict."""
    matrix = tally.total()
    names = {at: "/".join(name) for at, name in enumerate(matrix.replicas)}
    names |= {NOBODY: "nobody", UNKNOWN: "unknown", GANG: "gang"}
    return {
        (names[loser], names[winner], Verdict(verdict)): claims
        for (loser, winner, verdict), claims in matrix.cells.items()
    }


def tallied(*reads: Judged) -> ConflictTally:
    tally = ConflictTally()
    for each in reads:
        tally.note(each, 0.0)
    return tally


def test_the_last_who_was_granted_the_machine_has_refused() -> None:
    tally = tallied(
        read(
            ("batch/0", [(7, ACCEPTED)]),
            ("batch/1", [(7, ACCEPTED)]),
            ("web/0", [(7, OVERCOMMIT), (7, OVERCOMMIT), (8, ACCEPTED)]),
            ("batch/0", [(8, STALE)]),
        )
    )

    assert {
        ("web/0", "batch/1", OVERCOMMIT): 2,
        ("batch/0", "web/0", STALE): 1,
    } == refused(tally)


def test_it_is_known_from_one_read_to_the_next() -> None:
    tally = tallied(
        read(("batch/0", [(7, ACCEPTED)])), read(("batch/1", [(7, OVERCOMMIT), (9, OVERCOMMIT)]))
    )

    assert {
        ("batch/1", "batch/0", OVERCOMMIT): 1,
        ("batch/1", "unknown", OVERCOMMIT): 1,
    } == refused(tally)


def test_the_own_claims_of_a_transaction_do_not_refuse_it() -> None:
    tally = tallied(
        read(("batch/0", [(7, ACCEPTED)]), ("batch/1", [(7, ACCEPTED), (7, OVERCOMMIT)]))
    )

    assert {("batch/1", "batch/0", OVERCOMMIT): 1} == refused(tally)


def test_a_scheduler_may_meet_its_own_earlier_claim() -> None:
    tally = tallied(read(("batch/0", [(7, ACCEPTED)]), ("batch/0", [(7, STALE)])))

    assert {("batch/0", "batch/0", STALE): 1} == refused(tally)


@pytest.mark.parametrize(
    "verdict", sorted(set(Verdict) - {ACCEPTED, Verdict.GANG_BROKEN, *BY_OTHERS})
)
def test_what_no_claim_of_another_causes_is_charged_to_nobody(verdict: Verdict) -> None:
    tally = tallied(read(("batch/0", [(7, ACCEPTED)]), ("batch/1", [(7, verdict)])))

    assert {("batch/1", "nobody", verdict): 1} == refused(tally)


def test_what_breaks_with_its_gang_is_charged_to_the_gang() -> None:
    verdicts = [(7, STALE), (8, Verdict.GANG_BROKEN)]
    tally = tallied(read(("batch/0", [(7, ACCEPTED), (8, ACCEPTED)]), ("batch/1", verdicts)))

    assert {
        ("batch/1", "batch/0", STALE): 1,
        ("batch/1", "gang", Verdict.GANG_BROKEN): 1,
    } == refused(tally)


def test_a_claim_on_a_machine_that_never_was_takes_no_memory() -> None:
    tally = tallied(read(("batch/1", [(2**31 - 1, Verdict.GONE), (3, ACCEPTED)])))

    assert {("batch/1", "nobody", Verdict.GONE): 1} == refused(tally)
    assert len(tally._last) == 4  # noqa: SLF001 - this is what it is about


def test_a_read_that_repeats_transactions_counts_them_once() -> None:
    ids = [uuid4(), uuid4(), uuid4()]
    first, second = ("batch/0", [(7, ACCEPTED)]), ("batch/1", [(7, STALE)])
    third = "batch/1", [(7, ACCEPTED)]
    tally = tallied(read(first, second, ids=ids[:2]), read(first, second, third, ids=ids))

    assert {("batch/1", "batch/0", STALE): 1} == refused(tally)
    assert {"batch": 3} == tally.transactions
    assert {"batch": 1} == tally.conflicted
    assert 2 == tally.counts().claims["batch", "accepted"]
    assert 0 == tally.missed


def test_what_a_read_left_out_is_noticed() -> None:
    known = [uuid4(), uuid4()]
    here: Transaction = "batch/0", [(7, ACCEPTED)]
    tally = tallied(
        read(here, ids=known[:1], are_all=False),
        read(here, here, ids=known, are_all=False),
        read(here, are_all=False),
    )

    assert 1 == tally.missed, "of the first read nothing was missed, and the second goes on from it"


@pytest.mark.parametrize(
    ("verdicts", "conflicts_too"),
    [
        ([ACCEPTED, ACCEPTED], False),
        ([ACCEPTED, STALE], True),
        ([Verdict.QUOTA, ACCEPTED], False),
        ([Verdict.QUOTA, Verdict.GANG_BROKEN], False),
        ([Verdict.QUOTA, Verdict.GANG_BROKEN, OVERCOMMIT], True),
        ([Verdict.GANG_BROKEN], True),
    ],
)
def test_a_transaction_conflicts_as_outcomes_say(
    verdicts: list[Verdict],
    conflicts_too: bool,  # noqa: FBT001 - of the table above
) -> None:
    tally = tallied(read(("batch/0", [(1, verdict) for verdict in verdicts])))

    assert {"batch": 1} == tally.transactions
    assert conflicts_too == tally.conflicted["batch"]


def test_late_refusals_are_told_apart_from_old_ones() -> None:
    tally = ConflictTally()
    tally.note(read(("a/0", [(7, ACCEPTED)]), ("b/0", [(7, STALE)])), 0.0)
    tally.note(read(("b/0", [(7, STALE)])), WINDOW_S + BUCKET_S)

    late = tally.recent(WINDOW_S + BUCKET_S)

    assert [1, 2] == [sum(matrix.cells.values()) for matrix in (late, tally.total())]
    assert {} == late.granted


def test_the_replicas_of_a_kind_are_summed() -> None:
    tally = tallied(
        read(
            ("batch/0", [(7, ACCEPTED), (8, ACCEPTED)]),
            ("batch/1", [(7, STALE)]),
            ("web/0", [(8, STALE), (9, ACCEPTED)]),
        )
    )

    assert {
        "names": [["batch", ""], ["web", ""]],
        "granted": [2, 1],
        "cells": [[0, 0, "stale", 1], [1, 0, "stale", 1]],
    } == tally.total().by_kind().row()


def test_names_without_end_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "REPLICAS_MAX", 2)
    tally = tallied(read(*((f"k{number}/0", [(1, ACCEPTED)]) for number in range(5))))

    assert (("k0", "0"), ("k1", "0")) == tally.total().replicas[:2]
    assert LATER_ONES == tally.total().replicas[2]
    assert {0: 1, 1: 1, 2: 3} == dict(tally.total().granted)


def test_what_was_read_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "REMEMBERED_MAX", 3)
    tally = tallied(*(read(("a/0", [(1, ACCEPTED)])) for _ in range(9)))

    assert 3 == len(tally._seen)  # noqa: SLF001 - this is what it is about


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a/0", "a/1", "b/0"]),
            st.lists(
                st.tuples(st.integers(1, 4), st.sampled_from([ACCEPTED, STALE, OVERCOMMIT])),
                min_size=1,
                max_size=4,
            ),
        ),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_it_is_what_a_walk_from_claim_to_claim_finds(
    transactions: list[Transaction], cut: int
) -> None:
    expected: dict[tuple[str, str, Verdict], int] = {}
    last: dict[int, str] = {}
    for who, claims in transactions:
        for machine, verdict in claims:
            if verdict is not ACCEPTED:
                key = who, last.get(machine, "unknown"), verdict
                expected[key] = expected.get(key, 0) + 1
        last |= {machine: who for machine, verdict in claims if verdict is ACCEPTED}

    tally = tallied(read(*transactions[:cut]), read(*transactions[cut:]))

    assert expected == refused(tally)
