"""Deltas look up what the records name, and scan where the records do not reach."""

from collections.abc import Callable
from contextlib import closing

import pytest

from omega.cell.partition import Parts, part_of
from omega.cell.view import View
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.postgres import history
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, end, grant
from omega.testing.twin import row_differences

Change = Callable[[], object]
Prepare = Callable[[PostgresStore, list[int]], Change]

MACHINES = 1_200
"""A delta looks up a tenth of them, and a hundred more."""


def grant_some(store: PostgresStore, machines: list[int]) -> Change:
    job = a_leased_job(store, a_spec(2))
    return lambda: grant(store, job, [0, 1], machines[:2])


def evict(store: PostgresStore, machines: list[int]) -> Change:
    low = a_running_job(store, a_spec(), machines[:1])
    high = a_leased_job(store, a_spec(precedence=10))
    claims = evicting(a_claim(machine=machines[0]), (0, low.id, 0))
    return lambda: store.commit(a_transaction(claims_of_job(high, claims)))


def end_some(store: PostgresStore, machines: list[int]) -> Change:
    job = a_running_job(store, a_spec(2), machines[:2])
    return lambda: end(store, job, 0, 1)


def lose_some(store: PostgresStore, machines: list[int]) -> Change:
    a_running_job(store, a_spec(2), machines[:2])
    store.set_state(integers(machines[:2]), MachineState.DOWN)
    return lambda: store.lose_tasks(integers(machines[:2]))


def drain(store: PostgresStore, machines: list[int]) -> Change:
    return lambda: store.set_state(integers(machines[:1]), MachineState.DRAINING)


def resize(store: PostgresStore, machines: list[int]) -> Change:
    capacity = machine_capacity(cpu_milli=7, memory_mib=7)
    return lambda: store.resize(machines[0], capacity, notice_ms=0)


def drain_half(store: PostgresStore, machines: list[int]) -> Change:
    return lambda: store.set_state(integers(machines[::2]), MachineState.DRAINING)


def grant_everywhere(store: PostgresStore, machines: list[int]) -> Change:
    job = a_leased_job(store, a_spec(MACHINES))
    return lambda: grant(store, job, range(MACHINES), machines)


SOME = [grant_some, evict, end_some, lose_some, drain, resize]


@pytest.mark.parametrize("prepare", [*SOME, drain_half, grant_everywhere])
def test_few_changes_and_many_are_all_told(store: PostgresStore, prepare: Prepare) -> None:
    change = prepare(store, add_a_cell(store, MACHINES))
    view = View(store.snapshot())
    change()

    assert view.catch_up(store.changes_since(view.mark))
    assert [] == row_differences(store.snapshot().rows, view.rows())
    assert [] == list(store.verify())


@pytest.mark.parametrize("prepare", SOME)
def test_who_was_away_while_records_went_misses_nothing(
    store: PostgresStore,
    database_url: str,
    prepare: Prepare,
) -> None:
    change = prepare(store, add_a_cell(store, 3))
    away = View(store.snapshot())
    change()
    with closing(Link(database_url, application_name="t", statement_timeout_ms=30_000)) as owner:
        owner.call("SELECT omega.forget_changes()")
        owner.call("TRUNCATE omega.transaction, omega.machine_change")

    assert away.catch_up(store.changes_since(away.mark))
    assert [] == row_differences(store.snapshot().rows, away.rows())


def test_parts_are_told_apart_where_records_are_gone_too(
    store: PostgresStore, database_url: str
) -> None:
    machines = integers(add_a_cell(store, 40))
    mark = store.snapshot().mark
    store.set_state(machines, MachineState.DRAINING)
    with closing(Link(database_url, application_name="t", statement_timeout_ms=30_000)) as owner:
        owner.call("SELECT omega.forget_changes()")
    for part in range(3):
        told = store.changes_since(mark, Parts((part,), 3)).rows.id

        assert machines[part_of(machines, 3) == part].tolist() == told.tolist()


def test_changes_on_record_go_with_the_rest_of_history(
    store: PostgresStore, database_url: str
) -> None:
    drain(store, add_a_cell(store, 3))()
    pruned = history.prune(
        database_url,
        older_than_ms=24 * 60 * 60 * 1_000,
        statement_timeout_ms=30_000,
        progress=lambda _done, _total: None,
    )
    with closing(Link(database_url, application_name="test", statement_timeout_ms=30_000)) as owner:
        ((left,),) = owner.call("SELECT count(*) FROM omega.machine_change")

    assert 1 == pruned["machine_change"] + left
    assert [] == list(store.verify())
