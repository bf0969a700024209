"""What rounds tell people: it survives JSON, and what no scheduler wrote is left out."""

import json
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model import round_summary
from omega.model.round_summary import JobShare, RoundSummary, TypeUse
from tests.fixtures.doses import examples

AMOUNT = st.floats(0, 1e12, allow_subnormal=False)
WHOLE = st.integers(0, 2**62)


@st.composite
def summaries(draw: st.DrawFn) -> RoundSummary:
    names = draw(st.lists(st.text("abc", max_size=4), max_size=3, unique=True))
    parts = st.floats(0.001, 1)
    return RoundSummary(
        policy=draw(st.sampled_from(["max_min_fairness_perf", "fifo"])),
        types=[TypeUse(name, draw(WHOLE), draw(WHOLE)) for name in names],
        jobs=[
            JobShare(
                job=job,
                gpus=draw(st.integers(1, 8)),
                type=draw(st.sampled_from([None, *names])),
                rate=draw(AMOUNT),
                share={name: draw(parts) for name in names if draw(st.booleans())},
                pace=draw(AMOUNT),
                age_s=draw(AMOUNT),
                promised_s=draw(AMOUNT),
                had_s=draw(AMOUNT),
                preempted=draw(WHOLE),
                preempted_in=draw(WHOLE),
                is_stalled=draw(st.booleans()),
            )
            for job in sorted(draw(st.sets(WHOLE, max_size=3)))
        ],
    )


def stored(row: object) -> object:
    return json.loads(json.dumps(row))


A_ROW = RoundSummary(
    "fifo",
    [TypeUse("k80", 4, 2)],
    [JobShare(7, 2, "k80", 3.0, {"k80": 0.5}, 1.5, 60.0, 30.0, 20.0, 3, 12, is_stalled=False)],
).row()


@given(summaries())
@examples(300)
def test_a_summary_survives_json(summary: RoundSummary) -> None:
    assert summary == RoundSummary.of(stored(summary.row()))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["policy", "types", "jobs", "name", "gpus"]), inner)
    ),
    max_leaves=8,
)


@given(ANYTHING, st.integers(0, 11), ANYTHING)
@examples(300)
def test_what_no_scheduler_wrote_is_left_out_or_in_bounds(
    row: object, at: int, spoilt: object
) -> None:
    told = stored(A_ROW)
    assert isinstance(told, dict)
    told["jobs"][0][at] = spoilt
    for one in (row, told, {**told, "types": row}, {**told, "jobs": row}, {**told, "policy": row}):
        found = RoundSummary.of(one)
        for share in [] if found is None else found.jobs:
            numbers = [share.rate, share.pace, share.age_s, *share.share.values()]

            assert all(0 <= number <= 1e15 and not isnan(number) for number in numbers)
            assert min(share.gpus, share.preempted, share.preempted_in) >= 0


@pytest.mark.parametrize("row", [None, [], {}, {"policy": "", "types": [], "jobs": []}, "x" * 9])
def test_no_summary_is_none(row: object) -> None:
    assert RoundSummary.of(row) is None


def test_a_name_longer_than_a_name_is_none() -> None:
    assert RoundSummary.of({**A_ROW, "policy": "x" * 201}) is None
    assert RoundSummary.of({**A_ROW, "types": [{"name": "x" * 201, "gpus": 1, "used": 1}]}) is None


def test_the_names_of_types_are_listed_once_however_many_jobs_a_stranger_tells_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[object] = []
    monkeypatch.setattr(round_summary, "_job_share", lambda _, types: names.append(types))

    RoundSummary.of({**A_ROW, "jobs": [0] * 3})

    assert [True] * 3 == [each is names[0] for each in names]
