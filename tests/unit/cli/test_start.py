"""What is loaded to run a verb: each costs every user its time, at each call."""

import subprocess
import sys

import pytest

SLOW = ("sqlalchemy", "alembic", "scipy", "highspy", "matplotlib")
LOADED = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
SAY = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"


@pytest.mark.parametrize(
    "module",
    [
        *("omega.cli.job.listing", "omega.cli.status.command", "omega.cli.db.commands"),
        *("omega.cli.health.command", "omega.cli.node.run", "omega.cli.job.submit"),
    ],
)
def test_a_verb_loads_nothing_slow_that_it_does_not_use(module: str) -> None:
    command = [sys.executable, "-c", f"{LOADED}; {SAY}", module]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    assert {"omega", "psycopg"} <= set(loaded)
    assert [] == [name for name in SLOW if name in loaded]
