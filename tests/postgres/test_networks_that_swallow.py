"""Packets that are dropped on the way to a server, or back, under load.

Goal     Show that processes do not wait for ever on connections that nothing tells them are dead,
         and that nothing acknowledged is lost or done twice.
Promise  The server and its clients are in network namespaces, and the kernel drops the packets. A
         cut lasts until every connection has been given up. What was acknowledged is kept in files
         outside of the database.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import pytest
from sqlalchemy import make_url

from omega.clock import RealClock
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell
from tests.fixtures.at_work import wait_until
from tests.fixtures.databases import folder_of_test
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.namespaces import Dropped, Namespace, a_namespace
from tests.fixtures.outside_record import Record
from tests.fixtures.recorded_cells import RecordedCell
from tests.fixtures.servers import DebianServer
from tests.fixtures.workers import workers

pytestmark = pytest.mark.postgres

MACHINES = 20
ANSWERS = 20
"""So many answers come before each cut."""
IMPATIENT = {
    "connect_timeout": "2",
    "keepalives_count": "2",
    "keepalives_idle": "1",
    "keepalives_interval": "1",
    "tcp_user_timeout": "2000",
}
"""Settings of a URL by which a connection is soon given up."""
SESSIONS = "SELECT client_port FROM pg_stat_activity WHERE application_name LIKE 'omega %'"
UNTIL_GIVEN_UP = "packets dropped until each connection was given up"
OF = "acknowledged, through networks that swallow"


@dataclass(frozen=True)
class FarCell:
    """A cell whose server is in a namespace."""

    cell: RecordedCell
    line: Namespace


@pytest.fixture
def line() -> Iterator[Namespace]:
    """The line to a namespace of its own."""
    with a_namespace() as line:
        yield line


@pytest.fixture
def url(line: Namespace, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[str]:
    """A server in the namespace, with empty tables."""
    server = DebianServer(line.far, line.within)
    if reason := server.missing():
        pytest.skip(reason)
    home = folder_of_test(pytestconfig, tmp_path)
    url = server.start(home)
    try:
        migrate(url)
        yield url
    finally:
        line.mend()
        server.stop(home)


@pytest.fixture
def far(url: str, line: Namespace, tmp_path: Path, dose: Dose) -> Iterator[FarCell]:
    """A cell at work across the line: by default settings in the long dose."""
    asked = make_url(url).update_query_dict(IMPATIENT if dose(short=1, long=0) else {})
    used = asked.render_as_string(hide_password=False)
    with closing(PostgresStore(used)) as store:
        store.add_machines(a_cell(MACHINES))
        with workers(used, tmp_path, submitters=1) as load:
            yield FarCell(RecordedCell(used, store, load), line)
            assert {0} == set(load.end().values())


def cut(line: Namespace, what: Dropped) -> None:
    """Drop such packets until every connection that there is has been given up."""
    before = line.connected()
    assert before
    line.drop(what)
    wait_until(lambda: not before & line.connected(), "all connections to be given up")
    line.mend()


def left_over(far: FarCell) -> set[object]:
    """Return the ports of the server's sessions that have no connection on this side any more."""
    sessions = {port for (port,) in far.cell.did(SESSIONS)}
    return sessions - {int(near.rpartition(":")[2], 16) for near in far.line.connected()}


def test_dropped_packets_lose_nothing(far: FarCell, dose: Dose, tally: Tallier) -> None:
    cell, record = far.cell, Record()
    cell.wait_for_answers(ANSWERS)
    for what in islice(cycle(Dropped), dose(short=3, long=30)):
        with tally(f"{UNTIL_GIVEN_UP}: {what.name.lower()}") as row:
            row.tried += 1
            cell.wait_for_answers(ANSWERS)
            cut(far.line, what)
            cell.wait_for_all(RealClock().now(), "a line mended", tally)
            with cell.load.paused():
                cell.settle()
                new = Record.of(cell.take())
                record.join(new)
                cell.assert_there(record, new, OF, tally)
            row.survived += 1
    # The server gives up the sessions of connections that were given up here.
    wait_until(lambda: not left_over(far), "no session to be left over")
