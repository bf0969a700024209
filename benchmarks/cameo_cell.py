"""One run of pipelines with tight and lax targets on a virtual cell, in one order of the queue.

Goal     The same pipelines under each order, with live schedulers in virtual time.
Promise  The same parameters give the same run. What a token costs is ours: a millisecond to read,
         twenty to write, so that stages take seconds.
Source   Xu et al., Cameo (NSDI 2021); docs/decisions/0059-start-deadlines.md.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.llm_requests import Requests, read_requests
from omega.config import Settings
from omega.framework.registry import configured
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.pipelines import PipelineSpec, PipelineStage, TokenRate
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.virtual_cell import VirtualCell
from omega.store.pipelines import PipelineStatus
from omega.testing.builders import a_cell

READ_MS: Final = 1.0
WRITE_MS: Final = 20.0
TIGHT, LAX = "code", "conv"
WITHIN_MS: Final[Mapping[str, int]] = {TIGHT: 15_000, LAX: 600_000}
TIGHT_LOAD: Final = 0.15
"""The part of the cell that tight pipelines need; the others need the rest of the load."""
CORES: Final = 4
WARM_UP: Final = 0.1
"""Of the time, at the beginning; pipelines that are submitted then are not measured."""
SPIKE_FROM: Final = 0.4
SPIKE_S: Final = 10.0
SPIKE_TIMES: Final = 10
RATES: Final[Mapping[str, int]] = {"one": 1, "two": 2, "five": 5}
"""Tokens a second of the templates that always have work."""
MS_PER_S: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Play:
    """The parameters of a run."""

    trace: Path
    order: str
    load: float = 0.8
    slots: int = 16
    horizon_s: float = 300.0
    replicas: int = 2
    sigma: float = 0.0
    """Of the logarithm of how long a stage takes, around what its tokens cost."""
    spike: bool = False
    alone: bool = False
    """Whether there are tight pipelines only."""
    seed: int = 0


def play(it: Play) -> dict[str, Any]:
    """Run it; return measures of both groups."""
    cell = _cell(it)
    rng = np.random.default_rng([it.seed, 1])
    for at_s, spec in _arrivals(it, rng):
        cell.when_jobs_arrive(at_s, partial(cell.store.submit_pipelines, [spec]))
    cell.run(2 * it.horizon_s)
    cell.check()
    found = cell.store.pipelines(pipelines_max=10**9)
    spike_ms = round(SPIKE_FROM * it.horizon_s * MS_PER_S)
    return {
        **{group: _measures(it, group, found) for group in (TIGHT, LAX)},
        "stages": sum(len(one.stages) for one in found),
        "recover_s": _recovery_s(found, spike_ms) if it.spike else None,
    }


def play_tokens(it: Play) -> dict[str, Any]:
    """Have three templates submit twice what they have tokens for; return how much each got."""
    cell = _cell(it)
    for second in range(int(it.horizon_s)):
        for name, rate in RATES.items():
            spec = PipelineSpec(
                name=name,
                within_ms=WITHIN_MS[LAX],
                tokens=TokenRate(rate, MS_PER_S),
                stages=(PipelineStage("only", _job(name, MS_PER_S)),),
            )
            cell.when_jobs_arrive(
                float(second), partial(cell.store.submit_pipelines, [spec] * 2 * rate)
            )
    cell.run(it.horizon_s)
    cell.check()
    found = cell.store.pipelines(pipelines_max=10**9)
    done = dict.fromkeys(RATES, 0)
    for one in found:
        done[one.name] += one.finished_ms is not None
    whole, rates = sum(done.values()), sum(RATES.values())
    shares = {name: done[name] / whole * rates / rate for name, rate in RATES.items()}
    return {"done": done, "error": max(abs(share - 1) for share in shares.values())}


def _cell(it: Play) -> VirtualCell:
    # Jobs without room are tried again in their order also under fifo, and nobody waits long for
    # a look: what is compared is the order.
    settings = Settings.model_construct(losers_first=True, poll_interval_ms=50)
    machines = a_cell(it.slots // CORES, cpu_milli=CORES * 1_000)
    cell = VirtualCell(machines, seed=it.seed, settings=settings)
    nodes = VirtualNodes(lambda _: None, speedup=1.0)
    cell.live(nodes.life(threading.Event(), nothing_else))
    for replica in range(it.replicas):
        cell.schedule(configured("batch", {"order": it.order}), str(replica))
    return cell


@lru_cache(maxsize=4)
def _trace(folder: Path, service: str) -> Requests:
    return read_requests(folder, service)


def _arrivals(it: Play, rng: np.random.Generator) -> Iterator[tuple[float, PipelineSpec]]:
    """Yield the pipelines of both groups with the times of their submission."""
    loads = {TIGHT: TIGHT_LOAD, LAX: 0.0 if it.alone else it.load - TIGHT_LOAD}
    for group, load in loads.items():
        requests = _trace(it.trace, group)
        first = int(rng.integers(len(requests.arrival_s)))
        cost_s = (READ_MS * requests.context + WRITE_MS * requests.generated) / MS_PER_S
        wanted_s = load * it.slots * it.horizon_s
        if wanted_s <= 0:
            continue
        around = np.tile(np.roll(cost_s, -first), 1 + int(wanted_s / cost_s.sum()))
        count = 1 + int(np.searchsorted(np.cumsum(around), wanted_s))
        window = requests.window(first, count)
        times = window.arrival_s * (it.horizon_s / max(window.arrival_s[-1], 1e-9))
        if it.spike and group == LAX:
            window, times = _with_spike(it, window, times, requests, rng)
        noise = np.exp(rng.normal(-(it.sigma**2) / 2, it.sigma, (2, len(times))))
        for n, at_s in enumerate(times.tolist()):
            units = int(window.context[n]), int(window.generated[n])
            took = READ_MS * units[0] * noise[0, n], WRITE_MS * units[1] * noise[1, n]
            yield at_s, _pipeline(group, units, (max(1, round(took[0])), max(1, round(took[1]))))


def _with_spike(
    it: Play,
    window: Requests,
    times: np.ndarray[Any, np.dtype[np.float64]],
    requests: Requests,
    rng: np.random.Generator,
) -> tuple[Requests, np.ndarray[Any, np.dtype[np.float64]]]:
    """Add requests, so that for a while ten times as many come."""
    more = round((SPIKE_TIMES - 1) * SPIKE_S * len(times) / it.horizon_s)
    extra = requests.window(int(rng.integers(len(requests.arrival_s))), max(1, more))
    began_s = SPIKE_FROM * it.horizon_s
    added = began_s + SPIKE_S * np.sort(rng.random(len(extra.arrival_s)))
    return (
        Requests(
            np.concatenate((window.arrival_s, extra.arrival_s)),
            np.concatenate((window.context, extra.context)),
            np.concatenate((window.generated, extra.generated)),
        ),
        np.concatenate((times, added)),
    )


def _pipeline(group: str, units: tuple[int, int], took_ms: tuple[int, int]) -> PipelineSpec:
    read = PipelineStage("prefill", _job(f"{group}.prefill", took_ms[0]), units=units[0])
    write = PipelineStage("decode", _job(f"{group}.decode", took_ms[1]), ("prefill",), units[1])
    return PipelineSpec(name=group, within_ms=WITHIN_MS[group], stages=(read, write))


def _job(name: str, duration_ms: int) -> JobSpec:
    group = TaskGroup(tasks=1, cpu_milli=1_000, duration_ms=duration_ms)
    return JobSpec(name=name, scheduler="batch", groups=(group,))


def _measures(it: Play, group: str, found: list[PipelineStatus]) -> dict[str, Any]:
    """Return the response times of a group, and how many kept their target.

    What has not ended counts as ending at the end of the run.
    """
    began_ms = WARM_UP * it.horizon_s * MS_PER_S
    end_ms = round(2 * it.horizon_s * MS_PER_S)
    mine = [one for one in found if one.name == group and one.submitted_ms >= began_ms]
    if not mine:
        return {"pipelines": 0, "p50_s": None, "p99_s": None, "success": None}
    took = np.array([(one.finished_ms or end_ms) - one.submitted_ms for one in mine])
    return {
        "pipelines": len(mine),
        "p50_s": round(float(np.quantile(took, 0.5)) / MS_PER_S, 3),
        "p99_s": round(float(np.quantile(took, 0.99)) / MS_PER_S, 3),
        "success": round(float(np.mean(took <= WITHIN_MS[group])), 4),
    }


def _recovery_s(found: list[PipelineStatus], spike_ms: int) -> float:
    """Return how long after the spike began the last tight pipeline missed its target."""
    late = [
        one.submitted_ms - spike_ms
        for one in found
        if one.name == TIGHT
        and one.submitted_ms >= spike_ms
        and (one.finished_ms is None or one.finished_ms > one.target_ms)
    ]
    return max(late, default=0) / MS_PER_S
