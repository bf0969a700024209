"""The commit benchmark at toy size: each way commits, and writes what omega writes."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any, LiteralString
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from benchmarks.client import DEMAND, OMEGA, Work
from benchmarks.commit import HEADERS, LABELS, OURS, SMOKE, VARIANTS, Commit
from benchmarks.documents import read
from benchmarks.postgres.baselines import BASELINES, install
from benchmarks.postgres.one_committer import ShadowState
from benchmarks.workers import CONTENTIONS, Order, Workers, one_committer, workers
from omega.errors import InvariantBroken
from omega.model.outcomes import Verdict
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.architecture.tree import ROOT
from tests.benchmarks.conftest import PNG, Bench

MACHINES = 12


@pytest.fixture
def all_ways(empty_database_url: str) -> Iterator[Workers]:
    """Two clients that can commit in every way."""
    with ExitStack() as stack:
        address = stack.enter_context(one_committer(empty_database_url))
        clients = stack.enter_context(
            workers(empty_database_url, clients=2, machines=MACHINES, address=address)
        )
        install(empty_database_url)
        yield clients


def an_order(variant: str, *, claims: int = 3, contention: str = "uniform") -> Order:
    return Order(variant=variant, clients=2, claims=claims, contention=contention, transactions=2)


def test_it_measures_every_way_in_every_cell_and_the_work_was_done(bench_on_server: Bench) -> None:
    ran = bench_on_server("commit")

    cells = {(row["contention"], row["claims"], row["clients"], row["variant"]) for row in ran.rows}
    assert len(SMOKE.orders) * len(VARIANTS) == len(cells) == len(ran.rows)
    assert all(row["verdicts"]["accepted"] > 0 for row in ran.rows)
    assert all(row["claims_per_s"] > 0 and row["p50_ms"] > 0 for row in ran.rows)
    digest = ran.document["digest"]
    assert 0 == digest.pop("violations")
    assert {"transactions", *(f"claims granted, {variant}" for variant in VARIANTS)} == set(digest)
    assert sum(row["transactions"] for row in ran.rows) == digest.pop("transactions")
    assert sum(row["verdicts"]["accepted"] for row in ran.rows) == sum(digest.values())

    assert "of unjudged writes" in ran.document["summary"]["finding"]
    assert set(SMOKE.contention) == set(ran.document["summary"]["omega_over"]["raw"])
    assert ran.picture.startswith(PNG)
    environment = ran.document["environment"]
    assert {"processors", "processor", "python", "revision", "load_before"} <= set(environment)
    assert {"server_version", "fsync", "synchronous_commit"} <= set(environment["postgres"])


def test_each_way_leaves_the_cell_as_omega_would(
    all_ways: Workers, empty_database_url: str
) -> None:
    """Every machine's sequence says how many transactions claimed on it, and nothing is missing."""
    granted = 0
    for variant, contention in product(VARIANTS, CONTENTIONS):
        done = all_ways.do(an_order(variant, contention=contention), seed=1)
        assert 4 == done.transactions, variant
        granted += done.granted
    all_ways.check(granted)

    assert 4 * len(VARIANTS) * len(CONTENTIONS) == one_number(
        empty_database_url, "SELECT count(*) FROM omega.transaction"
    )
    assert one_number(empty_database_url, "SELECT sum(sequence) FROM omega.machine") == one_number(
        empty_database_url,
        "SELECT count(DISTINCT (t.id, c.machine))"
        "  FROM omega.transaction t, unnest(t.machines, t.verdicts) AS c (machine, verdict)"
        " WHERE c.verdict = 0",
    )
    with pytest.raises(InvariantBroken, match=f"{granted} tasks run"):
        all_ways.check(granted + 1)


def test_claims_may_outnumber_the_machines(all_ways: Workers) -> None:
    for variant in VARIANTS:
        done = all_ways.do(an_order(variant, claims=25, contention="hot"), seed=2)
        assert done.granted > 0, variant


