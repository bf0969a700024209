"""Back-off: how long a job waits after an attempt that placed nothing.

Goal     Keep jobs that conflicted from trying again at the same moment.
Promise  A random time between half and the whole of a delay that doubles from `initial_ms` up to
         `longest_ms`.
Source   Jittered exponential back-off; growing delays as in the broker of Nomad.
"""

import numpy as np


def delay_ms(fruitless: int, *, initial_ms: int, longest_ms: int, rng: np.random.Generator) -> int:
    """Return the delay before the next attempt, after `fruitless` attempts in a row (from 1)."""
    assert fruitless >= 1
    assert 0 < initial_ms <= longest_ms
    ceiling = min(longest_ms, initial_ms * 2 ** min(fruitless - 1, 30))
    return int(rng.integers(ceiling // 2, ceiling, endpoint=True))
