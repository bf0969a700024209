"""Rows whose texts do something to a terminal: no command writes them there raw.

They are written straight into the tables, as an older version or an owner may have left them.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from omega.cli.status import command as status
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.store.postgres.store import PostgresStore
from omega.terminal.program import DONE, FAILED
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import LONG_MS, a_running_job
from tests.fixtures.command_line import Omega
from tests.unit.cli.hostile_texts import HOSTILE, LONG, raw_in, without_styles

pytestmark = pytest.mark.usefixtures("kept_sessions")

STORABLE = [text for text in HOSTILE.values() if "\0" not in text and "\ud800" not in text]
TEXTS = {
    "escapes": "|".join(STORABLE[:6]),
    "controls": "|".join(STORABLE[6:12]),
    "unseen": "|".join(STORABLE[12:15]),
    "markup": "|".join(STORABLE[15:]),
    "long": LONG,
    "long and unprintable": "\x1b" * 50_000,  # all alike: it has to fit into an index
}
ENUMERATIONS = frozenset(
    {
        ("alembic_version", "version_num"),
        ("job", "state"),
        ("job", "park_reason"),
        ("quota", "scope"),
    }
)
"""Columns of texts that constraints hold to a few words."""
DISTINCT = frozenset({("machine_profile", "name"), ("process", "replica")})
"""Columns of names that several rows of ours have, each its own."""

PARKED, RUNNING = 2, 1
Command = tuple[int, list[object]]
COMMANDS: list[Command] = [
    (DONE, ["status"]),
    (DONE, ["jobs"]),
    (DONE, ["jobs", "--state", "parked"]),
    (DONE, ["job", PARKED]),
    (DONE, ["job", RUNNING]),
    (DONE, ["job", 3]),
    (DONE, ["why", PARKED]),
    (DONE, ["why", RUNNING]),
    (DONE, ["cell", "show"]),
    (DONE, ["quota", "list"]),
    (FAILED, ["db", "verify"]),
]


class OverAfterALook(threading.Event):
    """A stop event that is set when somebody has looked once, and waits."""

    def wait(self, timeout: float | None = None) -> bool:
        """Ask for the end."""
        self.set()
        return super().wait(timeout)


@contextmanager
def stop_after_a_look() -> Iterator[threading.Event]:
    yield OverAfterALook()


def fill(store: PostgresStore) -> None:
    """Make a bit of everything that screens show."""
    first, second, third = store.add_machines(
        a_cell(3, attributes={"zone": ["a", "b", None], "rack": ["r", "r", "r"]})
    ).tolist()
    a_running_job(store, a_spec(3, tenant="ann"), [first] * 2 + [second])
    store.submit([a_spec(1), a_spec(1)])
    store.lease("batch", holder="batch/0", jobs_max=2, lease_ms=LONG_MS)
    store.submit([a_spec(1)])
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 1, Budget.JOBS: 1}))
    store.set_quota(Quota(QuotaScope.SCHEDULER, "batch", {Budget.JOBS: 1}))
    store.set_state(integers([second]), MachineState.DRAINING)
    store.set_state(integers([third]), MachineState.DOWN)
    store.resize(first, machine_capacity(cpu_milli=1, memory_mib=1), notice_ms=60_000)
    store.report("batch", "0", pid=1, facts={})
    store.report("nodes", "1", pid=2, facts={})


def spoil(url: str, text: str) -> None:
    """Write a text wherever one is: into each column of texts, and into what JSON has of them."""
    facts = {text: text, **{name: {"refused": {text: 7}, text: 3} for name in ("totals", "window")}}
    with psycopg.connect(url) as link:
        link.execute(
            "UPDATE omega.job SET state = 'parked', park_reason = 'no_room', park_detail = 'x',"
            " lease_holder = NULL, lease_token = NULL, lease_expires_at = NULL WHERE id = %s",
            (PARKED,),
        )
        columns = link.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_schema = 'omega' AND data_type = 'text' AND table_type = 'BASE TABLE'"
            "   AND is_generated = 'NEVER'"
        ).fetchall()
        for table, column in sorted(
            {(str(table), str(name)) for table, name in columns} - ENUMERATIONS
        ):
            told = sql.SQL("%s || ctid::text" if (table, column) in DISTINCT else "%s")
            link.execute(
                sql.SQL("UPDATE omega.{} SET {} = {} WHERE {} IS NOT NULL").format(
                    sql.Identifier(table), sql.Identifier(column), told, sql.Identifier(column)
                ),
                (text,),
            )
        link.execute("UPDATE omega.process SET facts = %s::jsonb", (json.dumps(facts),))
        link.execute("UPDATE omega.process SET kind = 'nodes' WHERE pid = 2")
        names, values = [text, f"{text}!"], [[text, f"{text}?"], [text, f"{text}?"]]
        link.execute(
            "UPDATE omega.cell SET catalogue = %s::jsonb",
            (json.dumps({"names": names, "values": values}),),
        )
        link.execute("UPDATE omega.machine SET memory_mib_used = memory_mib_used + 1 WHERE id = 1")


@pytest.fixture(params=TEXTS)
def text(
    request: pytest.FixtureRequest,
    store: PostgresStore,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A hostile text, which is everywhere in the database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    told = TEXTS[request.param]
    fill(store)
    spoil(database_url, told)
    return told


@pytest.mark.parametrize(("width", "coloured"), [(40, False), (80, True), (200, False)])
def test_no_command_writes_anything_raw(
    omega: Omega,
    monkeypatch: pytest.MonkeyPatch,
    store: PostgresStore,
    text: str,
    *,
    width: int,
    coloured: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    if coloured:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    machines: list[Command] = [(DONE, ["cell", "show", name]) for name in store.snapshot().names]

    for code, words in COMMANDS + machines:
        ran = omega(*words)
        written = without_styles(ran.out + ran.err, live=coloured)

        assert (code, words) == (ran.code, words), ran.err
        assert [] == raw_in(written), words
        assert "Traceback" not in written
        assert written.strip()


def test_documents_keep_all_and_write_nothing_raw(
    omega: Omega, store: PostgresStore, text: str
) -> None:
    machines: list[Command] = [(DONE, ["cell", "show", name]) for name in store.snapshot().names]
    kept = {"jobs": False, "job": False, "status": False, "cell": False, "quota": False}

    for code, words in COMMANDS + machines:
        ran = omega(*words, "--json", "-")

        assert code == ran.code, ran.err
        assert ran.out.isascii()
        assert [] == raw_in(ran.out)
        assert [] == raw_in(ran.err)
        read = json.loads(ran.out)
        kept[str(words[0])] = kept.get(str(words[0]), False) or text in texts_in(read)

    assert {**kept, "db": True} == {**dict.fromkeys(kept, True), "db": True}


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts of a document."""
    match value:
        case str():
            yield value
        case dict():
            for name, part in value.items():
                yield name
                yield from texts_in(part)
        case list():
            for part in value:
                yield from texts_in(part)


