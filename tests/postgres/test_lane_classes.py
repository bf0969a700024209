"""The classes of lanes that Postgres computes are those of the model."""

from contextlib import closing

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from omega.limits import LIMITS
from omega.model.jobs import Constraint, Operator, TaskGroup
from omega.model.lanes import CONSTRAINT_CLASSES, SHAPE_CLASSES, Lane, job_demand, lane_class
from omega.store.postgres import schema
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_group, a_spec
from tests.fixtures.doses import examples

NAMES = st.text(st.characters(blacklist_categories=["C", "Z"]), min_size=1, max_size=3)
CONSTRAINTS = st.builds(
    Constraint, NAMES, st.just(Operator.IN), st.lists(NAMES, min_size=1, max_size=3).map(tuple)
) | st.builds(Constraint, NAMES, st.just(Operator.MISSING))
AMOUNTS = st.integers(0, 31).map(lambda power: 2**power - 1) | st.integers(0, LIMITS.amount_max)
GROUPS = st.builds(
    a_group,
    st.integers(1, 9),
    constraints=st.lists(CONSTRAINTS, max_size=3).map(tuple),
    cpu_milli=AMOUNTS,
    memory_mib=AMOUNTS,
    disk_mib=AMOUNTS,
    gpus=st.integers(0, 8),
)


@examples(60)
@given(groups=st.lists(GROUPS, min_size=1, max_size=3), minimum=st.integers(0, 3))
def test_both_stores_class_jobs_alike(
    store: PostgresStore, groups: list[TaskGroup], minimum: int
) -> None:
    spec = a_spec(groups=groups, minimum=min(minimum, sum(group.tasks for group in groups)))
    (job,) = store.submit([spec])
    (head,) = [it for it in store.lanes("batch") if it.job == job]
    store.cancel(job)

    assert Lane("default", lane_class(spec)) == head.lane
    assert head.lane.lane_class < SHAPE_CLASSES + CONSTRAINT_CLASSES
    assert tuple(job_demand(spec).tolist()) == head.demand


def test_the_lanes_of_jobs_outlive_down_and_up(empty_database_url: str) -> None:
    picky = (Constraint("zone", Operator.IN, ("a", "b")), Constraint("ssd", Operator.EXISTS))
    specs = [
        a_spec(5, cpu_milli=7_000, minimum=5),
        a_spec(memory_mib=2**20, constraints=picky),
        a_spec(groups=[a_group(3, gpus=1), a_group(2, disk_mib=2**30)]),
    ]
    classes = "SELECT lane_class FROM omega.job ORDER BY id"
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        store.submit(specs)
    with psycopg.connect(empty_database_url) as owner:
        first = owner.execute(classes).fetchall()
    schema.downgrade(empty_database_url, "0023")
    with psycopg.connect(empty_database_url) as owner:
        before = owner.execute("SELECT constraint_class FROM omega.job ORDER BY id").fetchall()
    schema.migrate(empty_database_url)

    with psycopg.connect(empty_database_url) as owner:
        assert [(lane_class(spec),) for spec in specs] == first == owner.execute(classes).fetchall()
    (_, (hashed,), _) = before
    assert [(0,), (0,)] == before[::2]
    assert 1 <= hashed <= 64
