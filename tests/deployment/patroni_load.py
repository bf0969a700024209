"""A cell at work on servers that fail, and an outside record of what was acknowledged.

Goal: tell what a failover costs, and whether anything that was acknowledged is lost.
Promise: schedulers and virtual nodes are processes as users start them; none may end by itself.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psycopg

from omega.clock import RealClock
from omega.errors import OmegaError
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from tests.deployment.patroni_nodes import until

PROCESSES = (
    ("scheduler", "run", "batch", "--replica", "a"),
    ("scheduler", "run", "batch", "--replica", "b"),
    ("node", "simulate", "--speedup", "60"),
)
SUBMITTERS = 2
PAUSE_S = 0.05
MINUTE_MS = 60_000
COMMITS_APART = """
    SELECT extract(epoch FROM max(committed_at - before))::float8
      FROM (SELECT committed_at, lag(committed_at) OVER (ORDER BY committed_at) AS before
              FROM omega.transaction) AS each
     WHERE committed_at > %s
"""


@dataclass(frozen=True)
class Acknowledged:
    """A submission that was answered."""

    job: int
    name: str
    asked: float
    answered: float


@dataclass
class Load:
    """Whoever submits, and what was answered: kept here, and not in the database."""

    url: str
    clock: RealClock = field(default_factory=RealClock)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What was said to submissions that have to be repeated."""
    over: threading.Event = field(default_factory=threading.Event)

    def submit(self, submitter: int) -> None:
        """Submit until it is over; who has no answer asks again, under another name."""
        clock = RealClock(self.over)
        with closing(PostgresStore(self.url, application_name="omega submitter")) as store:
            for count in range(sys.maxsize):
                if self.over.is_set():
                    return
                name, asked = f"{submitter}-{count}", clock.now()
                try:
                    (job,) = store.submit([a_spec(name=name, duration_ms=MINUTE_MS)])
                except OmegaError as refusal:
                    self.refused.append(str(refusal))
                else:
                    self.acknowledged.append(Acknowledged(job, name, asked, clock.now()))
                clock.sleep(PAUSE_S)

    def first_since(self, moment: float) -> Acknowledged | None:
        """Return what was answered first of what was asked after a moment."""
        later = [one for one in list(self.acknowledged) if one.asked > moment]
        return min(later, key=lambda one: one.answered, default=None)

    def answers_apart(self, moment: float) -> float:
        """Return the longest time between two answers of which the later came after a moment."""
        times = sorted(one.answered for one in list(self.acknowledged))
        return max(late - early for early, late in pairwise(times) if late > moment)

    def commits_apart(self, moment: datetime) -> float:
        """Return the same of commits of schedulers, by the server's clock."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute(COMMITS_APART, [moment]).fetchone()
        assert row is not None
        return float(row[0])

    def lost(self) -> list[Acknowledged]:
        """Return what was acknowledged and is not there under its number."""
        told = list(self.acknowledged)
        with psycopg.connect(self.url) as connection:
            rows = connection.execute("SELECT job_id, name FROM omega.job_spec").fetchall()
        there: dict[int, str] = dict(rows)
        return [one for one in told if there.get(one.job) != one.name]

    def has_succeeded(self, job: int) -> bool:
        """Return whether a job was placed, has run and is over."""
        with suppress(psycopg.Error), psycopg.connect(self.url) as connection:
            return bool(
                connection.execute(
                    "SELECT 1 FROM omega.job WHERE id = %s AND state = 'succeeded'", [job]
                ).fetchone()
            )
        return False


@dataclass(frozen=True)
class Failover:
    """What a fault costs, in seconds."""

    writable: float
    """Until a server took writes."""
    answers: float
    """The longest time between two answers to submissions."""
    commits: float
    """The longest time between two commits of schedulers."""


@contextmanager
def cell_at_work(url: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Load]:
    """Run schedulers, virtual nodes and submitters; each process has to end cleanly afterwards."""
    load = Load(url)
    env = {**os.environ, **environment, "OMEGA_DATABASE_URL": url}
    with (folder / "cell.log").open("ab") as log:
        processes = [
            subprocess.Popen([sys.executable, "-m", "omega.cli", *words], env=env, stderr=log)
            for words in PROCESSES
        ]
    submitters = [threading.Thread(target=load.submit, args=[n]) for n in range(SUBMITTERS)]
    try:
        for submitter in submitters:
            submitter.start()
        until(lambda: load.acknowledged, "a submission")
        until(lambda: load.has_succeeded(load.acknowledged[0].job), "a job to run")
        yield load
        assert [None] * len(PROCESSES) == [process.poll() for process in processes]
    finally:
        load.over.set()
        for submitter in submitters:
            submitter.join()
        for process in processes:
            process.terminate()
        codes = [process.wait() for process in processes]
    assert [0] * len(PROCESSES) == codes, (folder / "cell.log").read_text()
