"""The benchmark of views at toy size."""

import pytest

from benchmarks import sync
from benchmarks.sync import FIRST, WAYS, Reader
from omega.clock import ManualClock
from omega.store.memory.store import MemoryStore
from omega.store.postgres.packing import MACHINE
from omega.testing.builders import a_cell
from tests.benchmarks.conftest import PNG, Bench

SIZES = {20: (0, 1), 50: (0, 1, 30)}
"""By machines of the toy cell, the rows changed that fit into it."""


def test_each_way_reads_what_it_has_to_and_all_views_agree(bench_on_server: Bench) -> None:
    ran = bench_on_server("sync")

    rows = {(row["machines"], row["way"], row["changed"]): row for row in ran.rows}
    expected = {(m, way, c) for m, counts in SIZES.items() for way in WAYS for c in counts}
    assert {*expected, *((m, FIRST, 0) for m in SIZES)} == set(rows)
    for (machines, way, changed), row in rows.items():
        assert row["samples"] >= 3
        if way == "delta":  # more only where others have transactions open
            assert changed <= row["rows_read"] <= machines
        elif way == "partitioned":
            assert row["rows_read"] <= machines
        else:
            assert machines == row["rows_read"]
        assert row["rows_read"] * MACHINE.itemsize == row["bytes"]
    digest = ran.document["digest"]
    for machines in SIZES:
        done = sum(row["samples"] for row in ran.rows if row["machines"] == machines)
        assert done == digest[f"refreshes of {machines} machines"]
        assert digest[f"view of {machines} machines, crc32"] > 0
    assert "A full read of 50 machines takes" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_a_checksum_tells_views_apart() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(2))
    early, late = Reader("delta", store, clock), Reader("full", store, clock)
    early.refresh()
    store.add_machines(a_cell(1, first=3))
    late.refresh()

    assert early.checksum() != late.checksum()
    assert (0.0, 3) == early.refresh()
    assert early.checksum() == late.checksum()


def test_views_that_differ_end_the_run(
    bench_on_server: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def each_its_own(reader: Reader) -> int:
        return id(reader)

    monkeypatch.setattr(sync.Reader, "checksum", each_its_own)

    with pytest.raises(AssertionError, match="views of one cell differ"):
        bench_on_server("sync")
