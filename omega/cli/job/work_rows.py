"""The rows of `omega job` about work in steps.

Goal     Answer "on which GPUs, how fast, with which share, until when?" at a glance.
Promise  Drawn from values alone. What is not known has no row.
Source   omega.reports.work.
"""

from collections.abc import Iterator
from typing import Final

from omega.reports.printable import short
from omega.reports.wording import count, duration, moment, share, things
from omega.reports.work import WorkReport

TYPES_SHOWN: Final = 12
"""Types of GPUs of which the promised share is told."""
CENTURY_S: Final = 100 * 365.25 * 86_400
"""An end that is farther away is none that anybody waits for."""


def work_rows(work: WorkReport) -> Iterator[tuple[str, str]]:
    """Yield title and text of each row."""
    yield "work", short(work.kind)
    told = work.share
    if told is not None:
        where = "none now" if told.type is None else f"on {short(told.type) or 'an unnamed type'}"
        yield "GPUs", f"{told.gpus:,}, {where}"
    rates = [] if work.rate is None else [f"{count(work.rate)} steps/s now"]
    if work.measured is not None:
        rates.append(f"measured so far: {count(work.measured)}")
    if rates:
        yield "rate", "; ".join(rates)
    part = share(work.done / work.steps) if work.steps else share(None)
    yield (
        "steps",
        f"{work.done:,} of {work.steps:,} ({part}) in {duration(work.run_ms / 1_000)},"
        f" {work.left:,} left",
    )
    if told is not None:
        yield "share", _share(work)
        yield "preempted", _preempted(work)
    if work.left and work.ends_in_s is not None and work.ends_in_s < CENTURY_S:
        ends = moment(work.now_ms + round(work.ends_in_s * 1_000))
        by = "at this rate" if told is None else "with the share that is promised"
        yield "done", f"in {duration(work.ends_in_s)} {by}: {ends}"


def _share(work: WorkReport) -> str:
    """Say what is promised from now on, and what was promised and had since the job came."""
    told = work.share
    assert told is not None, "asked for the share of a job that no round tells of"
    parts = [f"{short(name)} {share(min(1.0, part))}" for name, part in told.share.items()]
    more = f" and {len(parts) - TYPES_SHOWN:,} more" if len(parts) > TYPES_SHOWN else ""
    now = f"promised {', '.join(parts[:TYPES_SHOWN])}{more}" if parts else "nothing promised yet"
    if work.promised is None:
        return now
    return f"{now}; since it came promised {share(work.promised)}, had {share(work.received)}"


def _preempted(work: WorkReport) -> str:
    told = work.share
    assert told is not None, "asked for preemptions of a job that no round tells of"
    if not told.preempted:
        return "never"
    last = f", last by round {told.preempted_in:,}" if told.preempted_in else ""
    return f"{things(told.preempted, 'time')}{last}"
