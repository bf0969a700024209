"""ParSync's formula for conflicts, and the same by drawing.

N schedulers place K tasks each, on distinct slots drawn uniformly from S that are free; of those
who drew one slot, the first gets it.
"""

import numpy as np


def expected(schedulers: int, slots: int, tasks: int) -> float:
    """Return how many of all claims conflict: N K - S + S (1 - K / S)^N."""
    untouched = (1 - tasks / slots) ** schedulers
    return schedulers * tasks - slots + slots * untouched


def drawn(
    schedulers: int, slots: int, tasks: int, *, rounds: int, rng: np.random.Generator
) -> float:
    """Return how many conflict on average over some rounds."""
    touched = np.zeros(rounds)
    for round_ in range(rounds):
        order = rng.random((schedulers, slots)).argpartition(tasks, axis=1)
        touched[round_] = len(np.unique(order[:, :tasks]))
    return float(schedulers * tasks - touched.mean())
