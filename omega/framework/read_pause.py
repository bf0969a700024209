"""How long a process waits from one read of the queue's lanes or of the view to the next.

Goal     Bound what such reads cost, and for how long a process may go by an old one.
Promise  The pause is at least the gap that is asked for. Where reads take long, it is longer, so
         that they take at most a twentieth of the time; but it is never longer than PAUSE_S_MAX
         for that: after one slow read, as through a failover, a process is not blind for minutes.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from typing import Final

PAUSE_PER_READ: Final = 20
"""The pause after a read is so many times as long as the read."""
PAUSE_S_MAX: Final = 2.0
"""The longest pause, unless a longer gap is asked for."""


def next_read_s(began_s: float, now_s: float, gap_s: float) -> float:
    """Return when to read again, after a read that took from `began_s` until now."""
    return now_s + max(gap_s, min(PAUSE_PER_READ * (now_s - began_s), PAUSE_S_MAX))
