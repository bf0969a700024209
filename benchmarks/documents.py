"""Reads documents of earlier runs, to show and draw them again without a new measurement."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from benchmarks.alternates import Alternates
from benchmarks.cameo import Cameo
from benchmarks.choosy import Choosy
from benchmarks.commit import Commit
from benchmarks.conflicts import Conflicts
from benchmarks.deltas import Deltas
from benchmarks.drains import Drains
from benchmarks.end_to_end import EndToEnd
from benchmarks.execution import Execution
from benchmarks.fragmentation import Fragmentation
from benchmarks.gavel import Gavel
from benchmarks.gavel_policies import GavelPolicies
from benchmarks.gpu_rounds import GpuRounds
from benchmarks.growth import Growth
from benchmarks.harness import Benchmark, Findings
from benchmarks.idle_agents import IdleAgents
from benchmarks.orders import Orders
from benchmarks.paper import FIGURES
from benchmarks.parsync import ParSync
from benchmarks.placement import Placement
from benchmarks.preemption import Preemption
from benchmarks.rules import Rules
from benchmarks.share_gap import ShareGap
from benchmarks.side_by_side import SideBySide
from benchmarks.sim_speed import SimSpeed
from benchmarks.swim import Swim
from benchmarks.sync import Sync
from benchmarks.trace_preemptions import TracePreemptions
from benchmarks.turns import Turns
from omega.errors import BadInput

KINDS: Final[tuple[type[Benchmark], ...]] = (
    Commit,
    Rules,
    Sync,
    Deltas,
    Drains,
    Turns,
    ParSync,
    Placement,
    Fragmentation,
    Conflicts,
    Alternates,
    Orders,
    Preemption,
    EndToEnd,
    Execution,
    Growth,
    IdleAgents,
    SimSpeed,
    ShareGap,
    SideBySide,
    Cameo,
    Choosy,
    Swim,
    GavelPolicies,
    GpuRounds,
    Gavel,
    TracePreemptions,
    *FIGURES,
)


def read(path: Path) -> tuple[Benchmark, Findings]:
    """Return the benchmark that wrote a document, and what it found.

    Raises BadInput for a file that is no such document, or that of another version.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        name, values = document["benchmark"], document["parameters"]
        summary = dict(document["summary"])
        finding = summary.pop("finding")
        benchmark = _benchmark(name, values)
        return benchmark, Findings(finding, document["rows"], summary, document["digest"])
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}", field="FILE") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} is no document of a benchmark of ours", field="FILE") from error


def _benchmark(name: str, values: Mapping[str, Any]) -> Benchmark:
    """Return the benchmark with its parameters; those that are not in documents have defaults."""
    (kind,) = (kind for kind in KINDS if kind.__module__.endswith(f".{name}"))
    if values.keys() != {one.name for one in fields(kind) if one.repr}:
        raise ValueError(f"{name} has other parameters")
    return kind(
        **{key: tuple(one) if isinstance(one, list) else one for key, one in values.items()}
    )
