"""Turns the garbage collector off while many long-lived objects are made.

Goal     Read hundreds of thousands of jobs in half the time: the collector would scan them again
         and again while they are made, and find nothing to free.
Promise  The collector is on afterwards if it was before, whatever is raised.
Source   Python's gc module.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect no garbage inside the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
