"""Recordings: files to which a scheduler writes its transactions, one line each.

Goal     Write while a scheduler works, and read what may be a stranger's file.
Promise  A line is written whole, at once. Only its owner may read the file, and none that is there
         is overwritten. A reader holds one line at a time; each error names the file, the line and
         the field.
Source   docs/decisions/0057-replay.md; omega.store.saved.recording_lines.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from omega import __version__
from omega.errors import BadInput
from omega.store.saved.reading import BYTES_MAX, lines_in, refusal
from omega.store.saved.recorded import RecordedCommit
from omega.store.saved.recording_form import line_of, recorded_in
from omega.store.saved.recording_lines import (
    FORMAT,
    RECORDING_LINE,
    VERSION,
    AnyRecordingLine,
    CommitLine,
    RecordingEndLine,
    RecordingLine,
)

LINE_BYTES_MAX: Final = 64 * 2**20
"""Of one transaction; the largest that is allowed takes a few."""
ORDER: Final = ("recording", "commit", "end")
MISSING: Final = (
    "the last line is missing: the file was cut off, or its scheduler was killed, could not write"
    " more or still runs; --unfinished judges what is there"
)


class RecordingFile:
    """A recording that is being written."""

    def __init__(self, path: Path, *, kind: str, replica: str, began_ms: int) -> None:
        """Make the file. Raises BadInput if it is there, or cannot be made."""
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError as error:
            raise BadInput("it is there, and is not overwritten", file=str(path)) from error
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no file can have this name"
            raise BadInput(f"it cannot be written: {why}", file=str(path)) from error
        self._commits = self._bytes = 0
        line = RecordingLine(omega=__version__, kind=kind, replica=replica, began_ms=began_ms)
        try:
            self._write(line.text())
        except OSError as error:
            os.close(self._file)
            path.unlink(missing_ok=True)
            said = f"it cannot be written: {error.strerror or error}"
            raise BadInput(said, file=str(path)) from error

    def write(self, recorded: RecordedCommit) -> None:
        """Add a transaction. Raises OSError, and no more is written."""
        try:
            text = line_of(recorded).text()
        except ValidationError as error:
            said = refusal(error, ORDER).sentence
            raise OSError(f"a transaction is not of the form of recordings: {said}") from error
        if len(text) > LINE_BYTES_MAX or self._bytes + len(text) > BYTES_MAX:
            raise OSError(
                f"a line has at most {LINE_BYTES_MAX:,} bytes, and a recording {BYTES_MAX:,}"
            )
        self._write(text)
        self._commits += 1

    def close(self) -> None:
        """Write the last line, and close the file."""
        try:
            self._write(RecordingEndLine(commits=self._commits).text())
        finally:
            os.close(self._file)

    def abandon(self) -> None:
        """Close the file without a last line: not all that was committed is in it."""
        os.close(self._file)

    def _write(self, text: bytes) -> None:
        """Write a line whole, or not at all."""
        left = text
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._bytes)
            raise
        self._bytes += len(text)


def recorded_commits(path: Path, *, is_unfinished: bool = False) -> Iterator[RecordedCommit]:
    """Yield the transactions of a recording. Raises BadInput.

    With `is_unfinished` the file may end anywhere, as that of a scheduler that was killed.
    """
    file = str(path)
    try:
        with path.open("rb") as source:
            yield from _commits(lines_in(source, file, LINE_BYTES_MAX), file, is_unfinished)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"it cannot be read: {why}", file=file) from error
    except ValueError as error:  # a name with a null character
        raise BadInput("it cannot be read: no file can have this name", file=file) from error


def _commits(
    lines: Iterator[tuple[int, bytes]],
    file: str,
    is_unfinished: bool,  # noqa: FBT001 - as above
) -> Iterator[RecordedCommit]:
    first: RecordingLine | None = None
    number = 0
    for number, text in lines:
        if is_unfinished and first is not None and not text.endswith(b"\n"):
            return
        try:
            line = _next(_parsed(text), first, number)
            if isinstance(line, CommitLine) and first is not None:
                yield recorded_in(line, first.kind, first.replica)
        except BadInput as problem:
            raise BadInput(
                problem.sentence, file=file, line=number, field=problem.field
            ) from problem
        if isinstance(line, RecordingEndLine):
            if next(lines, None) is not None:
                said = "there is something after the last line"
                raise BadInput(said, file=file, line=number + 1)
            return
        first = line if isinstance(line, RecordingLine) else first
    if not is_unfinished or first is None:
        raise BadInput(MISSING, file=file, line=number + 1)


def _next(line: AnyRecordingLine, first: RecordingLine | None, number: int) -> AnyRecordingLine:
    """Return a line that may stand here. Raises BadInput."""
    if first is None and not isinstance(line, RecordingLine):
        raise BadInput("it is no file that omega scheduler run --record wrote")
    if first is not None and isinstance(line, RecordingLine):
        raise BadInput(f"a line {line.line!r} must not come after the first")
    if isinstance(line, RecordingEndLine) and line.commits != number - 2:
        raise BadInput(
            f"it has {number - 2} commits before the last line, not {line.commits}",
            field="commits",
        )
    return line


def _parsed(text: bytes) -> AnyRecordingLine:
    """Return a line; raise BadInput, with the field, for one that is not of the form."""
    try:
        line = RECORDING_LINE.validate_json(text)
    except ValidationError as error:
        raise refusal(error, ORDER) from error
    if isinstance(line, RecordingLine) and line.version != VERSION:
        raise BadInput(
            f"it is a file of {FORMAT} {line.version}, and this is for {VERSION}", field="version"
        )
    return line
