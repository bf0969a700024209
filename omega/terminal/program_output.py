"""What tasks' programs wrote, passed on to this process's own outputs.

Goal     Let `omega run` and `omega logs` stand in a pipe as the program itself would.
Promise  A pipe or a file receives the bytes as they are. A terminal receives printable characters,
         line ends and tabs: a log must not control the terminal of whoever reads it. What cannot be
         written raises OSError once; the process then ends without a second complaint.
Source   docs/guide/agents.md.
"""

import codecs
import os
import sys
from typing import BinaryIO, Final, TextIO

from omega.reports.printable import escaped

KEPT: Final = "\n\t"


class ProgramOutput:
    """One of this process's outputs, for bytes of programs."""

    def __init__(self, stream: TextIO) -> None:
        beneath = getattr(stream, "rich_proxied_file", stream)
        self._text: TextIO = beneath
        self._bytes: BinaryIO = beneath.buffer
        self._is_terminal = beneath.isatty()

    def write(self, said: bytes, decoder: codecs.IncrementalDecoder) -> None:
        """Pass bytes on; `decoder` keeps what is left of a character between two writes.

        Raises OSError if they cannot be written; BrokenPipeError if nobody reads them any more.
        """
        try:
            self._write(said, decoder)
        except OSError:
            # What is left in the buffers is written when the process ends, and would fail again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._bytes.fileno())
            os.close(nowhere)
            raise

    def _write(self, said: bytes, decoder: codecs.IncrementalDecoder) -> None:
        if self._is_terminal:
            text = decoder.decode(said).replace("\r\n", "\n")
            self._text.write(escaped(text, keep=KEPT))
            self._text.flush()
        else:
            self._text.flush()
            self._bytes.write(said)
            self._bytes.flush()


def utf8_decoder() -> codecs.IncrementalDecoder:
    """Return a decoder of UTF-8 that replaces what it cannot read."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


def standard_outputs() -> dict[str, ProgramOutput]:
    """Return this process's outputs by the names of a task's, without those that are closed."""
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    return {name: ProgramOutput(it) for name, it in streams.items() if it is not None}
