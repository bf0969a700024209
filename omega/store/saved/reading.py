"""Reads a saved cell from a file that may be a stranger's.

Goal     Give back the cell that was written, or say in one sentence what is wrong with the file.
Promise  Each error names the file, the line and the field. Whatever the file holds, a reader uses
         bounded memory and time: lines, their length and the length of the whole are limited.
         Machines and jobs that a line names are there, and no machine holds more than it has.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.store.saved.lines.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from pydantic import ValidationError

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import any_kind
from omega.store.saved.cell import SavedCell
from omega.store.saved.collecting import Collected
from omega.store.saved.lines import (
    FORMAT,
    LINE,
    ORDER,
    VERSION,
    AnyLine,
    CellLine,
    EndLine,
    JobLine,
    ProcessLine,
)

LINE_BYTES_MAX: Final = 4 * 2**20
BYTES_MAX: Final = 2 * 2**30
"""Of all lines, unpacked: about ten million tasks."""
SPEC_BYTES_MAX: Final = 2 * LIMITS.wire_bytes_max
"""Of one job, as this file has it."""
REPORT_BYTES_MAX: Final = 4 * LIMITS.facts_bytes_max
"""Of the report of one process, as this file has it ..."""
REPORTS_BYTES_MAX: Final = 64 * 2**20
"""... and of all."""
SHOWN_MAX: Final = 200
_GZIP: Final = b"\x1f\x8b"


def read_cell(path: Path) -> SavedCell:
    """Return the cell in a file, gzipped or plain. Raises BadInput."""
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            if not is_packed:
                return _read(raw, str(path))
            with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
                return _read(cast("BinaryIO", unpacked), str(path))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput("it is cut off, or was changed: unpacking fails", file=str(path)) from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"it cannot be read: {why}", file=str(path)) from error
    except ValueError as error:  # a name with a null character
        raise BadInput("it cannot be read: no file can have this name", file=str(path)) from error


def _read(source: BinaryIO, file: str) -> SavedCell:
    collected = Collected()
    stage = -1
    number = reports = 0
    for number, text in lines_in(source, file):
        try:
            line = _parsed(text)
            if number == 1 and not isinstance(line, CellLine):
                raise BadInput("it is no file that omega snapshot wrote")
            if (here := ORDER.index(line.line)) < stage or (here == stage == 0):
                raise BadInput(f"a line {line.line!r} must not come after {ORDER[stage]!r}")
            stage = here
            if isinstance(line, EndLine):
                if line.lines != number - 1:
                    raise BadInput(f"it has {number - 1} lines before the last, not {line.lines}")
                break
            reports = _reports(line, text, reports)
            collected.take(line)
        except BadInput as problem:
            raise BadInput(
                problem.sentence, file=file, line=number, field=problem.field
            ) from problem
    else:
        raise BadInput("it is cut off: the last line is missing", file=file, line=number + 1)
    if source.read(1):
        raise BadInput("there is something after the last line", file=file, line=number + 1)
    return _checked(collected, file)


def _reports(line: AnyLine, text: bytes, before: int) -> int:
    """Return the bytes of all reports so far. Raises BadInput for a part that is too long."""
    match line:
        case ProcessLine():
            _refuse_long(text, REPORT_BYTES_MAX, "facts")
            _refuse_long(text, REPORTS_BYTES_MAX - before, "facts")
            return before + len(text)
        case JobLine() if len(text) > SPEC_BYTES_MAX:
            _refuse_long(json.dumps(line.spec).encode(), SPEC_BYTES_MAX, "spec")
    return before


def _refuse_long(text: bytes, most: int, field: str) -> None:
    """Raise BadInput for a part of a line that the database would not have had."""
    if len(text) > most:
        raise BadInput(f"longer than {most:,} bytes", field=field)


def lines_in(
    source: BinaryIO, file: str, line_bytes_max: int = LINE_BYTES_MAX
) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1; raise BadInput for one that is too long."""
    total = number = 0
    while text := source.readline(line_bytes_max + 1):
        number += 1
        total += len(text)
        if len(text) > line_bytes_max:
            raise BadInput(f"longer than {line_bytes_max:,} bytes", file=file, line=number)
        if total > BYTES_MAX:
            raise BadInput(f"the file is longer than {BYTES_MAX:,} bytes", file=file, line=number)
        yield number, text


def _parsed(text: bytes) -> AnyLine:
    """Return a line; raise BadInput, with the field, for one that is not of the form."""
    try:
        line = LINE.validate_json(text)
    except ValidationError as error:
        raise refusal(error, ORDER) from error
    if isinstance(line, CellLine) and line.version != VERSION:
        raise BadInput(
            f"it is a file of {FORMAT} {line.version}, and this is for {VERSION}", field="version"
        )
    return line


def refusal(error: ValidationError, lines: Sequence[str]) -> BadInput:
    """Return what is wrong with a line, with its field; there are lines of these names."""
    problem: Any = error.errors(include_url=False, include_context=False)[0]
    _, *where = problem["loc"] or [""]
    if problem["type"].startswith("union_tag"):
        return BadInput(f"`line` is none of {', '.join(lines)}")
    return BadInput(problem["msg"][:SHOWN_MAX], field=_field(where))


def _field(where: Sequence[str | int]) -> str | None:
    """Return the way to a value, through keys that a stranger may have written."""
    names = [str(key) for key in where]
    way = ".".join(name if name.isprintable() else repr(name) for name in names)
    return way[:SHOWN_MAX] or None


def _checked(collected: Collected, file: str) -> SavedCell:
    """Return the cell; raise BadInput if its parts contradict each other."""
    try:
        cell = collected.cell()
    except BadInput as problem:
        raise BadInput(problem.sentence, file=file, field=problem.field) from problem
    machines = cell.machines
    over = any_kind(cell.used > machines.machines.capacity + machines.notice)
    if over.any():
        name = machines.machines.names[int(over.argmax())]
        raise BadInput(f"the tasks on {name!r} hold more than it has", file=file, field="amounts")
    parents = {job.id: job for job in cell.jobs}
    for job in cell.jobs:
        if job.goes_on and job.parent is not None and job.parent not in parents:
            raise BadInput(f"job {job.id} helps a job that is not there", file=file, field="parent")
    return cell
