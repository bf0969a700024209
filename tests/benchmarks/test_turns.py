"""Live schedulers that share out their reading, at toy size; and what their counts come to."""

from collections import Counter

from benchmarks.turn_counts import Counts
from benchmarks.turns import SMOKE, WAYS
from omega.metrics.histogram import bucket_of
from omega.store.postgres.packing import MACHINE
from tests.benchmarks.conftest import PNG, Bench


def test_replicas_share_out_their_reading_through_the_death_of_one(bench_on_server: Bench) -> None:
    ran = bench_on_server("turns")

    assert [(way, half) for way in WAYS for half in ("before", "after")] == [
        (row["way"], row["half"]) for row in ran.rows
    ]
    for row in ran.rows:
        assert row["rows"] * MACHINE.itemsize == row["bytes"] > 0
        assert row["claims"] >= row["claims_refused"]
        assert row["oldest_s"] > 0
    jobs = sum(int(SMOKE.jobs_per_s * SMOKE.seconds / len(ran.rows)) for _ in ran.rows)
    assert jobs * SMOKE.tasks == ran.document["digest"]["tasks live"]
    assert ran.document["summary"]["settled_s"] > 0
    assert "the others each held a turn of 1" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_what_was_done_between_two_counts_is_told_and_the_dead_are_not_asked_their_age() -> None:
    early, late = str(bucket_of(0.5)), str(bucket_of(2.0))
    before = Counts(
        1.0, Counter(rows=3, claims=10), {"a": Counter({early: 1}), "b": Counter({late: 1})}
    )
    after = Counts(
        3.5,
        Counter(rows=5, claims=14, claims_refused=1),
        {"a": Counter({early: 2}), "b": Counter({late: 5})},
    )

    told = after.since(before, dead="b")

    assert (2.5, 2, 4, 1, 0.25) == tuple(
        told[name] for name in ("seconds", "rows", "claims", "claims_refused", "conflict_fraction")
    )
    assert 2 * MACHINE.itemsize == told["bytes"]
    assert 0.45 < told["oldest_s"] < 0.55
