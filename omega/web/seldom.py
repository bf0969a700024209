"""Lines for the log that a stranger may cause at will.

Goal     Let an operator learn what happens to his page, without a log that fills his disk.
Promise  The same sentence is said at once, and then at most once in AGAIN_S, with how often it was
         left out. Of more than SENTENCES_MAX sentences the oldest may be said again. Several
         threads may speak.
Source   omega/terminal/process_log.py, which treats failures alike.
"""

import threading
from collections.abc import Callable
from typing import Final

from omega.clock import Clock

AGAIN_S: Final = 60.0
SENTENCES_MAX: Final = 64
"""That are remembered; ours are fewer, and the server's complaints name what went wrong."""


class Seldom:
    """Says each sentence seldom."""

    def __init__(self, tell: Callable[[str], None], clock: Clock) -> None:
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._said: dict[str, tuple[float, int]] = {}
        """By sentence, when it was said last, and how often it was left out since."""

    def __call__(self, sentence: str) -> None:
        """Say a sentence, unless it was said a moment ago."""
        now_s = self._clock.now()
        with self._lock:
            said_s, left_out = self._said.get(sentence, (now_s - AGAIN_S, 0))
            if now_s - said_s < AGAIN_S:
                self._said[sentence] = said_s, left_out + 1
                return
            self._said.pop(sentence, None)
            self._said[sentence] = now_s, 0
            if len(self._said) > SENTENCES_MAX:
                del self._said[next(iter(self._said))]
        self._tell(f"{sentence} ({left_out:,} more since)" if left_out else sentence)
