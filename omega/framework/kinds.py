"""The kinds of scheduler that are registered, as entry points of installed packages.

Goal     Know them without loading one: a command that only names them starts fast.
Promise  Nothing is imported but metadata, which is read once for each import path.
Source   Entry points of the group `omega.schedulers`.
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

ENTRY_POINT_GROUP = "omega.schedulers"


@dataclass(frozen=True)
class Registered:
    """A kind of scheduler that can be run."""

    kind: str
    origin: str
    """The class that implements it: `module:Class`."""
    package: str
    """Distribution that registered it."""


def registered() -> list[Registered]:
    """Return all registered kinds, in the order of their names; none is imported."""
    found = {
        (entry.name, entry.value): entry.dist.name if entry.dist else "unknown"
        for entry in kind_entries()
    }
    return [Registered(*names, package) for names, package in sorted(found.items())]


def startable_kinds() -> frozenset[str]:
    """Return the kinds of scheduler that are registered in this installation."""
    return frozenset(entry.name for entry in kind_entries())


def kind_entries() -> tuple[EntryPoint, ...]:
    """Return the entry points of all registered kinds, on the import path as it is now."""
    return _entries_on(tuple(sys.path))


@lru_cache(maxsize=4)
def _entries_on(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read the metadata of all packages on this path, which takes as long as placing a job."""
    return tuple(entry_points(group=ENTRY_POINT_GROUP))
