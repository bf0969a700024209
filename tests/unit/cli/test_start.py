"""What is loaded to run a verb: each costs every user its time, at each call."""

import subprocess
import sys

SLOW = ("sqlalchemy", "alembic", "scipy", "highspy", "matplotlib")
LOADED = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
COMMAND_LINE = """
import gc, sys
from omega.cli.main import main
sys.argv = ["omega", "--version"]
try:
    main()
except SystemExit:
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""
SAY = "print(*sorted(sys.modules))"


def loaded_with(*modules: str) -> set[str]:
    """Return the modules that a process has loaded when it has loaded these."""
    command = [sys.executable, "-c", f"{LOADED}; {SAY}", *modules]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_verbs_load_nothing_slow_that_they_do_not_use() -> None:
    verbs = ("job.listing", "job.submit", "status.command", "db.commands", "health.command")
    loaded = loaded_with(*(f"omega.cli.{verb}" for verb in (*verbs, "node.run")))

    assert {"omega", "psycopg"} <= loaded
    assert [] == [name for name in SLOW if name in loaded]


def test_verbs_that_only_name_kinds_load_no_scheduler() -> None:
    verbs = ("job.run", "job.show", "job.submit", "top.command")
    loaded = loaded_with(*(f"omega.cli.{verb}" for verb in verbs))

    assert "omega.framework.kinds" in loaded
    assert not {"omega.framework.scheduler", "schedulers"} & loaded


def test_running_a_command_loads_no_progress_bars() -> None:
    loaded = loaded_with("omega.cli.main", "omega.cli.job.run")

    assert "rich.console" in loaded
    assert "rich.progress" not in loaded


def test_what_a_command_line_has_loaded_is_left_out_of_garbage_collection() -> None:
    command = [sys.executable, "-c", COMMAND_LINE]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert said.splitlines()[-1] == "True True"
