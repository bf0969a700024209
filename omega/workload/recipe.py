"""The generator that reproduces the job lists W1 and W2, byte for byte.

Goal     Run the acceptance figures of the open simulator without storing its job lists.
Promise  The output has the bytes of the two published lists: a test compares their sha256.
Source   The lists were drawn with Python's `random.Random`, so only this module uses it: numpy's
         Generator does not give that stream.
"""

import math
import random
from collections.abc import Iterator

from omega.workload.synthetic import JobClass, TwoClasses

COLUMNS = (
    "job_id",
    "workload",
    "submit_s",
    "tasks",
    "duration_s",
    "cpus_per_task",
    "mem_gb_per_task",
)
BATCH_SEED, BATCH_FIRST_ID = 1, 1
SERVICE_SEED, SERVICE_FIRST_ID = 2, 1_000_000
DECIMALS = 4


def job_list(laws: TwoClasses) -> str:
    """Return the job list of a workload as CSV: all batch jobs, then all service jobs."""
    lines = [
        ",".join(COLUMNS),
        *_rows("Batch", laws.batch, BATCH_FIRST_ID, laws.horizon_s, random.Random(BATCH_SEED)),
        *_rows(
            "Service", laws.service, SERVICE_FIRST_ID, laws.horizon_s, random.Random(SERVICE_SEED)
        ),
    ]
    return "\n".join(lines) + "\n"


def _rows(
    workload: str, jobs: JobClass, first_id: int, horizon_s: float, stream: random.Random
) -> Iterator[str]:
    """Yield one class; the order of the draws (gap, tasks, duration, gap ...) is the recipe."""
    shape = jobs.shapes[0]
    asks = f"{shape.cpu_milli / 1_000},{shape.memory_mib / 1_024}"
    number = first_id
    now_s = stream.expovariate(1 / jobs.gap_mean_s)
    while now_s < horizon_s:
        tasks = max(1, math.ceil(stream.expovariate(1 / jobs.tasks_mean)))
        duration_s = stream.expovariate(1 / jobs.duration_mean_s)
        submit_s = round(now_s, DECIMALS)
        yield f"{number},{workload},{submit_s},{tasks},{round(duration_s, DECIMALS)},{asks}"
        number += 1
        now_s += stream.expovariate(1 / jobs.gap_mean_s)
