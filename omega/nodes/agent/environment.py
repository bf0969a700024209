"""The environment of a task's program.

Goal     Give a program what its job says, and nothing of the agent's: that holds passwords.
Promise  A file of variables is read only from the folders that the operator allows, and its values
         appear in no message.
Source   docs/decisions/0044-programs-and-agents.md; Nomad's env_file, systemd's EnvironmentFile.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from omega.model.programs import is_variable
from omega.nodes.agent.task_driver import Launch, NotStarted

SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV_FILE_BYTES_MAX: Final = 2**20
MARK: Final = "OMEGA_TASK_KEY"
"""Tells which task a process belongs to."""


def environment_of(
    launch: Launch, *, home: str, work: Path, env_dirs: Sequence[Path]
) -> dict[str, str]:
    """Return the environment of a program. Raises NotStarted for a file that it may not name.

    `home` is the home folder of its user; `work` is the task's own folder.
    """
    gpus = ",".join(map(str, launch.gpus))
    named = launch.program.env_file
    return {
        "PATH": SEARCH_PATH,
        "HOME": home,
        "LANG": "C.UTF-8",
        "TMPDIR": str(work),
        **({} if named is None else _of_file(named, env_dirs)),
        **dict(launch.program.env),
        **launch.env,
        "CUDA_VISIBLE_DEVICES": gpus,
        "NVIDIA_VISIBLE_DEVICES": gpus or "void",
        MARK: str(launch.key),
    }


def _of_file(named: str, env_dirs: Sequence[Path]) -> dict[str, str]:
    """Return the variables of a file of `NAME=value` lines; blank lines and comments count not."""
    refused = NotStarted(f"this machine allows no env file {named}")
    try:
        path = Path(named).resolve()
        if not any(path.is_relative_to(folder) for folder in env_dirs):
            raise refused
        if not path.is_file() or path.stat().st_size > ENV_FILE_BYTES_MAX:
            raise refused
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError, RuntimeError):
        raise refused from None
    variables = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not (equals and is_variable(name)) or "\0" in value:
            raise NotStarted(f"line {number} of the env file {named} is not NAME=value")
        variables[name] = value
    return variables
