"""The chance of a command: one generator from the seed that the user gives.

Goal     Let the same command line draw the same work again.
Promise  A function of the seed alone.
Source   The house rule that chance comes in through the door; this is the command line's.
"""

import numpy as np


def rng_from_seed(seed: int) -> np.random.Generator:
    """Return the generator of a run."""
    return np.random.default_rng(seed)
