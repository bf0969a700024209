"""How programs ended, in words.

Goal     Say in half a sentence why a task is over.
Promise  Every cause has its words; a code or a signal is named where there is one.
Source   omega.model.exits.
"""

import signal

from omega.model.exits import Exit, ExitCause


def exit_words(ended: Exit) -> str:
    """Return how a program ended, as the end of a sentence about its task."""
    match ended.cause:
        case ExitCause.EXITED:
            said = "succeeded" if ended.is_success else f"exited with code {ended.code}"
        case ExitCause.SIGNALLED:
            said = f"was killed by {_name_of(ended.signal)}"
        case ExitCause.TIMEOUT:
            said = "ran longer than its timeout"
        case ExitCause.OUT_OF_MEMORY:
            said = "used more memory than it asked for"
        case ExitCause.NOT_STARTED:
            said = "could not be started"
        case ExitCause.LOST:
            said = "was lost with its machine"
    return f"{said}: {ended.detail}" if ended.detail else said


def _name_of(number: int | None) -> str:
    if number is None:
        return "a signal"
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
