"""The schedulers that place a simulation's jobs, by workload: `--placing` and `--set`.

Goal     Simulate any registered kind of scheduler, ours or another package's, several side by side.
Promise  An unknown kind is UnknownScheduler, an unknown workload or setting BadInput, before
         anything runs.
Source   omega.framework.registry.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from omega.errors import BadInput, did_you_mean
from omega.framework.registry import configured
from omega.framework.scheduler import Scheduler
from omega.terminal.options import read_pairs

PLACING, SET = "--placing", "--set"
Makers = Mapping[str, Callable[[], Scheduler]]
"""Functions that create a scheduler, by workload."""


def read_placing(text: str | None, workloads: Sequence[str]) -> dict[str, str]:
    """Read `KIND`, or `WORKLOAD=KIND+WORKLOAD=KIND`; return the kinds that are named, by workload.

    Raises BadInput for a workload that is unknown or named twice.
    """
    if text is None:
        return {}
    if "=" not in text:
        return dict.fromkeys(workloads, text)
    placing: dict[str, str] = {}
    for workload, kind in read_pairs(text.split("+"), option=PLACING):
        if workload in placing:
            raise BadInput(f"{workload} is named twice", field=PLACING)
        placing[_known(workload, workloads, PLACING)] = kind
    return placing


def makers(placing: Mapping[str, str], workloads: Sequence[str], said: Sequence[str]) -> Makers:
    """Return, by workload, a function that creates its scheduler with its settings.

    `said` are `NAME=VALUE`, for all workloads, and `WORKLOAD:NAME=VALUE`, for one. Raises
    UnknownScheduler, and BadInput for a setting that a scheduler does not have or that is set
    twice.
    """
    settings: dict[str, dict[str, str]] = {workload: {} for workload in workloads}
    for written, value in read_pairs(said, option=SET):
        workload, colon, name = written.partition(":")
        whose = [_known(workload, workloads, SET)] if colon else workloads
        for one in whose:
            if (name or written) in settings[one]:
                raise BadInput(f"{name or written} is set twice", field=SET)
            settings[one][name or written] = value
    made: dict[str, Callable[[], Scheduler]] = {}
    for workload in workloads:
        kind, its = placing.get(workload, workload), settings[workload]
        configured(kind, its)  # raises now for a setting that it does not have
        made[workload] = partial(configured, kind, its)
    return made


def _known(workload: str, workloads: Sequence[str], option: str) -> str:
    if workload not in workloads:
        guess = did_you_mean(workload, workloads)
        raise BadInput(f"no jobs ask for {workload!r}{guess}", field=option)
    return workload
