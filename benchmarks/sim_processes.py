"""Simulations in separate processes, with the code of any checkout."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import Stage
from omega.errors import InvariantBroken, OmegaError

SCRIPT: Final = Path(__file__).with_name("simulate_once.py")
Answer = Mapping[str, Any]
"""The result of a run, as the script writes it."""


def answers(
    stage: Stage, python: Path, root: Path, orders: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """Run all orders at the same time, with the code of a checkout; return their results."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with ExitStack() as stack:
        runs = []
        for order in orders:
            run = stack.enter_context(
                subprocess.Popen(
                    [python, "-P", SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                    start_new_session=True,  # Ctrl-C reaches only this process
                )
            )
            stack.callback(run.kill)  # harmless once it has ended
            assert run.stdin is not None
            run.stdin.write(json.dumps(order))
            run.stdin.close()
            runs.append(run)
        return [_answer(stage, run) for run in runs]


def _answer(stage: Stage, run: "subprocess.Popen[str]") -> Answer:
    assert run.stdout is not None
    told = run.stdout.read()
    stage.go_on()
    if run.wait():
        raise OmegaError("a simulation ended before its time")
    answer: Answer = json.loads(told)
    if not answer["tasks_placed"]:
        raise InvariantBroken("a simulation placed nothing")
    return answer
