"""openb: nodes and pods of a production GPU cluster, as published with the trace.

Goal     Read the pods for the fill test of GPU sharing, or for a replay at their recorded times.
Promise  A pod is a job of one task, in order of creation. One that asks for GPUs goes to ml-gpu;
         of the others the latency-sensitive go to service, the rest to batch.
Source   Alibaba cluster-trace-gpu-v2023 (Weng et al., USENIX ATC 2023): nodes and pods, as CSV.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Amounts, Ids, Score
from omega.model.jobs import Constraint, JobSpec, Operator, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES, KINDS, Kind
from omega.workload.arrivals import (
    BATCH,
    ML_GPU,
    MS_PER_S,
    SERVICE,
    Arrival,
    Prefill,
    Workload,
)
from omega.workload.traces.columns import Table, read_table
from omega.workload.traces.loader import Tables, TraceLoader

GPU_MODEL = "gpu_model"
SCHEDULER_BY_QOS = {
    "LS": SERVICE,
    "Guaranteed": SERVICE,
    "Burstable": BATCH,
    "BE": BATCH,
}
SECONDS_MAX = 1e9


def _read(
    tables: Tables,
    options: Mapping[str, str],
    rng: np.random.Generator,
) -> Workload:
    if options["pods"] not in tables:
        there = "/".join(sorted(tables.keys() - {"nodes"}))
        raise BadInput(
            f"there is no list of pods {options['pods']} beside it (there is: {there})",
            file=str(tables["nodes"]),
        )
    machines = _machines(tables)
    arrivals = _arrivals(
        read_table(
            tables[options["pods"]],
            [
                "name",
                "cpu_milli",
                "memory_mib",
                "num_gpu",
                "gpu_milli",
                "gpu_spec",
                "qos",
                "creation_time",
                "deletion_time",
                "scheduled_time",
            ],
        ),
        replay=options["times"] == "replay",
    )
    note = (
        "each pod is submitted and ends as recorded"
        if options["times"] == "replay"
        else "all pods are submitted at once, in order of creation, and run on"
    )
    return Workload(
        name="openb",
        machines=machines,
        prefill=Prefill.none(),
        arrivals=arrivals,
        counts={"machines": len(machines), "pods": len(arrivals)},
        notes=(note,),
    )


def _machines(tables: Tables) -> Machines:
    table = read_table(tables["nodes"], ["sn", "cpu_milli", "memory_mib", "gpu", "model"])
    gpus = table.integers("gpu", highest=DEVICES_MAX)
    models = table.words("model", may_miss=True)
    names = table.distinct("sn")
    capacity = _cpu_and_memory(table)
    capacity[:, DEVICES] = (np.arange(DEVICES_MAX) < gpus[:, None]) * GPU_SLICES
    return Machines(tuple(names), capacity, {GPU_MODEL: [model or None for model in models]})


def _arrivals(table: Table, *, replay: bool) -> tuple[Arrival, ...]:
    amounts = _cpu_and_memory(table)
    gpus, slices = _gpus(table)
    created_s = table.numbers("creation_time", highest=SECONDS_MAX)
    duration_ms = _durations(table, created_s).tolist()
    order = np.argsort(created_s, kind="stable")
    names, qos = table.words("name"), table.words("qos", allowed=SCHEDULER_BY_QOS)
    specs = table.words("gpu_spec", may_miss=True)
    start_s = float(created_s.min(initial=SECONDS_MAX)) if replay else 0.0

    def arrival(at: int) -> Arrival:
        group = TaskGroup(
            tasks=1,
            cpu_milli=int(amounts[at, Kind.CPU_MILLI]),
            memory_mib=int(amounts[at, Kind.MEMORY_MIB]),
            gpus=int(gpus[at]),
            gpu_slices=int(slices[at]),
            duration_ms=duration_ms[at] if replay else None,
            constraints=tuple(_models_allowed(specs[at])) if gpus[at] else (),
        )
        kind = ML_GPU if gpus[at] else SCHEDULER_BY_QOS[qos[at]]
        submit_s = float(created_s[at]) - start_s if replay else 0.0
        return Arrival(submit_s, JobSpec(name=names[at], scheduler=kind, groups=(group,)))

    return tuple(arrival(at) for at in order.tolist())


def _cpu_and_memory(table: Table) -> Amounts:
    amounts = np.zeros((len(table), KINDS), dtype=np.int64)
    amounts[:, Kind.CPU_MILLI] = table.integers("cpu_milli")
    amounts[:, Kind.MEMORY_MIB] = table.integers("memory_mib")
    return amounts


def _gpus(table: Table) -> tuple[Ids, Ids]:
    """Return each pod's number of GPUs, and the slices that it takes of each."""
    gpus = table.integers("num_gpu", highest=DEVICES_MAX)
    slices = table.integers("gpu_milli", highest=GPU_SLICES)
    for row in np.flatnonzero((gpus > 0) & (slices == 0)).tolist():
        raise table.reject(row, "gpu_milli", "a pod with GPUs takes some of each")
    for row in np.flatnonzero((gpus > 1) & (slices < GPU_SLICES)).tolist():
        raise table.reject(row, "gpu_milli", "only a single GPU can be shared")
    return gpus, np.where(gpus > 0, slices, GPU_SLICES)


def _durations(table: Table, created_s: Score) -> Ids:
    """Return how long each pod ran, or, if it was never scheduled, how long it existed."""
    deleted_s = table.numbers("deletion_time", highest=SECONDS_MAX)
    scheduled_s = table.numbers("scheduled_time", highest=SECONDS_MAX, empty=np.nan)
    began_s = np.where(np.isnan(scheduled_s), created_s, scheduled_s)
    for row in np.flatnonzero(deleted_s < began_s).tolist():
        raise table.reject(row, "deletion_time", "the pod was deleted before it began")
    return np.rint((deleted_s - began_s) * MS_PER_S).astype(np.int64)


def _models_allowed(spec: str) -> Iterator[Constraint]:
    models = tuple(dict.fromkeys(model for model in spec.split("|") if model))
    if models:
        yield Constraint(GPU_MODEL, Operator.IN, models)


OPENB = TraceLoader(
    name="openb",
    tables={
        "nodes": ("nodes.csv", "openb_node_list_all_node.csv"),
        "default": ("pods_default.csv", "openb_pod_list_default.csv"),
        "gpuspec33": ("pods_gpuspec33.csv", "openb_pod_list_gpuspec33.csv"),
    },
    alternatives=frozenset({"default", "gpuspec33"}),
    options={"pods": ("default", "gpuspec33"), "times": ("fill", "replay")},
    read=_read,
)
