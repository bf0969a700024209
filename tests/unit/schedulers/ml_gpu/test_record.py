"""The record of rounds: what JSON holds of it is the record, and what is none is empty."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from schedulers.ml_gpu.history import JobHistory
from schedulers.ml_gpu.learning import ObservedRates
from schedulers.ml_gpu.problem import NOBODY
from schedulers.ml_gpu.record import UNKNOWN, Record
from schedulers.ml_gpu.rounds import Ledger
from tests.fixtures.doses import examples

TYPES = ("k80", "p100", "v100")
CREDIT_S = 180.0
SECONDS = st.floats(0, 1e9, allow_subnormal=False)
OWED = st.floats(-1e9, 1e9, allow_subnormal=False)
TIMES = st.integers(0, 2**45)


@st.composite
def records(draw: st.DrawFn) -> Record:
    types = TYPES[: draw(st.integers(0, 3))]
    jobs = sorted(draw(st.sets(st.integers(1, 2**62), max_size=4)))

    def table(cell: st.SearchStrategy[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        rows = [[draw(cell) for _ in types] for _ in jobs]
        return np.array(rows, np.float64).reshape(len(jobs), len(types))

    ledger = Ledger(
        first=integers(jobs),
        second=np.full(len(jobs), NOBODY),
        share=table(st.floats(0, 1)),
        received_s=table(SECONDS),
        deficit_s=table(OWED),
        is_promised=np.array([draw(st.booleans()) for _ in jobs], np.bool_),
        credit_s=draw(st.floats(0.005, 1e6)),
    )
    return Record(
        types=types,
        gpus=tuple(draw(st.integers(0, 1_000)) for _ in types),
        ledger=ledger,
        since_ms=integers([draw(TIMES) for _ in jobs]),
        reset_ms=draw(st.none() | TIMES),
        is_due=draw(st.booleans()),
        speed_up=draw(st.floats(1e-3, 1e3)),
        tenants=draw(st.text(max_size=3)),
        done=integers([draw(TIMES) for _ in jobs]),
        run_ms=integers([draw(TIMES) for _ in jobs]),
        on=integers([draw(st.integers(UNKNOWN, len(types) - 1)) for _ in jobs]),
        charged_ms=integers([draw(TIMES) for _ in jobs]),
        promised_by=table(SECONDS),
        history=JobHistory(
            promised_s=np.array([draw(SECONDS) for _ in jobs], np.float64),
            had_s=np.array([draw(SECONDS) for _ in jobs], np.float64),
            preempted=integers([draw(TIMES) for _ in jobs]),
            preempted_in=integers([draw(TIMES) for _ in jobs]),
            idle_s=table(SECONDS),
        ),
        round=draw(TIMES),
        learnt=ObservedRates(
            types,
            {
                (model, 2): np.array([draw(SECONDS | st.just(np.nan)) for _ in types], np.float64)
                for model in draw(st.sets(st.sampled_from(["a", "b"])))
            },
        ),
    )


def facts(record: Record) -> list[object]:
    """Return all that a record says, for comparison."""
    ledger = [np.asarray(getattr(record.ledger, field.name)) for field in fields(Ledger)]
    history = [np.asarray(getattr(record.history, it.name)).tolist() for it in fields(JobHistory)]
    columns = record.since_ms, record.done, record.run_ms, record.on, record.charged_ms
    seen = {kind: repr(rates.tolist()) for kind, rates in record.learnt.seen.items()}
    rest = record.types, record.gpus, record.reset_ms, record.is_due, seen, record.round, history
    return [*rest, *(array.tolist() for array in (*columns, record.promised_by, *ledger))]


def stored(memo: dict[str, object]) -> dict[str, object]:
    kept = json.loads(json.dumps(memo))
    assert isinstance(kept, dict)
    return kept


@given(records())
@examples(300)
def test_a_record_survives_its_memo_to_the_last_digit(record: Record) -> None:
    again = Record.of(stored(record.memo()), record.types, CREDIT_S)

    assert facts(record) == facts(again)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(records(), st.data())
@examples(120)
def test_a_memo_that_was_spoilt_is_a_record_that_works_or_an_empty_one(
    record: Record, data: st.DataObject
) -> None:
    memo = stored(record.memo())
    spoilt = data.draw(st.sampled_from(sorted(memo)))
    before = memo[spoilt]
    twice = st.just(before + before) if isinstance(before, list) else st.none()
    memo[spoilt] = data.draw(ANYTHING | twice)

    again = Record.of(memo, TYPES, CREDIT_S)
    jobs = integers([3, 5])
    among = again.among(jobs, integers(), 10)

    assert jobs.tolist() == among.ledger.first.tolist()
    assert (2, len(TYPES)) == among.ledger.priority(np.ones((2, len(TYPES)))).shape
    assert np.isfinite(among.ledger.priority(np.ones((2, len(TYPES))))).all()
    assert 2 == len(among.age_s(10))


@pytest.mark.parametrize(
    "spoilt",
    [
        {"jobs": [7, 7]},
        {"jobs": [10**30, 8]},
        {"since_ms": [10**30, 8]},
        {"reset_ms": 10**30},
        {"types": ["k80", "k80"]},
        {"share": [[0.5], [0.5, 0.5]]},
        {"share": [[0.5, -0.5], [0.5, 0.5]]},
        {"received_s": [[0.5, 1e300], [0.5, 0.5]]},
        {"credit_s": 0.0},
        {"credit_s": float("nan")},
        {"is_promised": [True]},
        {"promised_by": [[1.0], [1.0]]},
        {"seen": [["a", 1, [1.0, 2.0, 3.0]]]},
        {"done": [0, 2**63]},
        {"more": 1},
    ],
)
def test_what_this_program_did_not_write_is_an_empty_record(spoilt: dict[str, object]) -> None:
    empty = Record.empty(("k80", "v100"), CREDIT_S)
    memo = empty.among(integers([7, 8]), integers(), 5).memo()
    assert [7, 8] == Record.of(memo, empty.types, CREDIT_S).ledger.first.tolist()

    assert facts(empty) == facts(Record.of(memo | spoilt, empty.types, CREDIT_S))


def test_a_new_type_begins_with_nothing_promised_and_an_old_one_is_forgotten() -> None:
    record = Record.empty(("k80", "v100"), 1.0).among(integers([7]), integers(), 5)
    memo = record.memo() | {"share": [[0.25, 0.75]], "received_s": [[3.0, 4.0]], "gpus": [4, 4]}

    again = Record.of(memo, ("a100", "v100"), 1.0)

    assert [[0.0, 0.75]] == again.ledger.share.tolist()
    assert [[1.0, 4.0]] == again.ledger.received_s.tolist()
    assert () == again.gpus


def test_among_others_who_left_is_forgotten_and_who_came_begins() -> None:
    record = Record.empty(("k80",), 1.0).among(integers([7, 9]), integers(), 5)

    again = record.among(integers([8, 9]), integers(), 6_005)

    assert [8, 9] == again.ledger.first.tolist()
    assert [0.0, 6.0] == again.age_s(6_005).tolist()
    assert again.is_due


def test_who_is_away_is_kept_apart_and_comes_back_as_it_was() -> None:
    record = Record.empty(("k80",), 1.0).among(integers([7, 9]), integers(), 5)

    without = record.among(integers([9]), integers([7]), 10)
    again = Record.of(stored(without.memo()), ("k80",), 1.0).among(integers([7, 9]), integers(), 20)

    assert [9] == without.ledger.first.tolist()
    assert facts(record) == facts(again)


@pytest.mark.parametrize(
    ("ran_s", "had_s", "speed_up"),
    [((), (), 7), ((0, 0), (0, 5), 7), ((60, 0), (1, 9), 60), ((1, 3), (2, 2), 1), ((1,), (0,), 7)],
)
def test_the_speed_up_is_what_jobs_ran_over_what_they_had(
    ran_s: tuple[float, ...], had_s: tuple[float, ...], speed_up: float
) -> None:
    record = replace(Record.empty((), CREDIT_S), speed_up=7.0)

    assert speed_up == record.measured(np.array(ran_s), np.array(had_s)).speed_up
