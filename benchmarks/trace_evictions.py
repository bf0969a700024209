"""The evictions that the trace google-2011 records, counted from its tables alone.

Nothing here uses omega's reading of the trace, so that a mistake there shows. An eviction is
recorded when a task has to make way for a higher priority, and also when its machine leaves or is
used above its capacity; the trace does not say which. So each is looked at beside what else
happened on its machine.
"""

import csv
import gzip
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omega.errors import BadInput

BANDS: Final = ("gratis", "other", "production")
"""The trace's bands of priority: 0 and 1, 2 to 8, 9 to 11."""
NEAR_S: Final = 1.0
"""How far apart an eviction and its cause may be recorded."""
WINDOW_START_S: Final = 600.0
S_PER_H: Final = 3_600


@dataclass(frozen=True)
class TraceEvictions:
    """What the trace's window holds, up to some hour."""

    by_band: Mapping[str, int]
    """Evictions by the band of the task."""
    by_evictor: Mapping[tuple[str, str], int]
    """Those by (its band, highest band of the tasks with a higher priority that were scheduled on
    the machine at that moment), where there are some."""
    same_band: int
    """Of these: all that were scheduled there were of the task's own band."""
    with_machine: int
    """Evictions at the moment at which the machine left."""
    scheduled: int
    """Tasks that were scheduled."""

    @property
    def total(self) -> int:
        """All evictions."""
        return sum(self.by_band.values())


def band_of(priority: int) -> str:
    """Return the band of a priority of the trace."""
    return BANDS[(priority > 1) + (priority > 8)]  # noqa: PLR2004 - as the trace's format says


def count_evictions(folder: Path, hours: float) -> TraceEvictions:
    """Count the evictions of the window's first hours. Raises BadInput for a missing table."""
    left: dict[str, list[float]] = defaultdict(list)
    for row in _rows(folder, "machine_events.csv"):
        if row["event"] == "remove":
            left[row["machine_id"]].append(float(row["time_s"]))
    began, evicted = _scheduled_and_evicted(folder, WINDOW_START_S + hours * S_PER_H)
    by_evictor: Counter[tuple[str, str]] = Counter()
    same_band = with_machine = 0
    for at_s, machine, priority in evicted:
        if any(abs(gone_s - at_s) <= NEAR_S for gone_s in left.get(machine, ())):
            with_machine += 1
            continue
        higher = [one for one in _near(began.get(machine, []), at_s) if one > priority]
        if higher:
            bands = band_of(priority), band_of(max(higher))
            by_evictor[bands] += 1
            same_band += bands[0] == bands[1]
    return TraceEvictions(
        by_band={
            band: sum(band_of(priority) == band for _, _, priority in evicted) for band in BANDS
        },
        by_evictor=dict(by_evictor),
        same_band=same_band,
        with_machine=with_machine,
        scheduled=sum(len(times) for times in began.values()),
    )


def _scheduled_and_evicted(
    folder: Path, until_s: float
) -> tuple[Mapping[str, list[tuple[float, int]]], list[tuple[float, str, int]]]:
    """Return (time, priority) of what each machine was given, and (time, machine, priority)."""
    began: dict[str, list[tuple[float, int]]] = defaultdict(list)
    evicted = []
    for row in _rows(folder, "task_events_600s_to_5611s.csv"):
        at_s, machine, priority = float(row["time_s"]), row["machine_id"], int(row["priority"])
        if at_s <= until_s and row["event"] == "schedule":
            began[machine].append((at_s, priority))
        elif at_s <= until_s and row["event"] == "evict":
            evicted.append((at_s, machine, priority))
    for times in began.values():
        times.sort()
    return began, evicted


def _near(began: list[tuple[float, int]], at_s: float) -> Iterator[int]:
    """Yield the priorities of what was scheduled on a machine at about this time."""
    for since_s, priority in began[bisect_left(began, (at_s - NEAR_S, 0)) :]:
        if since_s > at_s + NEAR_S:
            return
        yield priority


def _rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.is_file():
        with plain.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)
    elif packed.is_file():
        with gzip.open(packed, "rt", newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)
    else:
        raise BadInput(f"the folder does not hold {name}, plain or .gz", field="--trace")
