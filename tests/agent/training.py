"""A training: it makes steps, reports them, and goes on from its checkpoint after SIGTERM.

`$GATE`, if it is set, names a file without which it makes only half of its steps.
"""

import os
import signal
import sys
from pathlib import Path

from omega import task

STEP_S = float(os.environ.get("STEP_S", "0"))
WANTED = int(os.environ["OMEGA_STEPS"])
CHECKPOINT = Path("checkpoint")


class Stopped(BaseException):
    """SIGTERM has come."""


def main() -> None:
    done = int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0
    gate = os.environ.get("GATE")
    with Path("starts").open("a") as starts:
        starts.write(f"{os.environ['OMEGA_MACHINE']} {done} {task.steps_done()}\n")
    task.report(done)  # the checkpoint may be newer than what is on record
    try:
        while done < WANTED:
            if gate is None or done < WANTED // 2 or Path(gate).exists():
                signal.sigtimedwait([signal.SIGUSR1], STEP_S)
                done += 1
                task.report(done)
            else:
                signal.sigtimedwait([signal.SIGUSR1], 0.02)
    except Stopped:
        save(done)
        sys.exit(1)
    save(done)


def save(done: int) -> None:
    """Write the checkpoint, or leave the one before."""
    aside = CHECKPOINT.with_suffix(".new")
    aside.write_text(str(done))
    aside.replace(CHECKPOINT)


def stop(*_: object) -> None:
    raise Stopped


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main()
