"""Models that live benchmarks train, and the accuracy of learnt rates."""

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

TYPES: Final = ("k80", "v100")
RATES: Final[Mapping[str, tuple[float, float]]] = {
    "slow to gain": (1_000.0, 1_400.0),
    "gains somewhat": (1_000.0, 2_500.0),
    "gains much": (1_000.0, 5_000.0),
    "gains most": (1_000.0, 10_000.0),
}
"""Steps/s of each model on a GPU of each type. The ratios spread as in Gavel's figure 1; steps are
so short that rounds of a second hold many."""
GANGS: Final = (1, 1, 1, 1, 1, 1, 2, 4)
"""GPUs of a job, drawn uniformly from these: mostly one."""


def rates() -> dict[str, dict[str, dict[str, float]]]:
    """Return a table in the layout of Gavel's; a gang is as fast as its GPUs together."""
    return {
        type_: {
            repr((model, gang)): {"null": rates[column] * gang}
            for model, rates in RATES.items()
            for gang in sorted(set(GANGS))
        }
        for column, type_ in enumerate(TYPES)
    }


def learnt_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the relative errors of the rates that the scheduler learnt from progress."""
    off = [
        abs(rate / (true * gpus) - 1)
        for model, gpus, rates in plan["seen"]
        for rate, true in zip(rates, RATES[model], strict=True)
        if rate is not None
    ]
    return {
        "rates": len(off),
        "median_off": round(median(off), 4) if off else None,
        "furthest_off": round(max(off), 4) if off else None,
    }
