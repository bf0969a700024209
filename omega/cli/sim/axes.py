"""What a sweep varies: `--vary NAME=V,V,...`, read as the option of that name reads its value.

Goal     Let every option of `omega sim run`, and every setting of a scheduler, be an axis of a
         sweep, without a separate list of axes.
Promise  A value is checked by the option itself, so a sweep takes what `run` takes and refuses what
         `run` refuses, before anything is simulated.
Source   The options of omega.cli.sim.plan, as typer has read them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

import numpy as np
import typer

from omega.cli.sim.plan import SimPlan
from omega.errors import BadInput, did_you_mean
from omega.terminal.options import read_pairs

OPTION: Final = "--vary"
VALUES_MAX: Final = 1_000
"""Values of one axis."""
DIGITS: Final = 6
"""Significant digits of the values of a range, so that 0.1 is written as 0.1."""
_RANGE = re.compile(r"(log|lin):([^.]+(?:\.\d+)?)\.\.([^/]+)/(\d{1,9})")

SETTING: Final = "set:"
"""Prefix of an axis that is a scheduler's setting, which `--set` would set."""
NOT_VARIABLE: Final = "compiled"
"""The field that changes no figure, and so cannot be varied."""

Axes = Mapping[str, Sequence[Any]]
"""The values of each axis, by field of the plan or by setting."""


def option_of(axis: str) -> str:
    """Return an axis as it is written after `--vary`."""
    return axis if axis.startswith(SETTING) else axis.replace("_", "-")


def at_point(plan: SimPlan, point: Mapping[str, Any]) -> SimPlan:
    """Return the plan of one point of a grid."""
    options = {name: value for name, value in point.items() if not name.startswith(SETTING)}
    return replace(plan, **options, settings=settings_at(plan.settings, point))


def settings_at(said: Sequence[str] | None, point: Mapping[str, Any]) -> list[str] | None:
    """Return the settings of one point, with `said`, those of all points; None without any."""
    varied = [
        f"{name.removeprefix(SETTING)}={value}"
        for name, value in point.items()
        if name.startswith(SETTING)
    ]
    return sorted([*(said or ()), *varied]) or None


def read_axes(pairs: Sequence[str], context: typer.Context) -> Axes:
    """Read the axes of a sweep. Raises BadInput, or the option's own error for a value."""
    kinds = get_type_hints(SimPlan)
    options = {field.name.replace("_", "-"): field.name for field in fields(SimPlan)}
    parameters = {one.name: one for one in context.command.params}
    axes: dict[str, list[Any]] = {}
    for written, values in read_pairs(pairs, option=OPTION):
        name = written.removeprefix("--")
        if name.startswith(SETTING) and name != SETTING:
            if name in axes:
                raise BadInput(f"{name} is varied twice", field=OPTION)
            axes[name] = _distinct(name, _numbers_or_texts(_texts(values)))
            continue
        if name in {"set", SETTING}:
            raise BadInput("name the setting: --vary set:NAME=VALUE,VALUE", field=OPTION)
        if name not in options:
            guess = did_you_mean(name, options)
            raise BadInput(f"there is no option --{name} to vary{guess}", field=OPTION)
        field = options[name]
        if field in axes:
            raise BadInput(f"{name} is varied twice", field=OPTION)
        option, kind = parameters[field], _without_none(kinds[field])
        if getattr(option, "multiple", False):
            raise BadInput(f"{name} can be said again and again, and not be varied", field=OPTION)
        if field == NOT_VARIABLE:
            raise BadInput(f"{name} changes no figure: there is nothing to vary", field=OPTION)
        read = [option.process_value(context, text) for text in _texts(values)]
        typed = [kind(one) if issubclass(kind, Enum | Path) else one for one in read]
        axes[field] = _distinct(name, typed)
    return axes


def _numbers_or_texts(texts: list[str]) -> list[Any]:
    """Return the values as numbers if all of them are, so that a plot has an axis of numbers."""
    for number in (int, float):
        try:
            read = [number(text) for text in texts]
        except ValueError:
            continue
        if all(math.isfinite(one) for one in read):
            return list(read)
    return list(texts)


def _distinct(name: str, values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise BadInput(f"{name} has a value twice", field=OPTION)
    return values


def _without_none(kind: Any) -> Any:  # noqa: ANN401 - a type, or a union of some
    """Return the type of an option's value when the option is given."""
    return next((one for one in get_args(kind) if one is not NoneType), kind)


def _texts(values: str) -> list[str]:
    """Return the values as texts; `log:0.01..100/9` gives nine, `lin:1..5/5` gives five."""
    match = _RANGE.fullmatch(values)
    if match is None:
        return [one.strip() for one in values.split(",")]
    how, first, last, number = match.groups()
    is_log, count = how == "log", int(number)
    try:
        start, stop = float(first), float(last)
    except ValueError:
        start = stop = math.nan
    known = math.isfinite(start) and math.isfinite(stop) and 1 <= count <= VALUES_MAX
    if not known or (is_log and min(start, stop) <= 0):
        raise BadInput(
            f"{values!r} is no range; write for example log:0.01..100/9 or lin:1..5/5",
            field=OPTION,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # the option refuses inf and nan
        points = np.geomspace(start, stop, count) if is_log else np.linspace(start, stop, count)
    rounded = (float(f"{value:.{DIGITS}g}") for value in points.tolist())
    return [np.format_float_positional(value, trim="-") for value in rounded]  # 1, not 1.0
