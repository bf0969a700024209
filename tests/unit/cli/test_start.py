"""What is loaded to run a verb: each costs every user its time, at each call."""

import subprocess
import sys

import pytest

SLOW = ("sqlalchemy", "alembic", "scipy", "highspy", "matplotlib")
LOADED = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
SAY = "print(*sorted(sys.modules))"


def loaded_with(*modules: str) -> set[str]:
    """Return the modules that a process has loaded when it has loaded these."""
    command = [sys.executable, "-c", f"{LOADED}; {SAY}", *modules]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        *("omega.cli.job.listing", "omega.cli.status.command", "omega.cli.db.commands"),
        *("omega.cli.health.command", "omega.cli.node.run", "omega.cli.job.submit"),
    ],
)
def test_a_verb_loads_nothing_slow_that_it_does_not_use(module: str) -> None:
    loaded = loaded_with(module)

    assert {"omega", "psycopg"} <= loaded
    assert [] == [name for name in SLOW if name in loaded]


def test_verbs_that_only_name_kinds_load_no_scheduler() -> None:
    verbs = ("job.run", "job.show", "job.submit", "top.command")
    loaded = loaded_with(*(f"omega.cli.{verb}" for verb in verbs))

    assert "omega.framework.kinds" in loaded
    assert not {"omega.framework.scheduler", "schedulers"} & loaded
