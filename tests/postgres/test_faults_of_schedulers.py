"""Schedulers that die, freeze, or cannot tell the time: nothing they were told of is lost."""

import signal
from functools import partial
from pathlib import Path
from typing import LiteralString

import psutil
import pytest

from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.faults import Halt, Side
from omega.testing.recorder import Judged, kept_in
from tests.fixtures.at_work import Plan, assert_whole, at_work, drain, wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.victims import Console

JOBS = 12
TASKS = 3
CORES = JOBS * TASKS
HOURS_S = 3_600.0


def a_cell_of(store: PostgresStore, cores: int, *, first: int = 1) -> None:
    store.add_machines(a_cell(4, cpu_milli=cores * 250, first=first))


def submitted(store: PostgresStore) -> list[int]:
    return store.submit([a_spec(TASKS) for _ in range(JOBS)])


def killed(plan: Plan) -> None:
    """Let a scheduler work until it is killed."""
    with at_work(plan) as (victim,):
        victim.join()

        assert -signal.SIGKILL == victim.exitcode, "it was not killed: the call never came"


def is_stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


def is_drained(store: PostgresStore) -> bool:
    return not store.use().jobs_waiting


def clear(store: PostgresStore, jobs: list[int]) -> None:
    for job in jobs:
        store.cancel(job)


