"""Job lists of the paper's open simulator, and the cells they are meant for.

Goal     Read the acceptance workloads W1 and W2, or any job list in that format.
Promise  A row is a job of one task group, and ids are distinct. A core is 1000 of `cpu_milli`, a
         GB is 1024 MiB; times are kept to the millisecond for durations, exactly for submissions.
Source   docs/papers/omega.md; the format's columns are in `omega.workload.recipe`.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.jobs import JobSpec, TaskGroup
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Arrival, Workload
from omega.workload.recipe import COLUMNS
from omega.workload.synthetic import W1, W2, Shape, scattered, uniform_machines
from omega.workload.traces.columns import read_table
from omega.workload.traces.loader import Tables, TraceLoader

SCHEDULER_BY_WORKLOAD = {"Batch": BATCH, "Service": SERVICE}
CELLS = {"W1": W1, "W2": W2}
SECONDS_MAX = 1e9
CPU_MILLI_PER_CORE = 1_000
MIB_PER_GB = 1_024
CPUS_MAX = LIMITS.amount_max // CPU_MILLI_PER_CORE
GB_MAX = LIMITS.amount_max // MIB_PER_GB
"""Of one task, or of one machine."""


def read_job_list(path: Path) -> tuple[Arrival, ...]:
    """Return the jobs of a list, plain or gzipped, by submission; on a tie, in the list's order.

    Raises BadInput for a malformed file.
    """
    table = read_table(path, COLUMNS)
    identity = table.distinct("job_id")
    workload = table.words("workload", allowed=SCHEDULER_BY_WORKLOAD)
    submit_s = table.numbers("submit_s", highest=SECONDS_MAX).tolist()
    tasks = table.integers("tasks", lowest=1, highest=LIMITS.tasks_per_job_max).tolist()
    duration_s = table.numbers("duration_s", highest=SECONDS_MAX)
    durations_s = duration_s.tolist()
    cpus = table.numbers("cpus_per_task", highest=CPUS_MAX)
    memory_gb = table.numbers("mem_gb_per_task", highest=GB_MAX)
    duration_ms = np.rint(duration_s * MS_PER_S).astype(np.int64).tolist()
    cpu_milli = np.rint(cpus * CPU_MILLI_PER_CORE).astype(np.int64).tolist()
    memory_mib = np.rint(memory_gb * MIB_PER_GB).astype(np.int64).tolist()
    arrivals = (
        Arrival(
            submit_s[row],
            JobSpec(
                name=f"{workload[row].lower()}-{identity[row]}"[: LIMITS.name_length_max],
                scheduler=SCHEDULER_BY_WORKLOAD[workload[row]],
                groups=(
                    TaskGroup(
                        tasks=tasks[row],
                        cpu_milli=cpu_milli[row],
                        memory_mib=memory_mib[row],
                        duration_ms=duration_ms[row],
                    ),
                ),
            ),
            (durations_s[row],),
        )
        for row in range(len(table))
    )
    return tuple(sorted(arrivals, key=lambda arrival: arrival.submit_s))


def uniform_workload(
    arrivals: tuple[Arrival, ...],
    *,
    machines: int,
    cpus: float,
    memory_gib: float,
    prefill_tasks: int,
    rng: np.random.Generator,
) -> Workload:
    """Return the jobs on a uniform cell with tasks of 1 core and 2 GiB on it for the whole run.

    Raises BadInput if the machines do not hold so many tasks.
    """
    cell = uniform_machines(machines, cpus=cpus, memory_gib=memory_gib)
    try:
        prefill = scattered(cell, prefill_tasks, Shape(), rng)
    except ValueError as error:
        raise BadInput(str(error)) from None
    return Workload(
        name="omega-sim",
        machines=cell,
        prefill=prefill,
        arrivals=arrivals,
        counts={
            "machines": machines,
            "prefill_tasks": prefill_tasks,
            "jobs": len(arrivals),
            "tasks": sum(arrival.spec.tasks for arrival in arrivals),
        },
    )


def _read(tables: Tables, options: Mapping[str, str], rng: np.random.Generator) -> Workload:
    wanted = options["jobs"]
    if wanted not in tables:
        there = next(iter(tables.values()))
        raise BadInput(f"the job list {wanted} is not beside this one", file=str(there))
    cell = CELLS[wanted]
    return uniform_workload(
        read_job_list(tables[wanted]),
        machines=cell.machines,
        cpus=cell.cpus,
        memory_gib=cell.memory_gib,
        prefill_tasks=cell.prefill_tasks,
        rng=rng,
    )


OMEGA_SIM = TraceLoader(
    name="omega-sim",
    tables={name: (f"{name}.csv",) for name in CELLS},
    alternatives=frozenset(CELLS),
    options={"jobs": ("W2", "W1")},
    read=_read,
)
