"""Facts: what a process has done, as a JSON document that can be added to those of others.

Goal     Let one table, one page and one exporter show one process or a hundred.
Promise  `totals`, `window`, `waits` and `view_ages` are sums and merge by adding; `measures` are
         derived from them, by the same function for one process and for many. Values that another
         program or another version reports in another form are ignored.
Source   Omega (EuroSys 2013), section 4: conflict fraction, busyness, job wait time.
"""

from collections.abc import Mapping
from typing import Any

from omega.metrics.histogram import is_bucket, quantile_s

Facts = dict[str, Any]
"""A JSON object of numbers, and of objects of numbers."""

NOTHING: Facts = {
    "elapsed_s": 0.0,
    "process_s": 0.0,
    "window_s": 0.0,
    "totals": {},
    "window": {},
    "waits": {},
    "view_ages": {},
}
_LONGEST = ("elapsed_s", "window_s")
"""Times that merge by their maximum, because processes run at the same time."""
GROUPS = frozenset({"refused", "parked", "lost", "faltered"})
"""Names under which totals and windows hold an object of counts instead of one count."""
_LARGEST = 2.0**62


def merge(*facts: Mapping[str, Any]) -> Facts:
    """Return the facts of several processes as if one process had done everything."""
    merged: Facts = dict(NOTHING)
    for one in map(_readable, facts):
        for name in NOTHING:
            here, there = merged[name], one[name]
            merged[name] = max(here, there) if name in _LONGEST else _added(here, there)
    return {**merged, "measures": measures(merged)}


def number_in(told: Mapping[str, Any], name: str) -> float | None:
    """Return the value of a name if it is a number from 0 to 2^62; otherwise None."""
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= _LARGEST else None


def _readable(facts: Mapping[str, Any]) -> Facts:
    """Return the facts without values that `merge` cannot add."""
    waits, ages = (_numbers(facts.get(name)) for name in ("waits", "view_ages"))
    return {
        **{name: number_in(facts, name) or 0.0 for name in (*_LONGEST, "process_s")},
        **{name: _counted(facts.get(name)) for name in ("totals", "window")},
        "waits": {bucket: count for bucket, count in waits.items() if is_bucket(bucket)},
        "view_ages": {bucket: count for bucket, count in ages.items() if is_bucket(bucket)},
    }


def _counted(told: object) -> Facts:
    groups = told if isinstance(told, Mapping) else {}
    return {
        **{name: count for name, count in _numbers(told).items() if name not in GROUPS},
        **{name: _numbers(groups[name]) for name in groups if name in GROUPS},
    }


def _numbers(told: object) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        return {}
    found = {name: number_in(told, name) for name in told}
    return {name: number for name, number in found.items() if number is not None}


def measures(facts: Mapping[str, Any]) -> Facts:
    """Return the measures derived from facts: rates, fractions, shares and quantiles.

    Measures whose names end in `_now` are over the window, the others over the process's whole
    life. A measure for which nothing has been counted yet is None.
    """
    totals, window = facts["totals"], facts["window"]
    return {
        **_of(totals, over_s=facts["elapsed_s"], process_s=facts["process_s"], suffix=""),
        **_of(
            window,
            over_s=facts["window_s"],
            process_s=window.get("process_s", 0.0),
            suffix="_now",
        ),
        "wait_p50_s": quantile_s(facts["waits"], 0.5),
        "wait_p90_s": quantile_s(facts["waits"], 0.9),
        "view_age_p50_s": quantile_s(facts["view_ages"], 0.5),
        "view_age_p90_s": quantile_s(facts["view_ages"], 0.9),
    }


def _of(counted: Mapping[str, Any], *, over_s: float, process_s: float, suffix: str) -> Facts:
    def count(name: str) -> float:
        return float(counted.get(name, 0))

    conflicted = count("job_transactions_conflicted")
    useful_s = count("thought_useful_s") + count("commit_useful_s")
    wasted_s = count("thought_wasted_s") + count("commit_wasted_s")
    busy_s = count("thought_s") + count("commit_useful_s") + count("commit_wasted_s")
    named = {
        "jobs_per_s": _ratio(count("jobs_placed"), over_s),
        "tasks_per_s": _ratio(count("tasks_placed"), over_s),
        "conflict_fraction": _ratio(conflicted, count("job_transactions") - conflicted),
        "claim_conflict_fraction": _ratio(count("claims_refused"), count("claims")),
        "busy": _ratio(busy_s, process_s),
        "busy_useful": _ratio(useful_s, process_s),
        "busy_wasted": _ratio(wasted_s, process_s),
    }
    return {f"{name}{suffix}": value for name, value in named.items()}


def _ratio(part: float, whole: float) -> float | None:
    """Return part / whole; None if the whole is 0."""
    return part / whole if whole > 0 else None


def _added(here: Any, there: Any) -> Any:  # noqa: ANN401 - numbers, or objects of them, from JSON
    """Add numbers, and objects of numbers name by name."""
    if isinstance(here, Mapping):
        return {
            name: _added(here[name], there[name])
            if name in here and name in there
            else here.get(name, there.get(name))
            for name in [*here, *(name for name in there if name not in here)]
        }
    return here + there
