"""Which trace a folder holds.

Goal     Let a user name a folder and nothing else.
Promise  The one loader whose files are there; else BadInput lists what each looks for.
Source   docs/decisions/0012-workloads.md.
"""

import os
from pathlib import Path

from omega.errors import BadInput
from omega.workload.traces.google_2011 import GOOGLE_2011
from omega.workload.traces.loader import TraceLoader
from omega.workload.traces.omega_sim import OMEGA_SIM
from omega.workload.traces.openb import OPENB

LOADERS = {loader.name: loader for loader in (OPENB, GOOGLE_2011, OMEGA_SIM)}
"""Every trace that can be read; a new one is one more entry."""


def detect(folder: Path) -> TraceLoader:
    """Return the loader of the trace in this folder. Raises BadInput if there is none."""
    if not os.path.isdir(folder):  # False for a name that is too long
        raise BadInput("this is no folder", file=str(folder))
    for loader in LOADERS.values():
        if loader.recognises(folder):
            return loader
    looked_for = "; ".join(f"for {loader.name} {loader.wants}" for loader in LOADERS.values())
    raise BadInput(
        f"no known trace is in this folder (looked {looked_for}, plain or .gz)", file=str(folder)
    )
