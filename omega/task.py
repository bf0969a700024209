"""For programs that run as tasks: say how far the work has come.

Goal     Let a training that an agent runs report its steps, in one line.
Promise  Outside a task nothing is done, so that the program runs anywhere. Only the standard
         library is imported. A program in another language writes the number into the file that
         `$OMEGA_STEP_FILE` names.
Source   docs/guide/agents.md; docs/decisions/0027-jobs-in-steps.md.
"""

import os
from pathlib import Path
from typing import Final

STEP_FILE: Final = "OMEGA_STEP_FILE"
STEPS_DONE: Final = "OMEGA_STEPS_DONE"


def report(step: int) -> None:
    """Say that so many steps are done since the job was submitted, over all of its starts.

    Raises OSError if the file cannot be written.
    """
    named = os.environ.get(STEP_FILE)
    if named is None:
        return
    path = Path(named)
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(f"{step}\n", encoding="ascii")
    aside.replace(path)


def steps_done() -> int:
    """Return how many steps were on record when this program was started; 0 outside a task.

    Its own checkpoint may be newer or older.
    """
    return int(os.environ.get(STEPS_DONE, "0"))
