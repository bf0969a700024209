"""What tasks' programs wrote, passed on to this process's own outputs.

Goal     Let `omega run` and `omega logs` stand in a pipe as the program itself would.
Promise  A pipe or a file receives the bytes as they are. A terminal receives printable characters,
         line ends and tabs: a log must not control the terminal of whoever reads it.
Source   docs/guide/agents.md.
"""

import codecs
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
        """Pass bytes on; `decoder` keeps what is left of a character between two writes."""
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
    """Return this process's outputs by the names of a task's."""
    return {"stdout": ProgramOutput(sys.stdout), "stderr": ProgramOutput(sys.stderr)}
