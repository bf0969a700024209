"""Amounts as people write them: cores, memory, GPUs, times.

Goal     Read 500m, 4GiB or 10m in a job's spec, or in the limit of a quota, exactly.
Promise  An amount that is no whole number of units is refused, never rounded. Each function takes a
         value as YAML gives it, and raises ValueError with one sentence if it cannot read it.
Source   docs/decisions/0001-arrays-and-integers.md.
"""

import re
from decimal import Decimal

from omega.errors import shortened
from omega.limits import LIMITS
from omega.model.quotas import UNLIMITED, Budget
from omega.model.resources import DEVICES_MAX, GPU_SLICES

MIB_PER_UNIT = {"MiB": 1, "GiB": 1_024, "TiB": 1_048_576}
MS_PER_UNIT = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MILLI_PER_UNIT = {"m": 1, "": 1_000}
OF_CPU = "of CPU; write for example 2, 0.5 or 500m"
OF_MEMORY = "of memory; write for example 512MiB or 4GiB"
OF_DISK = "of disk; write for example 512MiB or 4GiB"
LIMITED_IN = {
    Budget.CPU_MILLI: (MILLI_PER_UNIT, OF_CPU),
    Budget.MEMORY_MIB: (MIB_PER_UNIT, OF_MEMORY),
    Budget.DISK_MIB: (MIB_PER_UNIT, OF_DISK),
    Budget.GPU_SLICES: ({"": GPU_SLICES}, "of GPUs; write for example 8 or 2.5"),
    Budget.JOBS: ({"": 1}, "of jobs; write for example 20"),
}
"""The units of each budget of a quota, and the end of the message for any other text."""

_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", re.ASCII)


def shown(value: object) -> str:
    """Quote a value as YAML writes it, shortened to fit a sentence."""
    if isinstance(value, bool):
        return str(value).lower()
    short = shortened(str(value))
    return repr(short) if isinstance(value, str) else short


def cpu_milli(value: object) -> int:
    """Read cores: 2, 0.5 or "500m"."""
    return _amount(value, MILLI_PER_UNIT, OF_CPU)


def memory_mib(value: object) -> int:
    """Read memory: "512MiB", "4GiB" or "1.5TiB"; zero needs no unit."""
    return _mib(value, OF_MEMORY)


def disk_mib(value: object) -> int:
    """Read disk, in the units of memory."""
    return _mib(value, OF_DISK)


def gpus_and_slices(value: object) -> tuple[int, int]:
    """Read GPUs: 2 is two whole ones, 0.5 a share of one; return their number and the slices."""
    wanted = f"a number of GPUs; write 1 to {DEVICES_MAX}, or for example 0.5 for a share of one"
    number = _number(value, {"": 1})
    if number is None:
        raise ValueError(f"{shown(value)} is not {wanted}")
    if number == int(number):
        if number > DEVICES_MAX:
            raise ValueError(f"{shown(value)} is more than the {DEVICES_MAX} GPUs of one machine")
        return int(number), GPU_SLICES
    slices = number * GPU_SLICES
    if number > 1:
        raise ValueError(f"{shown(value)} is not {wanted}: only a single GPU can be shared")
    if slices != int(slices):
        raise ValueError(f"{shown(value)} is finer than 1/{GPU_SLICES} of a GPU")
    return 1, int(slices)


def limit_of(budget: Budget, text: str) -> int:
    """Read a limit of a quota: in the units of a task's request, up to the size of a cell."""
    if text.strip() == "0":
        return 0  # of any unit
    units, what = LIMITED_IN[budget]
    limit = _in_whole_units(text, units, what)
    if limit >= UNLIMITED:
        raise ValueError(f"{shown(text)} is more than any cell has; leave it out to set no limit")
    return limit


def duration_ms(value: object) -> int | None:
    """Read a time: seconds as a number, or "250ms", "30s", "10m", "1.5h", "2d"; None stays."""
    if value is None:
        return None
    number = _number(value, {"": MS_PER_UNIT["s"], **MS_PER_UNIT})
    if number is None:
        raise ValueError(
            f"{shown(value)} is not a duration; write seconds, or for example 30s, 10m or 2h"
        )
    if number != int(number):
        raise ValueError(f"{shown(value)} is finer than a millisecond")
    if number > LIMITS.duration_ms_max:
        raise ValueError(f"{shown(value)} is more than a century; leave it out to run on and on")
    return int(number)


def _mib(value: object, what: str) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else _amount(value, MIB_PER_UNIT, what)


def _amount(value: object, units: dict[str, int], what: str) -> int:
    amount = _in_whole_units(value, units, what)
    if amount > LIMITS.amount_max:
        raise ValueError(f"{shown(value)} is more than any machine can have")
    return amount


def _in_whole_units(value: object, units: dict[str, int], what: str) -> int:
    number = _number(value, units)
    if number is None:
        raise ValueError(f"{shown(value)} is not an amount {what}")
    if number != int(number):
        raise ValueError(f"{shown(value)} is finer than the unit that is counted in")
    return int(number)


def _number(value: object, units: dict[str, int]) -> Decimal | None:
    """Return a number in the smallest unit, exactly; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _NUMBER.fullmatch(str(value).strip())
    if match is None or match[2] not in units:
        return None
    return Decimal(match[1]) * units[match[2]]
