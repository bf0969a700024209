"""Processes at work outlive what hostile logins send, and do not grow by it.

Real processes, each with a login of its role: two batch schedulers, one that plans by rounds,
virtual nodes, and `omega status --watch`. Beside them a user submits small jobs. Then logins of
each role send what no program of ours sends, in plain SQL, and the user goes on.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import psycopg
import pytest

from omega.lifecycle.states import State
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.at_work import wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.logins import Login, user_of

REFUSALS = ("22023", "54000", "22P02", "22003", "22001", "22P05", "0A000", "42501")
GROUP = {
    "tasks": 1,
    "cpu_milli": 100,
    "memory_mib": 1,
    "disk_mib": 0,
    "gpus": 0,
    "gpu_slices": 1000,
    "duration_ms": 5,
    "constraints": [],
    "spread_over": None,
    "different_machines": False,
}
JOB = {"name": "j", "scheduler": "batch", "tenant": "t", "precedence": 0, "minimum": 0}
ESCAPE = "\x1b[2J\x9b31m\u202e"
DEEP = "[" * 3_000 + "]" * 3_000


def one_of(rng: np.random.Generator, them: Sequence[str]) -> str:
    return them[int(rng.integers(len(them)))]


def submission(rng: np.random.Generator) -> str:
    """Return a job that is refused, or one that is as large as a job may be and fits nowhere."""
    field = f'{{"junk": {one_of(rng, [DEEP, "7" * 6_000, "1e130000", "0e-16000"])}, '
    wide = {"attribute": "zone", "operator": "in", "values": ["v" * 170 + str(rng.random())] * 9}
    large = {**JOB, "groups": [{**GROUP, "constraints": [wide] * 32}, {**GROUP}]}
    escaped = {**JOB, "name": ESCAPE, "groups": [GROUP]}
    valued = {**GROUP, "constraints": [{**wide, "values": [ESCAPE]}]}
    many = {**GROUP, "constraints": [{**wide, "values": ["v"] * 40_000}]}
    return one_of(
        rng,
        [
            "[" + field + json.dumps({**JOB, "groups": [GROUP]})[1:] + "]",
            '[{"groups": [' + field + json.dumps(GROUP)[1:] + "]}]",
            json.dumps([escaped]),
            json.dumps([{**JOB, "groups": [valued]}]),
            json.dumps([{**JOB, "groups": [many]}]),
            json.dumps([large]),
        ],
    )


def facts(rng: np.random.Generator) -> str:
    """Return facts that are refused, or that are as long as facts may be and say nothing."""
    long = {"totals": {"n" + str(n): 1e300 for n in range(40)}, "x": ESCAPE * 1_000}
    return one_of(
        rng,
        [
            f'{{"totals": {DEEP}}}',
            f'{{"elapsed_s": {"7" * 6_000}}}',
            '{"window": 1e130000}',
            json.dumps({"x": "y" * 20_000}),
            json.dumps(long),
            json.dumps({"totals": {ESCAPE: -1}, "waits": [], "elapsed_s": "soon"}),
        ],
    )


def memo(rng: np.random.Generator) -> str:
    """Return a memo that is refused, or one that no program wrote; now and then a long one."""
    long = {"jobs": [2**62] * 9, "plan": [[]] * (1_000_000 if rng.random() < 0.02 else 9)}
    return one_of(
        rng,
        [
            f'{{"jobs": {DEEP}}}',
            f'{{"plan": {"7" * 6_000}}}',
            json.dumps({"jobs": [True, -1, 10**30, "1", None], "plan": {"jobs": "all"}}),
            json.dumps(long),
        ],
    )


def hostile_call(rng: np.random.Generator, kind: str) -> tuple[str, tuple[object, ...]]:
    """Return a statement and its parameters."""
    match kind:
        case "submission":
            return ("SELECT omega.submit_jobs(%s::jsonb)", (submission(rng),))
        case "report":
            replica = one_of(rng, ["0", "a", str(rng.integers(2_000)), ESCAPE])
            whose = one_of(rng, ["batch", "ml-gpu", "nodes", ESCAPE])
            call = "SELECT omega.report_process(%s, %s, 1, %s::jsonb)"
            return (call, (whose, replica, facts(rng)))
        case "memo":
            note = (
                "SELECT omega.note_round('ml-gpu', coalesce((SELECT number"
                " FROM omega.begin_round('ml-gpu', 'thief', 0)), 1), %s::jsonb)"
            )
            return (note, (memo(rng),))
        case _:
            park = (
                "SELECT omega.park_jobs(array_agg(id), array_agg(token),"
                " array_fill('no_room'::text, ARRAY[count(*)::integer]),"
                " array_fill(%s::text, ARRAY[count(*)::integer]))"
                " FROM omega.lease_jobs('thief', 'thief', 1, 600000)"
            )
            detail = one_of(rng, [ESCAPE, "x" * 1_000, "x" * 1_000_000, "because"])
            return (park, (detail,))


ROLE_OF = {
    "submission": "omega_submitter",
    "report": "omega_node",
    "memo": "omega_scheduler",
    "parking": "omega_scheduler",
}


def attack(url: str, kind: str, acts: int, seed: int) -> Counter[str]:
    """Do so many hostile things of one kind; count how each ended."""
    rng = np.random.default_rng(seed)
    ended: Counter[str] = Counter()
    with psycopg.connect(url, autocommit=True) as session:
        for _ in range(acts):
            statement, parameters = hostile_call(rng, kind)
            try:
                session.execute(statement.encode(), parameters)
                ended["taken"] += 1
            except psycopg.Error as refusal:
                ended[refusal.sqlstate or "connection"] += 1
    return ended


@contextmanager
def process(url: str, log: Path, *words: str) -> Iterator[psutil.Process]:
    """Run a command as a user would, with its output in a file."""
    environment = {**os.environ, "OMEGA_DATABASE_URL": url, "COLUMNS": "100"}
    with log.open("wb") as out:
        started = subprocess.Popen(
            [sys.executable, "-m", "omega.cli", *words],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(60)


def greatest(processes: Mapping[str, psutil.Process]) -> dict[str, int]:
    """Return the bytes of memory that each process has held at most, as its kernel says."""
    return {name: _peak(it) for name, it in processes.items()}


def _peak(it: psutil.Process) -> int:
    for line in Path(f"/proc/{it.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1_024
    raise AssertionError(f"{it} has ended")


def honest_jobs(store: PostgresStore, number: int) -> list[int]:
    """Submit small jobs one after the other, each when the last has got its place."""
    jobs = []
    for _ in range(number):
        (job,) = store.submit([a_spec(3, cpu_milli=100, duration_ms=10, tenant="honest")])
        jobs.append(job)
        wait_until(partial(is_placed, store, job), "an honest job to be placed")
    return jobs


def is_placed(store: PostgresStore, job: int) -> bool:
    status = store.job(job)
    assert status is not None
    return status.state in (State.RUNNING, State.SUCCEEDED)


def waits_ms(store: PostgresStore, jobs: list[int]) -> list[int]:
    """Return how long each job waited for the first look of a scheduler."""
    statuses = [store.job(job) for job in jobs]
    return [s.first_leased_ms - s.submitted_ms for s in statuses if s and s.first_leased_ms]


def test_processes_outlive_what_hostile_logins_send(
    database_url: str,
    store: PostgresStore,
    login: Login,
    tmp_path: Path,
    dose: Dose,
    tally: Tallier,
    pytestconfig: pytest.Config,
) -> None:
    say = pytestconfig.get_terminal_writer().line
    store.add_machines(a_cell(50, gpus=2, attributes={"zone": ["z1"] * 50}))
    warden = login("warden", "omega_node")
    assign_machines(database_url, user_of(warden), None)
    planner = login("planner", "omega_scheduler")
    commands = {
        "batch 0": (planner, "scheduler", "run", "batch", "--replica", "0"),
        "batch 1": (planner, "scheduler", "run", "batch", "--replica", "1"),
        "ml-gpu 0": (planner, "scheduler", "run", "ml-gpu", "--set", "round=0.5"),
        "nodes": (warden, "node", "simulate", "--speedup", "10"),
        "status": (login("onlooker", "omega_reader"), "status", "--watch"),
    }
    acts, jobs = dose(25, 2_500), dose(8, 60)
    store.submit([a_spec(scheduler="thief")] * acts)
    with ExitStack() as stack, tally("hostile acts beside work", of="hostile input") as row:
        processes = {
            name: stack.enter_context(process(url, tmp_path / name.replace(" ", "-"), *words))
            for name, (url, *words) in commands.items()
        }
        wait_until(lambda: len(store.reports()) >= 4, "all to be at work")
        quiet = waits_ms(store, honest_jobs(store, jobs))
        before = greatest(processes)
        with ThreadPoolExecutor(len(ROLE_OF)) as pool:
            futures = [
                pool.submit(attack, login(f"foe_{kind}", role), kind, acts, seed)
                for seed, (kind, role) in enumerate(ROLE_OF.items())
            ]
            row.tried += acts * len(futures)
            beset = waits_ms(store, honest_jobs(store, jobs))
            ended = [future.result() for future in futures]
        beset += waits_ms(store, honest_jobs(store, 3))
        after = greatest(processes)

        grown = {name: round(after[name] / before[name], 2) for name in before}
        say(f"memory {grown}; waits {median(quiet):.0f} and {median(beset):.0f} ms; {ended}")
        assert [] == [name for name, it in processes.items() if not it.is_running()]
        assert {} == {name: ratio for name, ratio in grown.items() if ratio >= 2}
        assert {"taken", *REFUSALS} >= {end for each in ended for end in each}
        assert all(each.keys() - {"taken"} for each in ended), "nothing of a kind was refused"
        row.survived += acts * len(futures)
    for name in commands:
        said = (tmp_path / name.replace(" ", "-")).read_text(encoding="utf-8")
        assert "Traceback" not in said, said
        assert not any(raw in said for raw in ("\x1b[2J", "\x9b", "\u202e")), name
    assert [] == list(store.verify())
