"""What only a real server shows of pipelines: equal sums, stages that end at once, and rights."""

from contextlib import closing

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.errors import NotAllowed
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.lanes import QueueOrder
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.model.pipelines import PipelineSpec, TokenRate
from omega.ordering.deadlines import LAST, SourceTokens, stage_key, start_deadlines
from omega.ordering.stage_costs import learnt_picos, stage_costs_ms
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.history import prune
from omega.store.postgres.incarnations import JOBS_PASSED_OVER
from omega.store.postgres.store import PostgresStore
from omega.testing.pipeline_contract import DIAMOND, a_pipeline, by_key, queued, run, stages
from omega.testing.steps import add_a_cell, grant, lease_all
from tests.fixtures.doses import examples
from tests.fixtures.locks import in_the_way
from tests.fixtures.logins import Login, user_of

PICOS = st.integers(0, 10**15)


@st.composite
def pipelines(draw: st.DrawFn) -> PipelineSpec:
    """Draw a pipeline of up to six stages."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    after = {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True) if at else st.just([]))
        for at, name in enumerate(names)
    }
    return a_pipeline(after, within_ms=draw(st.integers(1, 10**7)), units=draw(st.integers(1, 99)))


@examples(40)
@given(spec=pipelines(), known=st.dictionaries(st.sampled_from(["s0", "s1", "s2"]), PICOS))
def test_deadlines_are_those_of_the_pure_functions(
    store: PostgresStore, database_url: str, spec: PipelineSpec, known: dict[str, int]
) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("DELETE FROM omega.stage_cost")
        owner.execute("INSERT INTO omega.stage_cost VALUES ('another', 'chat', 's0', 10^12)")
        for name, picos in known.items():
            owner.execute(
                "INSERT INTO omega.stage_cost VALUES ('default', 'chat', %s, %s)", (name, picos)
            )
        (pipeline,) = store.submit_pipelines([spec])
        found = owner.execute("SELECT * FROM omega.stage_deadlines(%s)", (pipeline,)).fetchone()
    status = store.pipeline(pipeline)
    assert status is not None
    graph = PipelineGraph([Stage(it.name, it.after) for it in spec.stages])
    units = {it.name: it.units for it in spec.stages}
    costs = stage_costs_ms(graph, units, known, spec.within_ms)
    starts = start_deadlines(graph, costs, status.target_ms)

    assert ([costs[name] for name in units], [starts[name] for name in units]) == found


@pytest.mark.parametrize("order", QueueOrder)
@examples(10)
@given(times=st.tuples(*[st.integers(-(10**15), 10**15)] * 3))
def test_keys_are_those_of_the_pure_function(
    database_url: str, order: QueueOrder, times: tuple[int, int, int]
) -> None:
    start_ms, cost_ms, stamp_ms = times
    with psycopg.connect(database_url) as owner:
        found = owner.execute(
            "SELECT omega.key_in_order(%s, %s, %s, %s)", (order.value, *times)
        ).fetchone()

    assert (stage_key(order, start_ms=start_ms, cost_ms=cost_ms, stamp_ms=stamp_ms),) == found


@examples(30)
@given(
    times=st.lists(st.integers(0, 50), min_size=1, max_size=12),
    rate=st.integers(1, 4),
    interval_ms=st.integers(1, 20),
)
def test_stamps_are_those_of_the_pure_functions(
    database_url: str, times: list[int], rate: int, interval_ms: int
) -> None:
    tokens, stamps = SourceTokens(rate=rate, interval_ms=interval_ms), []
    for now_ms in times:
        stamp, tokens = tokens.take(now_ms)
        stamps.append(stamp)
    with psycopg.connect(database_url) as owner:
        said = f'{{"rate": {rate}, "interval_ms": {interval_ms}}}'
        found = [
            owner.execute("SELECT omega.take_token('t', 'p', %s, %s)", (said, now_ms)).fetchone()
            for now_ms in times
        ]
        owner.rollback()

    assert [(stamp,) for stamp in stamps] == found


def test_what_is_learnt_is_what_the_pure_function_says(
    store: PostgresStore, database_url: str
) -> None:
    add_a_cell(store)
    ids = store.submit_pipelines([a_pipeline({"only": ()}, units=3)] * 2)
    expected = None
    for pipeline, took_ms in zip(ids, (1_000, 9_000), strict=True):
        job = stages(store, pipeline)["only"].job
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute(
                "UPDATE omega.job SET state = 'succeeded', finished_at = now(),"
                " unplaced = '{}' WHERE id = %s",
                (job,),
            )
            owner.execute(
                "SELECT omega.end_stages(ARRAY[%s]::bigint[], ARRAY[%s]::bigint[], NULL)",
                (job, took_ms),
            )
            owner.execute("DELETE FROM omega.job WHERE id = %s", (job,))
            owner.execute("DELETE FROM omega.job_spec WHERE job_id = %s", (job,))
        expected = learnt_picos(expected, took_ms, 3)

    assert {"only": expected} == store.stage_picos("default", "chat")


def test_of_two_stages_that_end_at_once_one_queues_what_comes_after(
    store: PostgresStore, database_url: str
) -> None:
    """The second to end waits for the first, and then sees it."""
    add_a_cell(store)
    (pipeline,) = store.submit_pipelines([a_pipeline(DIAMOND)])
    run(store, pipeline, "read")
    for machine, job in enumerate(lease_all(store), start=1):
        grant(store, job, [0], [machine])
    fast, slow = (stages(store, pipeline)[name].job or 0 for name in ("fast", "slow"))
    end_first = f"SELECT omega.end_tasks(ARRAY[{fast}]::bigint[], '{{0}}', NULL)"

    def end_second() -> int:
        return store.end_tasks(integers([slow]), np.zeros(1, dtype=np.intp))

    with in_the_way(database_url, end_first, end_second) as (session, second):
        assert not second.done()
        session.commit()
        assert 1 == second.result()

    assert ["join"] == queued(store, pipeline)
    assert [] == list(store.verify())


def test_who_waits_for_the_tokens_of_a_name_takes_none_of_the_past(
    store: PostgresStore, database_url: str
) -> None:
    tokens = TokenRate(1, 3_600_000)
    store.submit_pipelines([a_pipeline(tokens=tokens)])
    in_an_hour = "UPDATE omega.pipeline_tokens SET interval = interval + 1"

    def submit() -> list[int]:
        return store.submit_pipelines([a_pipeline(tokens=tokens)])

    with in_the_way(database_url, in_an_hour, submit) as (session, submitted):
        assert not submitted.done()
        session.commit()
        (pipeline,) = submitted.result()

    status = store.pipeline(pipeline)
    assert status is not None
    assert LAST == status.stamp


def test_a_stage_that_was_locked_when_the_order_changed_has_its_key_with_the_next_agreement(
    store: PostgresStore, database_url: str
) -> None:
    long, short = store.submit_pipelines([a_pipeline(), a_pipeline(name="b", within_ms=10)])
    jobs = [stages(store, it)["first"].job for it in (short, long)]
    with psycopg.connect(database_url) as session:
        session.execute("SELECT FROM omega.job WHERE id = %s FOR UPDATE", (jobs[0],))
        store.agree_on_order("batch", "0", QueueOrder.SJF, lease_ms=60_000)
    store.agree_on_order("batch", "0", QueueOrder.SJF, lease_ms=60_000)

    assert jobs == by_key(store)


def test_numbers_of_pipelines_that_may_have_been_lost_do_not_come_again(
    store: PostgresStore, database_url: str
) -> None:
    store.submit_pipelines([a_pipeline()])
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("UPDATE omega.cell SET incarnation = greatest(incarnation, 1)")
        owner.execute("DELETE FROM omega.incarnation")  # as a crash does
        owner.execute("SELECT omega.begin_incarnation()")
    (pipeline,) = store.submit_pipelines([a_pipeline()])

    assert pipeline > JOBS_PASSED_OVER


@pytest.mark.parametrize("role", ["omega_scheduler", "omega_node", "omega_reader"])
def test_only_submitters_submit(database_url: str, login: Login, role: str) -> None:
    with (
        closing(PostgresStore(login(role.removeprefix("omega_"), role))) as store,
        pytest.raises(NotAllowed, match="function submit_pipelines"),
    ):
        store.submit_pipelines([a_pipeline()])


INNER = ("end_stages", "queue_stages", "queue_jobs", "renew_keys", "take_token", "lock_pipelines")


@pytest.mark.parametrize("role", ["omega_scheduler", "omega_node", "omega_submitter"])
def test_nobody_calls_what_moves_stages_or_writes_their_tables(
    database_url: str, login: Login, role: str
) -> None:
    url = login(role.removeprefix("omega_"), role)
    with psycopg.connect(database_url) as owner:
        known = owner.execute(
            "SELECT p.oid::regprocedure::text FROM pg_proc p"
            " WHERE pronamespace = 'omega'::regnamespace AND proname = ANY (%s)",
            (list(INNER),),
        ).fetchall()
        may = [
            owner.execute(
                "SELECT has_function_privilege(%s, %s, 'EXECUTE')", (role, name)
            ).fetchone()
            for (name,) in known
        ]
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("pipeline", "pipeline_stage", "stage_cost", "pipeline_tokens"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"DELETE FROM omega.{table}".encode())

    assert [(False,)] * len(INNER) == may


def test_a_node_that_ends_a_stage_queues_the_next(
    store: PostgresStore, database_url: str, login: Login
) -> None:
    (machine, *_) = add_a_cell(store)
    (pipeline,) = store.submit_pipelines([a_pipeline()])
    (job,) = lease_all(store)
    grant(store, job, [0], [machine])
    url = login("node", "omega_node")
    assign_machines(database_url, user_of(url), None)
    with closing(PostgresStore(url)) as node:
        assert 1 == node.end_tasks(integers([job.id]), np.zeros(1, dtype=np.intp))

    assert ["last"] == queued(store, pipeline)


def test_pipelines_that_ended_long_ago_are_removed_with_their_stages(
    store: PostgresStore, database_url: str
) -> None:
    add_a_cell(store)
    over, going_on = store.submit_pipelines([a_pipeline({"only": ()}), a_pipeline(name="b")])
    run(store, over, "only")
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("UPDATE omega.pipeline SET finished_at = finished_at - interval '40 days'")
    pruned = prune(
        database_url,
        older_than_ms=30 * 24 * 3_600_000,
        statement_timeout_ms=30_000,
        progress=lambda done, blocks: None,
    )

    assert (1, 1) == (pruned["pipeline"], pruned["stage_cost"])
    assert {} == store.stage_picos("default", "chat")
    assert [going_on] == [it.id for it in store.pipelines()]
    with psycopg.connect(database_url) as owner:
        assert [(going_on,), (going_on,)] == owner.execute(
            "SELECT pipeline_id FROM omega.pipeline_stage"
        ).fetchall()


def test_a_lease_by_keys_searches_an_index(store: PostgresStore, database_url: str) -> None:
    """And does not sort the queue."""
    store.submit_pipelines([a_pipeline()] * LIMITS.pipelines_per_submission_max)
    query = (
        "EXPLAIN SELECT id FROM omega.job WHERE scheduler = 'batch' AND state = 'pending'"
        " AND not_before <= clock_timestamp() ORDER BY precedence DESC, order_key, id LIMIT 8"
        " FOR NO KEY UPDATE SKIP LOCKED"
    )
    with psycopg.connect(database_url) as owner:
        owner.execute("ANALYZE omega.job")
        plan = "\n".join(line for (line,) in owner.execute(query.encode()).fetchall())

    assert "Index Scan using job_key" in plan
    assert "Sort" not in plan
