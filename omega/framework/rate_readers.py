"""Readers of rates by name, registered by any package, ours included.

Goal     Let a package add a format of rates without a change of omega.
Promise  A reader is imported only when it is chosen; one that cannot be used is refused by name.
Source   Entry points of the group `omega.rates`; omega.framework.registry.
"""

import os
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Protocol

from omega.errors import BadInput, OmegaError, SettingsError, did_you_mean, shortened
from omega.framework.rates import RateModel
from omega.framework.registry import load_entry

ENTRY_POINT_GROUP: Final = "omega.rates"


class RateReader(Protocol):
    """Reads one format of rates."""

    def __call__(self, path: Path, *, gpu_attribute: str) -> RateModel:
        """Return the rates of a file; `gpu_attribute` of a machine names its type of GPU."""
        ...


def read_rates(said: str, *, gpu_attribute: str) -> RateModel:
    """Return the rates of a file that is given as FILE, or as NAME:FILE with a reader's name.

    Raises BadInput if no reader is chosen, or if it cannot read the file; SettingsError if the
    reader cannot be used or fails, or if its name is registered twice.
    """
    entries = list(entry_points(group=ENTRY_POINT_GROUP))
    name, path = _meant(said, sorted({entry.name for entry in entries}))
    reader = _reader([entry for entry in entries if entry.name == name])
    try:
        model = reader(path, gpu_attribute=gpu_attribute)
    except OmegaError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SettingsError([f"the reader of rates {name!r} failed: {why}"]) from error
    if not isinstance(model, RateModel):
        raise SettingsError([f"the reader of rates {name!r} returns no RateModel"])
    return model


def _meant(said: str, names: list[str]) -> tuple[str, Path]:
    """Return the reader's name and the file; a registered name is never part of a file's name."""
    name, colon, file = said.partition(":")
    if colon and name in names:
        return name, Path(file)
    there_are = f"registered: {', '.join(names) or 'none at all'}"
    if colon and not os.path.exists(said):  # which no name is too long for
        name = shortened(name)
        hint = did_you_mean(name, names)
        sentence = f"no reader of rates is registered as {name!r}{hint} ({there_are})"
        raise BadInput(sentence, field="--rates")
    if len(names) != 1:
        sentence = f"say which reader this file is for, as NAME:FILE ({there_are})"
        raise BadInput(sentence, field="--rates")
    return names[0], Path(said)


def _reader(entries: list[EntryPoint]) -> RateReader:
    name, origins = entries[0].name, sorted({entry.value for entry in entries})
    if len(origins) > 1:
        listed = " and ".join(origins)
        raise SettingsError([f"the reader of rates {name!r} is registered twice, by {listed}"])
    where = f"the reader of rates {name!r} ({origins[0]})"
    reader: RateReader = load_entry(entries[0], where)
    if not callable(reader):
        raise SettingsError([f"{where} is no function"])
    return reader
