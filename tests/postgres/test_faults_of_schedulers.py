"""Schedulers that die, freeze, or cannot tell the time: nothing they were told of is lost."""

import signal
from functools import partial
from pathlib import Path

import psutil
import pytest

from omega.lifecycle.states import State
from omega.model.outcomes import Verdict
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.faults import Halt, Side
from omega.testing.recorder import Judged, kept_in
from tests.fixtures.at_work import Plan, assert_whole, at_work, drain, wait_until
from tests.fixtures.doses import Dose, Tallier

JOBS = 12
TASKS = 3
CORES = JOBS * TASKS
HOURS_S = 3_600.0

IN_THE_LOOP = [
    (call, side) for call in ("lease", "snapshot", "commit", "hand_back", "park") for side in Side
]


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


def clear(store: PostgresStore, jobs: list[int]) -> None:
    for job in jobs:
        store.cancel(job)


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
    # Where there is room for all, nothing is handed back, and nothing parked.
    is_short_of_room = call in {"hand_back", "park"}
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
                wait_until(
                    lambda: (
                        not any(map(store.use().jobs_by_state.get, (State.PENDING, State.PLANNING)))
                    ),
                    "the queue to drain",
                )
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
