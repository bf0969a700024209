"""Where a verb says things: results, progress and warnings, and the JSON document.

Goal     Let a script read the results of every verb, and a person watch the same verb at work.
Promise  With `--json -` standard output holds the document and nothing else; what a person reads
         goes to standard error then. The document is ASCII, with what cannot be printed escaped. A
         file that cannot be written is refused before the work.
Source   docs/guide/README.md.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from omega import __version__
from omega.clock import RealClock
from omega.errors import BadInput
from omega.events import Event, MemoRefused, RateUnknown, StoreFaltered, TurnChanged
from omega.reports.printable import printable
from omega.terminal.terminal import PrintableConsole

STANDARD_OUTPUT: Final = "-"


def warnings() -> PrintableConsole:
    """Return the console on standard error."""
    return PrintableConsole(stderr=True)


def warn(event: Event) -> None:
    """Say on standard error, which a supervisor keeps as a log, what an operator is to know.

    That is what stands in the way of work, and which turn a process goes by. The sink of processes
    that run on their own.
    """
    match event:
        case StoreFaltered(what, why):
            pass
        case RateUnknown(why):
            what = "rates"
        case MemoRefused(why):
            what = "memo"
        case TurnChanged(None):
            what, why = "turn", "none, so everything is read once a gap"
        case TurnChanged((number, of)):
            what, why = "turn", f"{number + 1}/{of}"
        case _:
            return
    at = RealClock().wall().isoformat(timespec="seconds")
    warnings().print(f"{at} {printable(what)}: {printable(why)}", highlight=False, soft_wrap=True)


class Output:
    """What one run of a verb says."""

    def __init__(self, json_to: str | None = None) -> None:
        self._json_to = json_to
        self.console = PrintableConsole(stderr=json_to == STANDARD_OUTPUT)
        if json_to is not None and json_to != STANDARD_OUTPUT:
            refuse_unwritable(Path(json_to), field="--json")

    @property
    def wanted(self) -> bool:
        """Whether somebody asked for the document."""
        return self._json_to is not None

    @property
    def is_file(self) -> bool:
        """Whether the document goes to a file, which can be written again as it grows."""
        return self._json_to not in {None, STANDARD_OUTPUT}

    def progress(self) -> Progress:
        """Return a progress bar, seen only on a terminal and gone when the work is done."""
        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
            expand=True,
        )

    def document(
        self,
        *,
        parameters: Mapping[str, object],
        rows: Sequence[Mapping[str, object]],
        summary: Mapping[str, object],
        environment: Mapping[str, object] | None = None,
        **more: str | Mapping[str, object],
    ) -> None:
        """Write the document to where it was asked for, if it was; `more` are parts of its own."""
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

    The encoder leaves DEL alone; it can be in a string only, as all that is not ASCII.
    """
    text = json.dumps(document, indent=2, default=str, ensure_ascii=True)
    return text.replace("\x7f", "\\u007f")


def describe_environment() -> dict[str, object]:
    """Return what one has to know of the machine to compare two documents."""
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
    if not os.path.isdir(folder):  # which no name is too long for
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
