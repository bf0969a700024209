"""Schedulers by their kinds, loaded from entry points of installed packages.

Goal     Let a package add a kind of scheduler without a change in omega.
Promise  A scheduler is imported only when it is asked for. One that cannot be used is refused with
         a message that names it and quotes the package's error.
Source   omega.framework.kinds; Nomad's factory map.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final

from omega.errors import BadInput, SettingsError, UnknownScheduler, did_you_mean, shortened
from omega.framework import kinds
from omega.framework.scheduler import RECLAIM, RECLAIM_S_MAX, Scheduler
from omega.model.lanes import QueueOrder

ORDER: Final = "order"
"""A setting that every kind of scheduler has: a QueueOrder."""


def find_scheduler(kind: str) -> type[Scheduler]:
    """Return the class that is registered under this kind.

    Raises UnknownScheduler if there is none, and SettingsError if it cannot be loaded, is no
    scheduler, takes another kind of jobs, or is registered twice.
    """
    entries = kinds.kind_entries()
    found = [entry for entry in entries if entry.name == kind]
    if not found:
        raise UnknownScheduler(kind, {entry.name for entry in entries})
    if len({entry.value for entry in found}) > 1:
        origins = " and ".join(sorted(entry.value for entry in found))
        raise SettingsError([f"scheduler {kind!r} is registered twice, by {origins}"])
    return _load(found[0])


def configured(kind: str, settings: Mapping[str, str]) -> Scheduler:
    """Return a scheduler of this kind with an operator's settings, by name and as text.

    Every kind without rounds has the setting `order`, which jobs of the whole queue are leased
    next. Those that do not preempt also have `reclaim`, when jobs of tenants below their shares may
    evict. Raises BadInput for a setting that the kind does not have and for a value that it does
    not take, and what `find_scheduler` raises.
    """
    its_own = dict(settings)
    shared = {name: its_own.pop(name) for name in (ORDER, RECLAIM) if name in its_own}
    scheduler = find_scheduler(kind).configured(its_own)
    for name in shared:
        if scheduler.rounds is not None:
            raise BadInput(f"{kind} leases all its jobs, and plans them by rounds", field=name)
    if ORDER in shared:
        scheduler.queue_order = _order(shared[ORDER])
    if RECLAIM in shared:
        if scheduler.preempts:
            raise BadInput(f"{kind} evicts tasks of all tenants already", field=RECLAIM)
        scheduler.reclaim_after_s = _seconds(shared[RECLAIM])
    return scheduler


def _order(said: str) -> QueueOrder:
    known = [each.value for each in QueueOrder]
    if said not in known:
        guess = did_you_mean(said, known)
        listed = ", ".join(known)
        raise BadInput(f"there is no order {shortened(said)!r}{guess} ({listed})", field=ORDER)
    return QueueOrder(said)


def _seconds(said: str) -> float:
    try:
        seconds = float(said)
    except ValueError:
        seconds = float("nan")
    if not 0 <= seconds <= RECLAIM_S_MAX:
        raise BadInput(
            f"{shortened(said)!r} is no number of seconds from 0 to {RECLAIM_S_MAX:,}",
            field=RECLAIM,
        )
    return seconds


def load_entry(entry: EntryPoint, where: str) -> Any:  # noqa: ANN401 - whatever is registered
    """Return what an entry point names; raise SettingsError about `where` if it cannot be."""
    try:
        return entry.load()
    except Exception as error:
        problem = f"{where} cannot be loaded: {type(error).__name__}: {error}"
        raise SettingsError([problem]) from error


def _load(entry: EntryPoint) -> type[Scheduler]:
    where = f"scheduler {entry.name!r} ({entry.value})"
    loaded = load_entry(entry, where)
    if not (isinstance(loaded, type) and issubclass(loaded, Scheduler)):
        raise SettingsError([f"{where} is no subclass of omega.framework.scheduler.Scheduler"])
    if loaded.kind != entry.name:
        raise SettingsError([f"{where} takes jobs of kind {loaded.kind!r}: register it as that"])
    return loaded
