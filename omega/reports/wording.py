"""Figures as a person reads them.

Goal     Let a column of a screen be read at a glance.
Promise  A figure is never wider than nine characters; what is not known is a dash.
Source   Units: seconds as in `ms`, `s`, `min`, `h`; shares in percent.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from omega.model.resources import GPU_SLICES, Kind

UNKNOWN: Final = "-"
UNKNOWN_MACHINE: Final = "a machine that is gone"
MINUTE_S: Final = 60
HOUR_S: Final = 3_600
MILLION: Final = 1_000_000
MIB_PER_GIB: Final = 1_024


def count(number: float | None) -> str:
    """Write a number of things: 12,345, and from ten million on 12.3 M."""
    if number is None:
        return UNKNOWN
    if number >= 10 * MILLION:
        return f"{number / MILLION:,.1f} M"
    if 0 < number < 10:  # noqa: PLR2004 - one digit says too little of a rate
        return f"{number:.1f}".removesuffix(".0")
    return f"{number:,.0f}"


def share(part: float | None) -> str:
    """Write a share of one as percent."""
    if part is None:
        return UNKNOWN
    return f"{part:.1%}" if 0 < part < 0.1 else f"{part:.0%}"  # noqa: PLR2004 - as above


def fraction(number: float | None) -> str:
    """Write a conflict fraction, which may exceed one."""
    return UNKNOWN if number is None else f"{number:.2f}"


def duration(seconds: float | None) -> str:
    """Write a time with about two significant digits."""
    if seconds is None:
        return UNKNOWN
    for limit, factor, unit in (
        (0.0095, 1_000, "ms"),
        (0.9995, 1_000, "ms"),
        (9.95, 1, "s"),
        (2 * MINUTE_S, 1, "s"),
        (2 * HOUR_S, 1 / MINUTE_S, "min"),
    ):
        if seconds < limit:
            digits = 1 if limit in (0.0095, 9.95) else 0
            return f"{seconds * factor:.{digits}f} {unit}"
    return f"{seconds / HOUR_S:.0f} h"


def clock(seconds: float) -> str:
    """Write a time as minutes and seconds."""
    minutes, rest = divmod(max(0, int(seconds)), MINUTE_S)
    return f"{minutes:02d}:{rest:02d}"


def moment(milliseconds: int | None) -> str:
    """Write a time since the epoch as date and time in UTC; None as a dash."""
    if milliseconds is None:
        return UNKNOWN
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def amounts(named: Mapping[str, int]) -> str:
    """Write amounts by kind: 4 cores, 8 GiB, 2 GPUs. Kinds with amount 0 are left out."""
    gpus = sum(amount for kind, amount in named.items() if Kind[kind.upper()].is_device)
    parts = (
        (named.get(Kind.CPU_MILLI.column, 0) / 1_000, "core", "cores"),
        (named.get(Kind.MEMORY_MIB.column, 0) / MIB_PER_GIB, "GiB", "GiB"),
        (named.get(Kind.DISK_MIB.column, 0) / MIB_PER_GIB, "GiB of disk", "GiB of disk"),
        (gpus / GPU_SLICES, "GPU", "GPUs"),
    )
    written = [
        f"{_plain(amount)} {singular if amount == 1 else plural}"
        for amount, singular, plural in parts
        if amount
    ]
    return ", ".join(written) or "nothing"


def _plain(number: float) -> str:
    """Write a number with at most three decimals, without trailing zeros."""
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def things(number: int, noun: str) -> str:
    """Write a number with its noun: 1 machine, 2 machines."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers, with consecutive ones as a range: 0-3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
