"""What rounds tell people, when a scheduler's login notes forgeries: readers survive it."""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from omega.limits import LIMITS
from omega.model.jobs import StepWork
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_running_job
from tests.fixtures.command_line import Omega, document
from tests.fixtures.logins import Login
from tests.unit.cli.hostile_texts import HOSTILE, raw_in, without_styles

pytestmark = pytest.mark.usefixtures("kept_sessions")

BEGUN = "SELECT number FROM omega.begin_round(%s, 'thief', 3600000)"
LARGEST = 2**63 - 1
A_TYPE = {"name": HOSTILE["clears the screen"], "gpus": 1, "used": LARGEST}
WITH_CONTROLS: Mapping[str, object] = {"name": "[red]\x1b[2J\u202e", "gpus": 0, "used": LARGEST}


@pytest.fixture
def thief(database_url: str, login: Login) -> Iterator[psycopg.Connection]:
    """A session of a scheduler's login that notes what it likes."""
    with psycopg.connect(login("thief", "omega_scheduler"), autocommit=True) as session:
        yield session


def note(thief: psycopg.Connection, kind: str, told: object) -> None:
    """Begin a round of a kind of scheduler and note that it tells this."""
    note_round = f"SELECT omega.note_round(%s, ({BEGUN}), %s)".encode()
    assert (True,) == thief.execute(note_round, (kind, kind, Jsonb({"told": told}))).fetchone()


def share_of(job: int, **forged: object) -> list[Any]:
    row = {"job": job, "gpus": LARGEST, "at": 0, "rate": 5e-324, "parts": [1e15], "pace": 5e-324}
    since = {"age_s": 5e-324, "promised_s": 1e15, "had_s": 1e15, "times": LARGEST, "last": LARGEST}
    return list({**row, **since, "is_stalled": False, **forged}.values())


def forgeries(job: int) -> list[object]:
    """Return what a round might tell of a job: wrong types, huge numbers, missing parts."""
    whole = {"policy": "\x1b]0;x\x07[red]", "types": [A_TYPE], "jobs": [share_of(job)]}
    spoilt = [share_of(job, at=at) for at in (-1, 1, 1.5, "0", True, None, 10**30)]
    spoilt += [share_of(job, rate=-1), share_of(job, rate=1e300), share_of(job, rate="NaN")]
    spoilt += [share_of(job, rate=None), share_of(job, rate=[]), share_of(job, rate={})]
    return [
        *(None, 7, "told", [], {}, {"policy": 7, "types": {}, "jobs": "x"}),
        whole,
        {**whole, "types": [WITH_CONTROLS]},
        {**whole, "jobs": [*spoilt, [], [[]], {}, None, share_of(job, is_stalled=True)]},
        {**whole, "jobs": [share_of(job), share_of(job, last=1, at=None)]},
        {**whole, "types": [A_TYPE, {}]},
        {**whole, "types": [], "jobs": [share_of(job, parts=[], at=None)]},
    ]


def test_every_screen_survives_what_a_forged_round_tells(
    omega: Omega,
    database_url: str,
    store: PostgresStore,
    thief: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    store.add_machines(a_cell(1, gpus=4))
    work = StepWork(kind="A3C", steps=10**9)
    job = a_running_job(store, a_spec(1, gpus=1, work=work), [1]).id
    thief.execute(BEGUN.encode(), ("batch",))

    for told in forgeries(job):
        memo = Jsonb({"told": told})
        assert thief.execute("SELECT omega.note_round('batch', 1, %s)", (memo,)).fetchone()
        for command in (["status"], ["jobs"], ["job", str(job)], ["why", str(job)]):
            ran = omega(*command)
            assert (0, "", []) == (ran.code, ran.err, raw_in(without_styles(ran.out))), told
            assert document(omega(*command, "--json", "-"))


def test_one_login_tells_no_more_than_the_largest_memo_takes(
    store: PostgresStore, thief: psycopg.Connection
) -> None:
    # As JSON of the database a memo takes up to four times its length; one of a long text does not.
    long = {"policy": "x", "types": [], "jobs": ["x" * (LIMITS.memo_bytes_max - 100)]}
    store.begin_round("ours", holder="ours/0", length_ms=3_600_000)
    store.note_round("ours", 1, {"told": {"policy": "fifo", "types": [], "jobs": []}})

    for number in range(6):
        note(thief, f"kind {number}", long)

    told = {last.scheduler: last.summary is not None for last in store.last_rounds()}
    assert [False, False, True, True, True, True] == [told[f"kind {n}"] for n in range(6)]
    assert told["ours"]


def test_half_a_million_numbers_are_noted(thief: psycopg.Connection) -> None:
    # By a function that takes time by the square of their number, this would be minutes.
    note(thief, "batch", {"policy": "x", "types": [], "jobs": [7] * 500_000})
