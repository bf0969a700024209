"""The wire form of a program, which stands in the task groups of a job's wire form.

Goal     Write a program down so that every store and every agent reads the same one.
Promise  Lossless: `program_from_wire(program_to_wire(program)) == program`. Every key is always
         there but `check`, which programs without one lack; and no other.
Source   docs/decisions/0044-programs-and-agents.md; omega.model.wire.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from omega.model.programs import Check, Program, Restart
from omega.model.wire_values import many, text, whole


def program_to_wire(program: Program) -> dict[str, object]:
    """Return the wire form of a program."""
    wire = {**asdict(program), "command": list(program.command), "env": dict(program.env)}
    if program.check is None:
        del wire["check"]
    else:
        wire["check"]["command"] = list(program.check.command)
    return wire


def program_from_wire(wire: Mapping[str, Any]) -> Program:
    """Return the program; raise KeyError, TypeError, ValueError or AssertionError.

    A key that no program has is refused: what it asks for would not be done.
    """
    if not isinstance(wire, dict) or not isinstance(wire["env"], dict):
        raise TypeError(f"{str(wire)[:30]} is no program with variables")
    timeout_ms, restart = wire["timeout_ms"], wire["restart"]
    program = Program(
        command=tuple(map(text, many(wire["command"]))),
        env=tuple(sorted((name, text(value)) for name, value in wire["env"].items())),
        env_file=_text_or_none(wire["env_file"]),
        image=_text_or_none(wire["image"]),
        user=_text_or_none(wire["user"]),
        working_dir=_text_or_none(wire["working_dir"]),
        timeout_ms=None if timeout_ms is None else whole(timeout_ms),
        stop_signal=text(wire["stop_signal"]),
        stop_grace_ms=whole(wire["stop_grace_ms"]),
        restart=Restart(
            attempts=whole(restart["attempts"]),
            within_ms=whole(restart["within_ms"]),
            delay_ms=whole(restart["delay_ms"]),
        ),
        check=_check_from_wire(wire["check"]) if "check" in wire else None,
    )
    if program_to_wire(program) != wire:
        raise ValueError("a program has a field that none has")
    return program


def _check_from_wire(wire: Mapping[str, Any]) -> Check:
    port = wire["port"]
    return Check(
        port=None if port is None else whole(port),
        path=_text_or_none(wire["path"]),
        command=tuple(map(text, many(wire["command"]))),
        interval_ms=whole(wire["interval_ms"]),
        timeout_ms=whole(wire["timeout_ms"]),
        failures=whole(wire["failures"]),
    )


def _text_or_none(value: object) -> str | None:
    return None if value is None else text(value)
