"""How the programs of a job's tasks ended, in words and as JSON types.

Goal     Tell a user what went wrong, and how often.
Promise  Every cause has words. A row has every field of an exit.
Source   omega/model/exits.py.
"""

import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from omega.model.exits import Exit, ExitCause, PastExit

WORDS: Final = {
    ExitCause.EXITED: "exited",
    ExitCause.SIGNALLED: "was killed",
    ExitCause.TIMEOUT: "ran longer than it may",
    ExitCause.UNHEALTHY: "failed its check",
    ExitCause.OUT_OF_MEMORY: "used more memory than it asked for",
    ExitCause.NOT_STARTED: "could not be started",
    ExitCause.LOST: "was lost",
}
SUCCEEDED: Final = "succeeded"
"""What exits are counted as that are successes."""


def in_words(it: Exit) -> str:
    """Return why a program ended: exited with code 3; was killed by SIGTERM."""
    words = WORDS[it.cause]
    if it.code is not None:
        return f"{words} with code {it.code}"
    if it.signal is None:
        return words
    killed = "" if it.cause is ExitCause.SIGNALLED else f", {WORDS[ExitCause.SIGNALLED]}"
    return f"{words}{killed} by {signal_name(it.signal)}"


def sentence_of(it: Exit) -> str:
    """Return why a program ended, with what its agent said of it."""
    return f"{in_words(it)}: {it.detail}" if it.detail else in_words(it)


def signal_name(number: int) -> str:
    """Return what people call a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def exit_counts(exits: Sequence[PastExit]) -> Mapping[str, int]:
    """Return how many exits there are of each cause, and of successes; the most first."""
    counted = Counter(SUCCEEDED if it.exit.is_success else it.exit.cause.value for it in exits)
    return dict(counted.most_common())


def exit_row(it: PastExit) -> dict[str, object]:
    """Return an exit as JSON types."""
    return {
        "task": it.task,
        "machine": it.machine,
        "started_ms": it.started_ms,
        "ended_ms": it.ended_ms,
        "cause": it.exit.cause.value,
        "code": it.exit.code,
        "signal": it.exit.signal,
        "restarts": it.exit.restarts,
        "detail": it.exit.detail,
    }