def one_number(url: str, query: LiteralString) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def small_cell(empty_database_url: str) -> Iterator[PostgresStore]:
    """One machine with room for one claim."""
    migrate(empty_database_url)
    store = PostgresStore(empty_database_url)
    store.add_machines(a_cell(1, cpu_milli=int(DEMAND[0]), memory_mib=int(DEMAND[1]), disk_mib=0))
    yield store
    store.close()


@pytest.mark.parametrize("variant", ["serializable", "serializable-promising", "pessimistic"])
def test_other_ways_judge_too(
    small_cell: PostgresStore, empty_database_url: str, variant: str
) -> None:
    install(empty_database_url)
    small_cell.submit([a_spec(3)])
    (job,) = small_cell.lease("batch", holder="test", jobs_max=1, lease_ms=60_000)
    way = BASELINES[variant](empty_database_url, "test", None)
    way.begin()

    def commit(*tasks: int) -> set[int]:
        task = np.array(tasks, dtype=np.int64)
        work = Work(uuid4(), job.id, job.token, task, np.ones(len(task), dtype=np.int64))
        return set(way.commit(work).tolist())

    assert {Verdict.OVERCOMMIT} == commit(0, 1)
    assert {Verdict.ACCEPTED} == commit(0)
    assert {Verdict.OVERCOMMIT} == commit(1)
    assert [] == small_cell.verify()
    assert 1 == small_cell.use().live_allocations
    way.close()


def test_the_one_committer_judges_too(small_cell: PostgresStore, empty_database_url: str) -> None:
    cell = ShadowState(empty_database_url)

    assert not cell.grant(np.array([1, 1]))
    assert cell.grant(np.array([1]))
    assert not cell.grant(np.array([1]))


def test_every_way_has_a_name_for_people() -> None:
    assert set(VARIANTS) == set(LABELS) == {*HEADERS, "omega-fit"}
    assert (*OMEGA, *BASELINES) == VARIANTS


def a_row(variant: str, claims: int, median: float, upper: float | None = None) -> dict[str, Any]:
    return {
        "variant": variant,
        "contention": "hot",
        "claims": claims,
        "clients": 4,
        "omega_over": {"median": median, "lower": median, "upper": upper or median},
    }


def test_the_finding_names_the_rival_that_is_faster_most_often() -> None:
    rows = [
        {**a_row(OURS, 1, 1.0), "omega_over": None},
        a_row("raw", 1, 0.5),
        a_row("raw", 100, 0.75),
        a_row("omega-sequence", 1, 0.1),
        a_row("serializable", 1, 0.6),
        a_row("serializable", 100, 0.9, upper=1.1),
        a_row("one-committer", 1, 0.8),
        a_row("one-committer", 100, 0.7),
        a_row("pessimistic", 1, 1.2),
        {**a_row("pessimistic", 1, 0.2), "clients": 8},
    ]

    assert Commit().finding(rows) == (
        "4 clients: omega commits at 0.50 to 0.75 x the rate of unjudged writes; the best rival,"
        " one committer, is faster in 2 of 2 settings, by up to 1.43 x (hot, 100 claims)"
    )


def test_of_two_rivals_that_are_faster_as_often_the_one_by_more_is_named() -> None:
    rows = [a_row("one-committer", 1, 0.8), a_row("serializable", 1, 0.5)]
    said = Commit().finding(rows)

    assert f"the best rival, {LABELS['serializable']}, is faster in 1 of 1" in said


def test_the_finding_says_if_no_rival_is_faster() -> None:
    rows = [a_row("raw", 1, 0.5), a_row("one-committer", 1, 0.9, upper=1.1)]

    assert Commit().finding(rows).endswith("; no rival is faster in any of 1 settings")
    assert "rival" not in Commit().finding(rows[:1])


@pytest.mark.parametrize("name", ["commit", "commit_close", "commit_contended"])
def test_a_committed_run_says_what_its_rows_say(name: str) -> None:
    benchmark, findings = read(ROOT / "benchmarks" / "results" / f"{name}.json")

    assert isinstance(benchmark, Commit)
    assert benchmark.finding(findings.rows) == findings.finding