def test_a_watched_status_writes_nothing_raw(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert text
    monkeypatch.setattr(status, "stop_on_signals", stop_after_a_look)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")

    ran = omega("status", "--watch")

    assert DONE == ran.code, ran.err
    assert "\x1b[?1049h" in ran.out
    assert [] == raw_in(without_styles(ran.out + ran.err, live=True))


def test_what_is_not_there_is_complained_of_printably(omega: Omega, text: str) -> None:
    near = text[:150] + "?"
    for words in (
        ["cell", "show", near],
        ["cell", "drain", "--where", f"{near}=x"],
        ["quota", "remove", "--tenant", near],
        ["scheduler", "run", near],
        ["node", "assign", near, "--all"],
        ["submit", near],
        ["cell", "load", near],
    ):
        ran = omega(*words)

        assert ran.code in (1, 2)
        assert [] == raw_in(ran.out + ran.err)
        assert "Traceback" not in ran.err


def test_a_doctor_writes_nothing_raw(omega: Omega, database_url: str, text: str) -> None:
    """Another session is idle in a transaction, under a hostile name and with a hostile query."""
    short = text.replace("\n", " ")[:60]
    name = short.encode("ascii", "ignore").decode()
    with psycopg.connect(database_url, application_name=name) as link:
        link.execute(sql.SQL("SELECT {}").format(sql.Literal(short)))
        for words in (["db", "doctor"], ["db", "doctor", "--json", "-"]):
            ran = omega(*words, "--open-for", "0")

            assert ran.code in (0, 1), ran.err
            assert [] == raw_in(ran.out + ran.err)
            assert "Traceback" not in ran.err
