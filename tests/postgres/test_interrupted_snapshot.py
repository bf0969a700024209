"""A snapshot that is ended by a signal while it writes leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.steps import add_a_cell

STOPS_HALFWAY = """
import signal, sys
from omega.store.saved import writing

whole = writing.lines_of

def half(cell):
    yield next(whole(cell))
    print("writing", flush=True)
    while True:
        signal.pause()

writing.lines_of = half
from omega.cli.main import main
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
main(sys.argv[1:])
"""
"""The command, in a process that writes the first line and then waits for its end."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("before", [None, b"an older one"])
def test_nothing_is_left_of_a_snapshot_that_a_signal_ended(
    store: PostgresStore, database_url: str, tmp_path: Path, number: int, before: bytes | None
) -> None:
    add_a_cell(store, 3)
    file = tmp_path / "cell.snapshot"
    if before is not None:
        file.write_bytes(before)
    with subprocess.Popen(
        [sys.executable, "-c", STOPS_HALFWAY, "snapshot", str(file)],
        env={**os.environ, "OMEGA_DATABASE_URL": database_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "writing\n" == process.stdout.readline()
        there = sorted(tmp_path.iterdir())
        process.send_signal(number)
        _, said = process.communicate(timeout=60)

    assert [file.name] != [path.name for path in there], "a part was there"
    assert (130, "omega: interrupted") == (process.returncode, said.strip())
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert ({} if before is None else {file.name: before}) == left