NEEDS_A_FULL_CELL = {"hand_back", "park"}
"""Where there is room for all, nothing is handed back, and nothing parked."""


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("call", ["lease", "snapshot", "commit", "hand_back", "park"])
def test_a_scheduler_killed_at_a_call_of_its_loop(
    database_url: str,
    store: PostgresStore,
    tmp_path: Path,
    dose: Dose,
    tally: Tallier,
    call: str,
    side: Side,
) -> None:
    is_short_of_room = call in NEEDS_A_FULL_CELL
    a_cell_of(store, CORES // 2 if is_short_of_room else CORES)
    spoiler = Halt(call, side)
    with tally(f"kill -9 of a scheduler {side.value} {call}") as row:
        for time in range(dose(short=1, long=12)):
            jobs, log = submitted(store), tmp_path / str(time)
            row.tried += 1
            killed(Plan(url=database_url, log=log, spoiler=spoiler))
            if is_short_of_room and time == 0:
                a_cell_of(store, CORES, first=5)
                spoiler = Halt("commit", side)  # from now on there is room
            drain(database_url)
            assert_whole(store, jobs, log)
            row.survived += 1
            clear(store, jobs)


@pytest.mark.parametrize("side", Side)
def test_a_scheduler_killed_at_a_heartbeat(
    database_url: str,
    store: PostgresStore,
    tmp_path: Path,
    dose: Dose,
    tally: Tallier,
    side: Side,
) -> None:
    a_cell_of(store, CORES)
    with tally(f"kill -9 of a scheduler {side.value} renew") as row:
        for time in range(dose(short=1, long=12)):
            jobs, log = submitted(store), tmp_path / str(time)
            row.tried += 1
            # It thinks for a minute about each job: it is killed while it does.
            killed(
                Plan(
                    url=database_url,
                    log=log,
                    heartbeat_spoiler=Halt("renew", side, calls_before=time % 3),
                    thinks_s=60.0,
                )
            )
            drain(database_url)
            assert_whole(store, jobs, log)
            row.survived += 1
            clear(store, jobs)


FUNCTIONS = {
    "lease": "omega.lease_jobs",
    "commit": "omega.commit_claims",
    "hand_back": "omega.hand_back_jobs",
    "park": "omega.park_jobs",
    "renew": "omega.renew_leases",
}


@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_scheduler_killed_while_the_server_is_at_its_call(
    database_url: str,
    store: PostgresStore,
    console: Console,
    tmp_path: Path,
    dose: Dose,
    tally: Tallier,
    call: str,
) -> None:
    """The server carries the call of the dead out all the same."""
    halt = Halt(call, Side.BEFORE, number=signal.SIGSTOP)
    with tally(f"kill -9 of a scheduler during {call}") as row:
        for time in range(dose(short=1, long=12)):
            machines = store.add_machines(a_cell(4, cpu_milli=CORES * 250, first=8 * time + 1))
            if call in NEEDS_A_FULL_CELL:
                store.set_state(machines[2:], MachineState.DRAINING)
            jobs, log = submitted(store), tmp_path / str(time)
            row.tried += 1
            plan = Plan(
                url=database_url,
                log=log,
                spoiler=None if call == "renew" else halt,
                heartbeat_spoiler=halt if call == "renew" else None,
                thinks_s=60.0 if call == "renew" else 0.0,
            )
            with at_work(plan) as (victim,):
                process = psutil.Process(victim.pid)
                wait_until(partial(is_stopped, process), "the call")
                console.execute("LOCK TABLE omega.job IN EXCLUSIVE MODE")
                process.send_signal(signal.SIGCONT)
                wait_until(partial(waiting_at, console, FUNCTIONS[call]), "the server to be at it")
                process.kill()
                victim.join()
                console.rollback()
            wait_until(lambda: not backends_at(console, FUNCTIONS[call]), "the server to be done")
            console.rollback()
            if call == "commit":
                assert len(store.allocations()) > 0
            store.set_state(machines, MachineState.OPEN)
            drain(database_url)
            assert_whole(store, jobs, log)
            row.survived += 1
            clear(store, jobs)
            store.set_state(machines, MachineState.GONE)


def waiting_at(console: Console, function: str) -> int:
    """Count those of them that are inside: a call may also have been prepared and not yet sent."""
    return backends_at(console, function, "AND wait_event_type = 'Lock'")


def backends_at(console: Console, function: str, which: LiteralString = "") -> int:
    """Count the server processes that are at a call of this function."""
    # The books are those of the transaction's start, unless told to look again.
    console.execute("SELECT pg_stat_clear_snapshot()")
    (found,) = console.execute(
        "SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database()"
        " AND state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%%' || %s || '%%'"
        + which,
        (function,),
    ).fetchone() or (0,)
    return int(str(found))


def test_a_scheduler_that_froze_past_its_lease_is_refused(
    database_url: str, store: PostgresStore, tmp_path: Path, dose: Dose, tally: Tallier
) -> None:
    a_cell_of(store, CORES)
    with tally("SIGSTOP of a scheduler past its lease") as row:
        for time in range(dose(short=1, long=20)):
            jobs, log = submitted(store), tmp_path / str(time)
            spoiler = Halt("commit", Side.BEFORE, number=signal.SIGSTOP)
            row.tried += 1
            with at_work(Plan(url=database_url, log=log, spoiler=spoiler)) as (frozen,):
                process = psutil.Process(frozen.pid)
                wait_until(partial(is_stopped, process), "the freeze")
                drain(database_url)  # as soon as the lease is over
                process.send_signal(signal.SIGCONT)
                wait_until(partial(kept_in, log), "the answer to the late commit")
                frozen.terminate()
                frozen.join()
                assert 0 == frozen.exitcode
            (late,) = kept_in(log)
            assert isinstance(late, Judged)
            assert {Verdict.LEASE_LOST} == set(late.outcome.verdicts.tolist())
            assert_whole(store, jobs)
            row.survived += 1
            clear(store, jobs)


def test_a_scheduler_killed_is_rescued_by_one_whose_clock_is_hours_behind(
    database_url: str, store: PostgresStore, tmp_path: Path, dose: Dose, tally: Tallier
) -> None:
    """By the heir's clock the leases of the dead would hold for hours yet."""
    a_cell_of(store, CORES)
    with tally("leases rescued across clocks that disagree by hours") as row:
        for time in range(dose(short=1, long=10)):
            jobs, logs = (
                submitted(store),
                [tmp_path / f"{time} {name}" for name in ("dead", "heir")],
            )
            row.tried += 1
            killed(
                Plan(
                    url=database_url,
                    log=logs[0],
                    ahead_s=7 * HOURS_S,
                    spoiler=Halt("commit", Side.BEFORE),
                )
            )
            heir = Plan(url=database_url, log=logs[1], name="heir", ahead_s=-7 * HOURS_S)
            with at_work(heir) as (process,):
                wait_until(partial(is_drained, store), "the queue to drain")
                process.terminate()
                process.join()
                assert 0 == process.exitcode
            assert_whole(store, jobs, *logs)
            row.survived += 1
            clear(store, jobs)


def test_schedulers_whose_clocks_disagree_by_hours(
    database_url: str, store: PostgresStore, tmp_path: Path, dose: Dose, tally: Tallier
) -> None:
    """Leases are the database's: nobody takes another's job because his own clock says so."""
    a_cell_of(store, 4 * CORES)
    with tally("schedulers whose clocks disagree by hours") as row:
        for time in range(dose(short=1, long=10)):
            row.tried += 1
            plans = [
                Plan(
                    url=database_url,
                    log=tmp_path / f"{time} {hours}",
                    name=f"ahead {hours}",
                    lease_ms=60_000,
                    ahead_s=hours * HOURS_S,
                )
                for hours in (-7, 0, 7)
            ]
            with at_work(*plans) as processes:
                wait_until(lambda: len(store.reports()) == 3, "all of them")
                jobs = submitted(store) + submitted(store)
                wait_until(partial(is_drained, store), "the queue to drain")
                for process in processes:
                    process.terminate()
                    process.join()
                    assert 0 == process.exitcode
            statuses = [status for status in map(store.job, jobs) if status is not None]
            assert_whole(store, jobs, *(plan.log for plan in plans))
            assert {1} == {status.attempts for status in statuses}, "a lease was taken away"
            assert all(
                0 <= (status.first_leased_ms or 0) - status.submitted_ms < HOURS_S * 1_000
                for status in statuses
            )
            row.survived += 1
            clear(store, jobs)
