"""`omega fairness` without the extra that computes fair shares."""

import subprocess
import sys

WITHOUT_SCIPY = """
import sys
from importlib import util
sys.modules["scipy"] = None  # every import of it fails
find_spec = util.find_spec
util.find_spec = lambda name: None if name == "scipy" else find_spec(name)
from omega.cli.fairness.command import command
from omega.errors import BadInput
try:
    command()
except BadInput as refused:
    print(refused)
"""


def test_without_the_extra_it_is_named() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_SCIPY], capture_output=True, text=True, check=False
    )

    assert ("", "fair shares need an extra: pip install 'omega-scheduler[fairness]'\n") == (
        ran.stderr,
        ran.stdout,
    )
