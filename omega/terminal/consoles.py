"""The output of a verb: results, warnings, and the JSON document.

Goal     Let a script read the results of every verb, and a person watch the same verb at work.
Promise  With `--json -`, standard output holds the document and nothing else, and all texts for
         people go to standard error. The document is ASCII, with unprintable characters escaped; a
         number that is not finite is null. A file that cannot be written is refused before the
         work.
Source   docs/guide/README.md.
"""

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from omega import __version__
from omega.clock import RealClock
from omega.errors import BadInput
from omega.reports.printable import printable
from omega.terminal.terminal import PrintableConsole

STANDARD_OUTPUT: Final = "-"


def warnings() -> PrintableConsole:
    """Return the console on standard error."""
    return PrintableConsole(stderr=True)


def warn(sentence: str) -> None:
    """Print a line for a person on standard error, with texts from elsewhere made printable."""
    warnings().print(f"omega: {printable(sentence)}", highlight=False, soft_wrap=True)


class Output:
    """The output of one run of a verb."""

    def __init__(self, json_to: str | None = None) -> None:
        self._json_to = json_to
        self.console = PrintableConsole(stderr=json_to == STANDARD_OUTPUT)
        if json_to is not None and json_to != STANDARD_OUTPUT:
            refuse_unwritable(Path(json_to), field="--json")

    @property
    def wanted(self) -> bool:
        """Whether the document was asked for."""
        return self._json_to is not None

    @property
    def is_file(self) -> bool:
        """Whether the document goes to a file, which can be written again as it grows."""
        return self._json_to not in {None, STANDARD_OUTPUT}

    def document(
        self,
        *,
        parameters: Mapping[str, object],
        rows: Sequence[Mapping[str, object]],
        summary: Mapping[str, object],
        environment: Mapping[str, object] | None = None,
        **more: str | Mapping[str, object],
    ) -> None:
        """Write the document, if it was asked for; `more` are further parts at its top level."""
        if self._json_to is None:
            return
        text = as_json(
            {
                "parameters": dict(parameters),
                "environment": {**describe_environment(), **(environment or {})},
                "rows": [dict(row) for row in rows],
                "summary": dict(summary),
                **{n: part if isinstance(part, str) else dict(part) for n, part in more.items()},
            }
        )
        if self._json_to == STANDARD_OUTPUT:
            PrintableConsole().print_whole(text)
        else:
            Path(self._json_to).write_text(text + "\n", encoding="utf-8")


def as_json(document: Mapping[str, object]) -> str:
    """Return a document as text that may go to a terminal: ASCII, and control characters escaped.

    JSON has no numbers that are not finite: such a number is null. The encoder does not escape DEL;
    in JSON, it can occur only in a string.
    """
    try:
        text = _encoded(document)
    except ValueError:
        text = _encoded(_finite(document))
    return text.replace("\x7f", "\\u007f")


def _encoded(document: object) -> str:
    return json.dumps(document, indent=2, default=str, ensure_ascii=True, allow_nan=False)


def _finite(part: object) -> object:
    """Return a part of a document with null for each number that is not finite."""
    match part:
        case float() if not math.isfinite(part):
            return None
        case Mapping():
            return {key: _finite(value) for key, value in part.items()}
        case list() | tuple():
            return [_finite(value) for value in part]
        case _:
            return part


def describe_environment() -> dict[str, object]:
    """Return the versions and the machine, which tell whether two documents are comparable."""
    return {
        "omega": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "at": RealClock().wall().isoformat(timespec="seconds"),
    }


def refuse_unwritable(path: Path, *, field: str) -> None:
    """Raise BadInput for a file that could not be written when the work is done."""
    folder = path.absolute().parent
    if not os.path.isdir(folder):  # False for a name that is too long
        raise BadInput(f"there is no folder {folder} to write to", field=field)
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder, not a file", field=field)
    try:
        path.stat()
    except FileNotFoundError:
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    else:
        writable = os.access(path, os.W_OK)
    if not writable:
        raise BadInput(f"{path} cannot be written", field=field)
