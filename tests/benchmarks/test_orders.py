"""The benchmark of fair orders at toy size: the same jobs are drained by each order."""

from benchmarks.orders import ORDERS, SMOKE
from tests.benchmarks.conftest import PNG, Bench


def test_every_order_drains_the_same_jobs(bench_on_server: Bench) -> None:
    ran = bench_on_server("orders")

    tasks = SMOKE.jobs * SMOKE.tenants * SMOKE.tasks
    told = {(row["order"], row["replicas"], row["round"]): row["tasks"] for row in ran.rows}
    expected = {
        (order, replicas, number): tasks
        for order in ORDERS
        for replicas in SMOKE.replicas
        for number in range(SMOKE.rounds)
    }
    assert expected == told
    digest = ran.document["digest"]
    assert {"tasks live": tasks * len(expected), "violations": 0} == digest
    assert all(row["tasks_per_s"] > 0 for row in ran.rows)
    of_fifo = [one["of_fifo"] for one in ran.document["summary"]["orders"]]
    alone = [one for one in ran.document["summary"]["orders"] if one["order"] == "fifo"]
    assert [1.0] * len(SMOKE.replicas) == [one["of_fifo"]["median"] for one in alone]
    assert all(0 < ratio["lower"] <= ratio["median"] <= ratio["upper"] for ratio in of_fifo)
    assert ran.picture.startswith(PNG)
