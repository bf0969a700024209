"""Gangs of real processes that find each other by what their agents tell them."""

import sys
from pathlib import Path

import pytest

from tests.agent.conftest import CellAtWork

pytestmark = pytest.mark.postgres

ALL_REDUCE = Path(__file__).with_name("all_reduce.py")


def test_a_gang_adds_up_in_a_ring(at_work: CellAtWork) -> None:
    """On two machines, since one has no room for four."""
    at_work.start_agent("--address=127.0.0.2", name="m2")
    ran = at_work.run(
        *("--name=ring", "--tasks=4", "--gang", "--cpu=1", "--memory=100MiB"),
        *("--", sys.executable, str(ALL_REDUCE)),
    )

    assert (0, ["1111"] * 4) == (ran.returncode, ran.stdout.split()), ran.stderr


def test_launchers_of_mpi_read_where_it_runs(at_work: CellAtWork) -> None:
    ran = at_work.run(
        *("--tasks=2", "--gang", "--cpu=1", "--env=MASTER_PORT=1234"),
        *("--", "sh", "-c", 'echo $RANK $MASTER_ADDR:$MASTER_PORT $(cat "$OMEGA_HOSTFILE")'),
    )

    expected = [f"{rank} 127.0.0.1:1234 127.0.0.1 slots=2" for rank in (0, 1)]
    assert (0, expected) == (ran.returncode, sorted(ran.stdout.splitlines())), ran.stderr
