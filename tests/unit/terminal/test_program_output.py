"""What programs wrote, passed on to outputs that take it and to one that does not."""

import os
import sys
from io import TextIOWrapper

import pytest

from omega.terminal.program_output import ProgramOutput, standard_outputs, utf8_decoder


def test_who_reads_no_more_is_said_once() -> None:
    reading, writing = os.pipe()
    stream = TextIOWrapper(os.fdopen(writing, "wb"))
    output = ProgramOutput(stream)
    output.write(b"first", utf8_decoder())
    assert b"first" == os.read(reading, 100)
    os.close(reading)

    with pytest.raises(BrokenPipeError):
        output.write(b"second", utf8_decoder())

    stream.close()  # as the end of the process does: what is left goes nowhere


def test_an_output_that_is_closed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    assert ["stderr"] == list(standard_outputs())
