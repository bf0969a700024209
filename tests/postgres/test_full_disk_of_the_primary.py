"""The disk of the primary fills up under load, and is given room again.

Goal     Show that processes wait for the database through it, and that nothing acknowledged is lost
         or done twice, whether the server refuses statements or ends.
Promise  The disk is a file system of its own, in memory, and really full. What was acknowledged is
         kept in files outside of the database.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.at_work import wait_until
from tests.fixtures.databases import folder_of_test
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.outside_record import Record
from tests.fixtures.recorded_cells import RecordedCell
from tests.fixtures.servers import DebianServer
from tests.fixtures.workers import workers

pytestmark = pytest.mark.postgres

MACHINES = 20
ANSWERS = 20
"""So many answers come before the disk is full."""
DISK_MIB = 256
BLOCK = bytes(4_096)
OF = "acknowledged, while the disk of the primary filled up"


class SmallDisk:
    """A file system of its own at this path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rest = path / "rest"

    def fill(self) -> None:
        """Take all room that is left."""
        with self._rest.open("ab", buffering=0) as rest, suppress(OSError):
            while True:
                rest.write(BLOCK)

    def free(self) -> None:
        """Give back what was taken."""
        self._rest.unlink()


@contextmanager
def a_small_disk(path: Path) -> Iterator[SmallDisk]:
    """Have a disk of DISK_MIB; skip the test where none can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("it takes root to mount a file system")
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "omega", str(path)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def disk(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[SmallDisk]:
    """The disk of the server."""
    with a_small_disk(folder_of_test(pytestconfig, tmp_path)) as disk:
        yield disk


@pytest.fixture
def server() -> DebianServer:
    """The server that is on it."""
    server = DebianServer()
    if reason := server.missing():
        pytest.skip(reason)
    return server


@pytest.fixture
def cell(server: DebianServer, disk: SmallDisk, tmp_path: Path) -> Iterator[RecordedCell]:
    """A cell at work."""
    home = disk.path / "server"
    url = server.start(home)
    try:
        migrate(url)
        with closing(PostgresStore(url)) as store:
            store.add_machines(a_cell(MACHINES))
            with workers(url, tmp_path, submitters=1) as load:
                yield RecordedCell(url, store, load)
                assert {0} == set(load.end().values())
    finally:
        server.stop(home)


def test_a_full_disk_loses_nothing(
    cell: RecordedCell, server: DebianServer, disk: SmallDisk, dose: Dose, tally: Tallier
) -> None:
    record = Record()
    for _ in range(dose(short=1, long=20)):
        with tally("disk of the primary full under load, and room again") as row:
            row.tried += 1
            cell.wait_for_answers(ANSWERS)
            wait_until(lambda: is_refused(cell, disk), "the database to take no more")
            disk.free()
            server.start_if_ended(disk.path / "server")
            cell.wait_for_all(RealClock().now(), "room on the disk of the primary", tally)
            with cell.load.paused():
                cell.settle()
                new = Record.of(cell.take())
                record.join(new)
                cell.assert_there(record, new, OF, tally)
            row.survived += 1


def is_refused(cell: RecordedCell, disk: SmallDisk) -> bool:
    """Fill what has been given back since, and return whether a submission is refused."""
    disk.fill()
    try:
        cell.store.submit([a_spec(name="x" * 100, cpu_milli=1, duration_ms=1)] * 1_000)
    except StoreUnavailable:
        return True
    return False
