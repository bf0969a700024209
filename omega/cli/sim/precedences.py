"""Precedences that are drawn for a simulation's jobs: `--precedence-mix`.

Goal     Give the jobs of a list, which have none, the precedences of a cell with several classes of
         work, and let a sweep vary them.
Promise  One seed gives one draw. The jobs of a workload are drawn for by a generator of their own,
         so that neither other workloads' precedences nor any other draw depends on a mix.
Source   Omega (EuroSys 2013), section 3.4: one scale of precedence for all schedulers.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.errors import BadInput, did_you_mean
from omega.framework.rng import rng_for
from omega.limits import INT4_MAX
from omega.model.jobs import PRECEDENCE_GAP
from omega.terminal.options import read_pairs
from omega.workload.arrivals import Arrival

OPTION: Final = "--precedence-mix"
MIX_SHOWN: Final = "batch=0:0.7/10:0.3+service=100"
_WEIGHT: Final = re.compile(r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]{1,3})?")
_PRECEDENCE: Final = re.compile(r"-?[0-9]{1,10}")


@dataclass(frozen=True)
class Mix:
    """Precedences, and how often each is drawn."""

    precedences: tuple[int, ...]
    weights: tuple[float, ...]

    def draw(self, jobs: int, rng: np.random.Generator) -> list[int]:
        """Return a precedence for each of so many jobs."""
        weights = np.array(self.weights) / max(self.weights)  # their sum may be no number
        shares = weights / math.fsum(weights)
        drawn = rng.choice(np.array(self.precedences), size=jobs, p=shares)
        return [int(one) for one in drawn.tolist()]


def read_mixes(text: str | None, workloads: Sequence[str]) -> dict[str, Mix]:
    """Read `WORKLOAD=PRECEDENCE:WEIGHT/...+WORKLOAD=...`; return the mixes by workload.

    A weight that is not given is 1. Raises BadInput for a workload that no job asks for, for one
    that is named twice, and for what is no mix.
    """
    mixes: dict[str, Mix] = {}
    for workload, written in read_pairs(text.split("+") if text is not None else (), option=OPTION):
        if workload not in workloads:
            guess = did_you_mean(workload, workloads)
            raise BadInput(f"no jobs ask for {workload!r}{guess}", field=OPTION)
        if workload in mixes:
            raise BadInput(f"{workload} is named twice", field=OPTION)
        mixes[workload] = _read_mix(written)
    return mixes


def with_precedences(
    arrivals: Iterable[Arrival], mixes: Mapping[str, Mix], seed: int
) -> tuple[Arrival, ...]:
    """Return the jobs, those of workloads with a mix with precedences drawn from it."""
    jobs = tuple(arrivals)
    drawn = {}
    for workload, mix in mixes.items():
        number = sum(one.spec.scheduler == workload for one in jobs)
        drawn[workload] = iter(mix.draw(number, rng_for(seed, "precedences", workload)))
    return tuple(
        replace(one, spec=replace(one.spec, precedence=next(drawn[one.spec.scheduler])))
        if one.spec.scheduler in drawn
        else one
        for one in jobs
    )


def refuse_evictions(
    *, mix: str | None, gap: int, requeue_start: bool, settings: Sequence[str]
) -> None:
    """Raise BadInput for an option that has no effect where nobody is evicted."""
    names = [one.partition("=")[0].rpartition(":")[2] for one in settings]
    useless = {
        OPTION: mix is not None,
        "--precedence-gap": gap != PRECEDENCE_GAP,
        "--requeue-start": requeue_start,
        "--set": "preempts" in names,
    }
    for option in (name for name, is_given in useless.items() if is_given):
        raise BadInput(
            "without --queue live jobs are served in order of arrival and nobody is evicted",
            field=option,
        )


def _read_mix(written: str) -> Mix:
    read: dict[int, float] = {}
    for part in written.split("/"):
        precedence, colon, weight = part.partition(":")
        if not _PRECEDENCE.fullmatch(precedence):
            raise BadInput(
                f"{part!r} does not read as PRECEDENCE:WEIGHT, as in {MIX_SHOWN}", field=OPTION
            )
        if not -INT4_MAX <= int(precedence) <= INT4_MAX:
            raise BadInput(f"a precedence is -{INT4_MAX:,} to {INT4_MAX:,}", field=OPTION)
        if int(precedence) in read:
            raise BadInput(f"precedence {int(precedence)} is named twice", field=OPTION)
        read[int(precedence)] = _read_weight(weight, part) if colon else 1.0
    return Mix(tuple(read), tuple(read.values()))


def _read_weight(written: str, part: str) -> float:
    is_number = _WEIGHT.fullmatch(written) is not None
    weight = float(written) if is_number else math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise BadInput(f"the weight in {part!r} is no number above 0", field=OPTION)
    return weight
