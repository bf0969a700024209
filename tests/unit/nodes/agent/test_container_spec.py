"""What the engine says of a container that has ended, as an exit."""

from typing import Any

import pytest

from omega.model.exits import Exit, ExitCause
from omega.nodes.agent.container_spec import LABEL_BOOT, exit_of_container

NOW, EARLIER = "boot", "an earlier boot"
RESTARTED = Exit(cause=ExitCause.LOST, detail="the machine was restarted")


def inspected(status: str, code: int, boot: str | None = NOW, **state: object) -> dict[str, Any]:
    return {
        "State": {"Status": status, "ExitCode": code, **state},
        "Config": {"Labels": {} if boot is None else {LABEL_BOOT: boot}},
        "HostConfig": {},
    }


@pytest.mark.parametrize("boot", [NOW, EARLIER])
def test_a_container_killed_for_memory_says_so(boot: str) -> None:
    seen = inspected("exited", 137, boot, OOMKilled=True)

    assert exit_of_container(seen, 2, NOW) == Exit(cause=ExitCause.OUT_OF_MEMORY, restarts=2)


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    [
        ("created", 0, ExitCause.LOST),
        ("exited", -1, ExitCause.LOST),
        ("exited", 143, ExitCause.SIGNALLED),
        ("exited", 137, ExitCause.SIGNALLED),
        ("exited", 255, ExitCause.EXITED),
        ("dead", 7, ExitCause.EXITED),
    ],
)
@pytest.mark.parametrize("boot", [NOW, None])
def test_what_a_state_means(status: str, code: int, cause: ExitCause, boot: str | None) -> None:
    end = exit_of_container(inspected(status, code, boot), 0, NOW)

    assert end.cause is cause
    assert end != RESTARTED


@pytest.mark.parametrize(
    ("status", "code"),
    [("exited", 143), ("exited", 137), ("exited", 255), ("exited", -1), ("created", 0)],
)
def test_a_container_that_the_shutdown_ended_is_lost(status: str, code: int) -> None:
    assert exit_of_container(inspected(status, code, EARLIER), 0, NOW) == RESTARTED


@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_program_that_ended_before_the_shutdown_keeps_its_exit(code: int) -> None:
    seen = inspected("exited", code, EARLIER)

    assert exit_of_container(seen, 0, NOW) == exit_of_container(inspected("exited", code), 0, NOW)
