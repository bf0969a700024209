"""A file of jobs or pipelines, named on the command line, or standard input.

Goal     Let every command that takes a spec take `-`, too.
Promise  No more than a file may be long is read. Errors name the file, or standard input.
Source   docs/guide/jobs.md.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.workload.spec import content_of

STANDARD_INPUT: Final = "-"
_T = TypeVar("_T")


def parsed(spec: Path, parse: Callable[[bytes, str], _T]) -> _T:
    """Return what `parse` makes of a file or of standard input, and of its name in errors."""
    if str(spec) != STANDARD_INPUT:
        return parse(content_of(spec), str(spec))
    content = sys.stdin.buffer.read(LIMITS.file_bytes_max + 1)
    if len(content) > LIMITS.file_bytes_max:
        raise BadInput(f"it is longer than {LIMITS.file_bytes_max:,} bytes", file="standard input")
    return parse(content, "standard input")
