"""What a machine has, as its agent offers it to the cell.

Goal     Find cores, memory, disk and GPUs without asking the operator.
Promise  What is reserved is left out; nothing is ever negative. GPUs are found only if
         nvidia-ml-py is installed (the extra `gpu`) and a driver answers.
Source   psutil; NVML by nvidia-ml-py.
"""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from omega.limits import LIMITS
from omega.model.arrays import Amounts
from omega.model.resources import DEVICES_MAX, machine_capacity

MILLI: Final = 1_000
MIB: Final = 2**20


def found_capacity(folder: Path, reserved: Amounts) -> Amounts:
    """Return what this machine has, (kinds,), less what is reserved.

    CPU is what this process may use; disk is the file system of `folder`.
    """
    found = machine_capacity(
        cpu_milli=min(LIMITS.amount_max, len(os.sched_getaffinity(0)) * MILLI),
        memory_mib=min(LIMITS.amount_max, psutil.virtual_memory().total // MIB),
        disk_mib=min(LIMITS.amount_max, psutil.disk_usage(str(folder)).total // MIB),
        gpus=min(DEVICES_MAX, _gpus()),
    )
    return np.asarray(np.maximum(found - reserved, 0))


def _gpus() -> int:
    """Return the number of GPUs that NVML shows; 0 without its library or a driver."""
    if find_spec("pynvml") is None:
        return 0
    pynvml = import_module("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()
