"""Hosts Ray: `ray_host.py SLOTS FOLDER`, then an order on each line of the input."""

import json
import os
import subprocess
import sys

import ray

ANSWERS = os.dup(1)
"""The output, on which Ray may not write."""


def run(command: list[str]) -> int:
    """Run a command in a worker; return its exit code."""
    return subprocess.run(command, check=False).returncode


def main() -> None:
    """Answer orders until the input ends."""
    os.dup2(2, 1)
    ray.init(num_cpus=int(sys.argv[1]), log_to_driver=False, include_dashboard=False)
    remote = ray.remote(run)
    _say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        codes = ray.get([remote.remote(order["command"]) for _ in range(order["tasks"])])
        _say({"ended": len(codes), "failed": sum(map(bool, codes))})
    ray.shutdown()


def _say(answer: dict[str, int]) -> None:
    os.write(ANSWERS, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
