"""Pipelines named on a command line.

Goal     Refuse the number of a pipeline that is not there in one way.
Promise  Reads, and changes nothing.
Source   omega.store.pipelines.
"""

from omega.errors import OmegaError
from omega.store.pipelines import PipelineReader, PipelineStatus


def named_pipeline(store: PipelineReader, number: int) -> PipelineStatus:
    """Return a pipeline by its number. Raises OmegaError if there is none."""
    found = store.pipeline(number) if 0 < number < 2**63 else None
    if found is None:
        raise OmegaError(f"there is no pipeline {number}; see: omega pipeline status")
    return found
