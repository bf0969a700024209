"""The benchmark of live schedulers at toy size: everything submitted is placed, and told."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from benchmarks import live
from benchmarks.__main__ import main
from benchmarks.end_to_end import SMOKE, EndToEnd
from benchmarks.postgres import statements
from benchmarks.shapes import FIGURES, PUBLISHED, TASKS_A_MACHINE, Shape
from omega.limits import LIMITS
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.outcomes import Verdict
from omega.store.postgres.connection import Link
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job
from omega.workload.demo_cell import CPU_SHAPES, demo_machines
from tests.benchmarks.conftest import PNG, Bench


def test_every_task_that_was_submitted_has_its_place(bench_on_server: Bench) -> None:
    ran = bench_on_server("end_to_end")

    drains = [row for row in ran.rows if row["measures"] == "drain"]
    streams = [row for row in ran.rows if row["measures"] == "stream"]
    grid = [(40, 2, 1, None), (40, 2, 5, None)]
    shapes = [case for case in SMOKE.cases if case.shape.name]
    told = [(c.shape.machines, c.schedulers, c.shape.tasks, c.shape.name) for c in shapes]
    assert [*grid, *told] == [_point(row) for row in drains]
    assert grid == [_point(row) for row in streams]

    digest = ran.document["digest"]
    assert sum(row["jobs"] for row in ran.rows) == digest["jobs submitted"]
    assert sum(row["jobs"] * row["tasks"] for row in ran.rows) == digest["tasks submitted"]
    assert digest["tasks submitted"] == digest["tasks live"]
    assert 0 == digest["violations"]

    assert all(row["tasks_per_s"] >= row["jobs_per_s"] > 0 for row in drains)
    assert all(0 < row["first_p50_ms"] <= row["p50_ms"] <= row["p99_ms"] for row in streams)
    assert all(row["schedulers_cpu_s"] >= 0 for row in drains)
    assert ["3,750", "810", None] == [row["others_tasks_per_s"] for row in drains[2:]]
    headline = ran.document["summary"]["headline"]
    assert (40, 2, 5) == tuple(headline[name] for name in ("machines", "schedulers", "tasks"))
    assert "On 40 machines, 2 schedulers commit" in ran.document["summary"]["finding"]
    assert all(figure.source in " ".join(ran.said.split()) for figure in FIGURES)
    assert ran.picture.startswith(PNG)


def test_jobs_that_are_missing_end_the_run(
    bench_on_server: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = PostgresStore.submit

    def submit_all_but_one(store: PostgresStore, specs: Sequence[JobSpec]) -> list[int]:
        return submit(store, specs[1:])

    monkeypatch.setattr(PostgresStore, "submit", submit_all_but_one)

    with pytest.raises(AssertionError, match="jobs were submitted"):
        bench_on_server("end_to_end")


def test_a_scheduler_that_dies_ends_the_run(
    bench_on_server: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "KIND", "nobody")

    with pytest.raises(AssertionError, match="no scheduler is registered"):
        bench_on_server("end_to_end")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--schedulers", "17"], "not in 1 to 16"),
        (["--published", "borg"], "'borg' is none of c1m, pods, gangs, none"),
        (["--load", "1"], "load"),
    ],
)
def test_bad_usage_is_exit_code_2(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "end_to_end", *arguments])

    assert 2 == end.value.code
    assert problem in " ".join(capsys.readouterr().err.split())


def test_the_whole_grid_is_gone_through_and_the_headline_is_in_it() -> None:
    benchmark = EndToEnd()

    assert 3 * 4 * 3 + len(PUBLISHED) == len(benchmark.cases)
    assert any(
        (case.shape.machines, case.schedulers, case.shape.tasks) == (10_000, 4, 100)
        for case in benchmark.cases
    )


@pytest.mark.parametrize("shape", [*PUBLISHED.values(), Shape(machines=1_000, tasks=1_000)])
def test_every_shape_has_room_twice_over(shape: Shape) -> None:
    """The stream comes on top of the drain, and random placement must not run into walls."""
    machines = demo_machines(shape.machines, np.random.default_rng(0))
    spec, jobs = shape.spec(), shape.jobs_for(1e6)
    (group,) = spec.groups
    each = (machines.capacity[:, :2] // group.demand[:2]).min(axis=1)
    if shape.constrained:
        allowed = np.isin(
            list(map(str, machines.attributes["platform"])), group.constraints[0].values
        )
        each = each[allowed]

    assert each.sum() * 0.75 > jobs * shape.tasks * (1 if shape.name else 2)
    assert min(spec.minimum, shape.tasks) <= LIMITS.claims_per_transaction_max
    assert min(int(row[0]) for _, row in CPU_SHAPES) // group.cpu_milli > TASKS_A_MACHINE


def test_work_is_taken_for_the_time_there_is() -> None:
    shape = Shape(machines=10_000, tasks=100)

    assert 2_000 == shape.jobs_for(10.0)
    assert 4 == shape.jobs_for(0.0)
    assert 10_000 == shape.jobs_for(1e6)
    assert 1_000 == PUBLISHED["c1m"].jobs_for(0.0)


@pytest.fixture
def small_cell(empty_database_url: str) -> Iterator[PostgresStore]:
    """One machine with room for two tasks."""
    migrate(empty_database_url)
    with closing(statements.store(empty_database_url)) as store:
        store.add_machines(a_cell(1, cpu_milli=2_000))
        yield store


@pytest.fixture
def link(small_cell: PostgresStore, empty_database_url: str) -> Iterator[Link]:
    """A connection to its database."""
    assert not small_cell.verify()
    with closing(statements.connect(empty_database_url)) as connected:
        yield connected


def test_a_job_is_committed_with_its_first_grant_and_with_its_last(
    small_cell: PostgresStore, link: Link
) -> None:
    """What is refused commits nothing, and is a conflict of its job in its transaction."""
    assert statements.times_of_jobs(link, after=0)[0].size == 0
    wide, narrow, late = small_cell.submit([a_spec(2), a_spec(1), a_spec(1)])
    assert statements.has_work(link)
    jobs = small_cell.lease("batch", holder="test", jobs_max=2, lease_ms=60_000)
    of_wide, of_narrow = (job for job in jobs if job.id in (wide, narrow))

    def commit(job: LeasedJob, *tasks: int) -> list[int]:
        claims = [a_claim(task) for task in tasks]
        return list(small_cell.commit(a_transaction(claims_of_job(job, *claims))).verdicts)

    assert [Verdict.ACCEPTED] == commit(of_wide, 0)
    together = a_transaction(
        claims_of_job(of_wide, a_claim(1)), claims_of_job(of_narrow, a_claim(0, cpu_milli=5_000))
    )
    verdicts = small_cell.commit(together).verdicts.tolist()
    assert [Verdict.ACCEPTED, Verdict.OVERCOMMIT] == verdicts

    ids, submitted, leased, first, last = statements.times_of_jobs(link, after=0)
    assert [wide] == ids.tolist()
    assert submitted[0] < leased[0] < first[0] < last[0]
    assert 0 == len(statements.times_of_jobs(link, after=wide)[0])
    assert (1, 3) == statements.count_conflicts(link)
    assert late > narrow


def test_an_emptied_cell_is_unused_and_views_hear_of_it(
    small_cell: PostgresStore, link: Link
) -> None:
    small_cell.submit([a_spec(2)])
    (job,) = small_cell.lease("batch", holder="test", jobs_max=1, lease_ms=60_000)
    small_cell.commit(a_transaction(claims_of_job(job, a_claim(0), a_claim(1))))
    before = small_cell.snapshot()
    assert not statements.has_work(link)

    statements.empty(link)

    changes = small_cell.changes_since(before.mark)
    assert before.rows.used.any()
    assert not changes.rows.used.any()
    assert changes.rows.revision[0] > before.rows.revision[0]
    assert before.rows.sequence.tolist() == changes.rows.sequence.tolist()
    assert not small_cell.jobs()
    assert not small_cell.verify()


def _point(row: Mapping[str, Any]) -> tuple[int, int, int, str | None]:
    return row["machines"], row["schedulers"], row["tasks"], row["published"]
