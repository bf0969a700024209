"""A cell is saved as it is at one moment, and is the same again in an empty database."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from omega.errors import BadInput, NotAllowed
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.elastic import Phase, Workers
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import Kind, amounts
from omega.ordering.tenants import Tenant
from omega.store.leases import Parking
from omega.store.loading import HOLDER
from omega.store.postgres.connection import Link
from omega.store.postgres.restoring import restore_cell
from omega.store.postgres.saving import save_cell
from omega.store.postgres.store import PostgresStore
from omega.store.saved.cell import SavedCell
from omega.store.saved.writing import lines_of, write_cell
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    grant,
    lease_all,
)
from tests.fixtures.command_line import Omega, summary
from tests.fixtures.databases import Emptying
from tests.fixtures.doses import Dose
from tests.fixtures.logins import Login
from tests.fixtures.saved_cells import (
    a_saved_cell,
    a_saved_job,
    at_s,
    running,
    saved_cells,
    some_machines,
)
from tests.fixtures.sessions import AT_MOST_MS

HOUR_MS = 3_600_000


def saved(url: str, since_ms: int = HOUR_MS) -> SavedCell:
    return save_cell(url, since_ms=since_ms, statement_timeout_ms=AT_MOST_MS)


def restored(url: str, cell: SavedCell) -> int:
    return restore_cell(url, cell, file="cell.snapshot", statement_timeout_ms=AT_MOST_MS)


def what_goes_on(cell: SavedCell, moved_ms: int = 0) -> list[dict[str, Any]]:
    """Return the lines of what is restored, with all times moved; planned jobs are pending."""
    lines = []
    for text in lines_of(cell):
        line = json.loads(text)
        if line["line"] not in {"machines", "quota", "tenant", "job", "running"}:
            continue
        for name, value in line.items():
            if name.endswith("_ms") and isinstance(value, list):
                line[name] = [None if one is None else one + moved_ms for one in value]
            elif name.endswith("_ms") and value is not None:
                line[name] = value + moved_ms
        if line.get("state") == "planning":
            line["state"] = "pending"
        lines.append(line)
    return lines


def test_any_cell_is_the_same_again(
    database_url: str, emptying: Emptying, dose: Dose, store: PostgresStore
) -> None:
    @settings(
        max_examples=dose(10, 200), suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(saved_cells())
    def same_again(cell: SavedCell) -> None:
        emptying.empty(database_url)
        moved_ms = restored(database_url, cell)
        again = saved(database_url)

        assert what_goes_on(cell, moved_ms) == what_goes_on(again)
        assert cell.precedence_gap == again.precedence_gap
        assert [] == [*store.verify()]

    same_again()


def test_a_cell_at_work_is_the_same_again(
    database_url: str, emptying: Emptying, store: PostgresStore
) -> None:
    add_a_cell(store, 3, gpus=2)
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 2_000}))
    a_running_job(store, a_spec(2, tenant="ann", duration_ms=9_000), [1, 1])
    partly = a_leased_job(store, a_spec(5, gpus=1))
    grant(store, partly, [0, 3], [2, 3], cpu_milli=1_000, gpu_1=1_000)
    parked = a_leased_job(store, a_spec(2, precedence=4))
    store.park([Parking(parked.id, parked.token, ParkReason.NO_ROOM, "full")])
    store.submit([a_spec(name="waits")])
    store.set_state(integers([3]), MachineState.DRAINING)
    store.resize(1, amounts(cpu_milli=1_500, memory_mib=16_384), notice_ms=60_000)
    store.set_precedence_gap(7)
    for tenant in (Tenant("org", 3), Tenant("ann", 2, "org")):
        store.set_tenant(tenant)
    before, holds, tenants = saved(database_url), store.quotas(), store.tenants()

    emptying.empty(database_url)
    moved_ms = restored(database_url, before)

    after = saved(database_url)
    assert what_goes_on(before, moved_ms) == what_goes_on(after)
    assert 7 == store.precedence_gap()
    assert (holds, tenants) == (store.quotas(), store.tenants())
    assert [] == [*store.verify(), *store.verify_amounts()]
    assert [State.RUNNING, State.PENDING, State.PARKED, State.PENDING] == [
        job.state for job in after.jobs
    ]


def test_notices_helpers_phases_and_evictions_are_the_same_again(
    database_url: str, emptying: Emptying, store: PostgresStore
) -> None:
    machines = some_machines(1)
    notice = np.zeros_like(machines.notice)
    notice[0, Kind.CPU_MILLI] = 1_500
    elastic = replace(a_spec(2), workers=Workers(4, (Phase("map", 8, 500),)))
    cell = a_saved_cell(
        machines=replace(machines, notice=notice, notice_ends_ms=(at_s(90),), address=("a.b",)),
        jobs=(
            a_saved_job(3, elastic, phases=((3, 900),)),
            a_saved_job(5, a_spec(1, precedence=-1), parent=3),
            a_saved_job(
                *(8, a_spec(3)),
                state=State.PENDING,
                unplaced=((0, 1),),
                evicted_by=2,
                evicted_ms=at_s(-3),
                precedence_set_ms=at_s(-2),
                fruitless=4,
            ),
        ),
        running=running((3, 0, 1, -9), (3, 1, 1, -9), (5, 0, 1, 3), (8, 1, 1, 4), (8, 2, 1, 4)),
    )
    moved_ms = restored(database_url, cell)

    again = saved(database_url)
    assert what_goes_on(cell, moved_ms) == what_goes_on(again)
    assert [] == [*store.verify()]
    assert [1_000] == [int(one.excess[Kind.CPU_MILLI]) for one in store.notices()]


def test_a_restored_cell_goes_on(
    database_url: str, emptying: Emptying, store: PostgresStore
) -> None:
    add_a_cell(store, 2)
    a_running_job(store, a_spec(2), [1, 2])
    planned = a_leased_job(store, a_spec(3))
    cell = saved(database_url)
    emptying.empty(database_url)
    restored(database_url, cell)

    (leased,) = lease_all(store)
    grant(store, leased, range(3), [1, 2, 2])
    (new,) = store.submit([a_spec()])

    assert planned.id == leased.id
    assert planned.token != leased.token
    assert new > planned.id
    assert 2 == store.end_tasks(integers([1, 1]), np.array([0, 1]))
    assert [] == [*store.verify(), *store.verify_amounts()]


def test_what_schedulers_did_is_told_as_they_report_it(
    database_url: str, store: PostgresStore
) -> None:
    add_a_cell(store, 2)
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 0}))
    job = a_leased_job(store, a_spec(8))
    claim(store, job, [0], [1])
    claim(store, job, [1, 2], [1, 1], rule=ConflictRule.SEQUENCE, seen=0)
    claim(store, job, [3, 4], [2, 9])
    claim(store, a_leased_job(store, a_spec(tenant="ann")), [0], [1])

    told = {one.rule: one for one in saved(database_url).schedulers}
    fit, sequence = told[ConflictRule.FIT], told[ConflictRule.SEQUENCE]
    assert (3, 3, 1) == (fit.transactions, fit.job_transactions, fit.job_transactions_conflicted)
    assert (4, 2) == (fit.claims, fit.claims_refused)
    assert (1, 1) == (sequence.job_transactions, sequence.job_transactions_conflicted)
    assert (2, 2) == (sequence.claims, sequence.claims_refused)


def test_the_past_begins_with_the_last_start_state_that_was_loaded(
    database_url: str, store: PostgresStore
) -> None:
    add_a_cell(store, 1)
    a_running_job(store, a_spec(name="before"), [1])
    loaded = a_leased_job(store, a_spec(name="loaded"))
    part = claims_of_job(loaded, some_claims([0], [1]))
    store.commit(a_transaction(part, scheduler=HOLDER))
    store.end_tasks(integers([1]), np.array([0]))
    a_running_job(store, a_spec(name="after"), [1])

    cell = saved(database_url)
    assert ["after"] == [job.spec.name for job in cell.jobs if job.submitted_ms >= cell.begin_ms]
    assert [1] == [one.transactions for one in cell.schedulers]
    assert [1] == cell.past.job.tolist()


def test_reports_are_as_old_as_they_were_at_that_moment(
    database_url: str, store: PostgresStore
) -> None:
    store.report("batch", "0", pid=1, facts={"thought_s": 1.5, "totals": {"claims": 3}})
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("UPDATE omega.process SET seen_at = seen_at - interval '1 hour'")

    (told,) = saved(database_url).processes
    assert {"thought_s": 1.5, "totals": {"claims": 3}} == told.facts
    assert 0 <= told.seen_ms_ago - HOUR_MS < AT_MOST_MS


def test_no_token_is_saved(database_url: str, store: PostgresStore) -> None:
    add_a_cell(store, 1)
    job = a_leased_job(store)

    assert str(job.token).encode() not in b"".join(lines_of(saved(database_url)))


def test_a_reader_saves_and_only_the_owner_restores(
    database_url: str, login: Login, store: PostgresStore, emptying: Emptying
) -> None:
    add_a_cell(store, 1)
    a_running_job(store, a_spec(), [1])

    cell = saved(login("reader", "omega_reader"))
    with pytest.raises(NotAllowed):
        saved(login("submitter", "omega_submitter"))
    emptying.empty(database_url)
    for role in ("reader", "submitter", "scheduler", "node"):
        with pytest.raises(NotAllowed):
            restored(login(role, f"omega_{role}"), cell)

    assert 0 == len(store.snapshot().rows)
    restored(database_url, cell)
    assert 1 == len(store.snapshot().rows)


@pytest.mark.parametrize(
    "fill",
    [
        lambda store: store.add_machines(a_cell(1)),
        lambda store: store.submit([a_spec()]),
        lambda store: store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 1})),
        lambda store: store.set_tenant(Tenant("ann", 2)),
    ],
    ids=["machines", "jobs", "quotas", "tenants"],
)
def test_a_cell_that_is_not_empty_is_left_alone(
    database_url: str, store: PostgresStore, fill: Callable[[PostgresStore], object]
) -> None:
    fill(store)
    before = what_goes_on(saved(database_url))

    with pytest.raises(BadInput, match="the cell of this database is not empty"):
        restored(database_url, a_saved_cell())
    assert before == what_goes_on(saved(database_url))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (
            a_saved_cell(
                jobs=(
                    a_saved_job(1, a_spec(3, minimum=2), state=State.PENDING, unplaced=((1, 3),)),
                ),
                running=running((1, 0, 1, 0)),
            ),
            "the saved cell is not sound: a gang is whole, absent, or above its minimum; job 1",
        ),
        (
            a_saved_cell(jobs=(a_saved_job(1, failed=9, state=State.PENDING, unplaced=((0, 1),)),)),
            "the saved cell is not sound: ",
        ),
        (
            a_saved_cell(jobs=(a_saved_job(1, a_spec(name="\u3164"), unplaced=()),)),
            "job 1: name, scheduler and tenant are texts",
        ),
        (
            a_saved_cell(
                jobs=(a_saved_job(1, state=State.PARKED, unplaced=((0, 1),), park_detail="a\0b"),)
            ),
            "",
        ),
    ],
    ids=["gang", "failures", "name", "NUL"],
)
def test_a_cell_that_is_not_sound_leaves_nothing(
    database_url: str, store: PostgresStore, cell: SavedCell, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        restored(database_url, cell)

    assert caught.value.sentence.startswith(said)
    assert (0, []) == (len(store.snapshot().rows), store.jobs())


def test_all_statements_see_one_moment(database_url: str, store: PostgresStore) -> None:
    """What is committed while a cell is read is in no part of it."""
    add_a_cell(store, 1)
    link = Link(database_url, application_name="test", statement_timeout_ms=AT_MOST_MS)
    count = b"SELECT count(*) FROM omega.machine"

    def read_twice(cursor: psycopg.Cursor[Any]) -> tuple[object, object]:
        first = cursor.execute(count).fetchone()
        store.add_machines(a_cell(1, first=9))
        return first, cursor.execute(count).fetchone()

    with closing(link):
        assert ((1,), (1,)) == link.together(read_twice, reads_only=True)
    assert 2 == len(store.snapshot().rows)


def test_the_commands_save_and_restore(
    omega: Omega,
    database_url: str,
    store: PostgresStore,
    emptying: Emptying,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    file = tmp_path / "cell.snapshot"
    add_a_cell(store, 2)
    store.submit([a_spec(scheduler="service")])
    a_running_job(store, a_spec(2), [1, 2])

    told = summary(omega("snapshot", file, "--since", "30m", "--json", "-"))
    assert (2, 2, 1, 2) == tuple(
        told[name] for name in ("machines", "tasks_running", "jobs_waiting", "jobs_submitted")
    )
    refused = omega("restore", file)
    assert 2 == refused.code
    assert "the cell of this database is not empty (2 machines, 2 jobs" in refused.err

    emptying.empty(database_url)
    ran = omega("restore", file)
    assert (0, "") == (ran.code, ran.err)
    assert "Restored: 2 machines, 2 jobs, 2 running tasks, 0 quotas" in ran.out
    assert 0 == omega("db", "verify").code


def test_a_command_says_what_is_wrong_with_a_file(
    omega: Omega, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    unsound = tmp_path / "unsound"
    job = a_saved_job(1, a_spec(3, minimum=2), state=State.PENDING, unplaced=((1, 3),))
    write_cell(a_saved_cell(jobs=(job,), running=running((1, 0, 1, 0))), unsound)

    ran = omega("restore", unsound)
    assert 2 == ran.code
    assert f"{unsound}: the saved cell is not sound" in " ".join(ran.err.split())
    ran = omega("snapshot", tmp_path / "a", "--since", "soon")
    assert 2 == ran.code
    assert "--since" in ran.err


def test_machines_that_are_gone_stay_gone(
    database_url: str, emptying: Emptying, store: PostgresStore
) -> None:
    cell = a_saved_cell(
        machines=some_machines(2, state=[MachineState.GONE, MachineState.DOWN]), jobs=()
    )
    emptying.empty(database_url)
    restored(database_url, replace(cell, running=running()))

    rows = store.snapshot().rows
    assert [MachineState.GONE, MachineState.DOWN] == rows.state.tolist()


def test_a_store_is_closed_after_a_restore(database_url: str) -> None:
    """Nobody holds a lock on the cell afterwards."""
    restored(database_url, a_saved_cell())

    with closing(PostgresStore(database_url, statement_timeout_ms=AT_MOST_MS)) as store:
        assert [3] == store.add_machines(a_cell(1, first=9)).tolist()
