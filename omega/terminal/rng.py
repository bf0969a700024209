"""The random generator of a command, from the seed that the user gives.

Goal     Let the same command line draw the same work again.
Promise  A function of the seed alone.
Source   The rule that random generators are passed in; the command line creates this one.
"""

import numpy as np


def rng_from_seed(seed: int) -> np.random.Generator:
    """Return the generator of a run."""
    return np.random.default_rng(seed)
