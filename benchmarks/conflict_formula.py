"""ParSync's formula for conflicts, and a simulation of it.

N schedulers place K tasks each, on distinct slots drawn uniformly from S free ones. Of the
schedulers that drew the same slot, the first gets it.
"""

import numpy as np


def expected(schedulers: int, slots: int, tasks: int) -> float:
    """Return the expected number of conflicting claims: N K - S + S (1 - K / S)^N."""
    untouched = (1 - tasks / slots) ** schedulers
    return schedulers * tasks - slots + slots * untouched


def drawn(
    schedulers: int, slots: int, tasks: int, *, rounds: int, rng: np.random.Generator
) -> float:
    """Return the mean number of conflicting claims over random rounds."""
    touched = np.zeros(rounds)
    for round_ in range(rounds):
        order = rng.random((schedulers, slots)).argpartition(tasks, axis=1)
        touched[round_] = len(np.unique(order[:, :tasks]))
    return float(schedulers * tasks - touched.mean())
