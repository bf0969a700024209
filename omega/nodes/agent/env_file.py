"""Files of environment variables on the machine, which jobs may name.

Goal     Give programs variables, such as passwords, that are not in the database.
Promise  A file is read only from folders that are allowed. No message shows a variable's value.
Source   docs/guide/agents.md; docker's --env-file.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from omega.model.programs import RESERVED, VARIABLE
from omega.nodes.agent.task_driver import NotStarted

ENV_FILE_BYTES_MAX: Final = 2**20


def variables_of_file(name: str | None, allowed: Sequence[Path]) -> dict[str, str]:
    """Return the variables of a file on the machine. Raises NotStarted."""
    if name is None:
        return {}
    path = Path(os.path.realpath(name))
    if not any(path.is_relative_to(os.path.realpath(folder)) for folder in allowed):
        raise NotStarted(f"the agent of this machine does not read variables from {name!r}")
    if not path.is_file():
        raise NotStarted(f"this machine has no file of variables {name!r}")
    try:
        with path.open("rb") as file:
            content = file.read(ENV_FILE_BYTES_MAX + 1)
        lines = content.decode("utf-8").splitlines()
    except OSError as error:
        raise NotStarted(f"the variables in {name!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NotStarted(f"the file of variables {name!r} is not UTF-8") from None
    if len(content) > ENV_FILE_BYTES_MAX:
        raise NotStarted(
            f"the file of variables {name!r} is longer than {ENV_FILE_BYTES_MAX} bytes"
        )
    return dict(
        _variable(name, number, line) for number, line in enumerate(lines, 1) if _says(line)
    )


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _variable(file: str, number: int, line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not VARIABLE.fullmatch(name) or "\0" in value:
        raise NotStarted(f"line {number} of {file!r} is not NAME=value")
    if name.startswith(RESERVED):
        raise NotStarted(f"line {number} of {file!r} sets a variable that begins with {RESERVED}")
    return name, value
