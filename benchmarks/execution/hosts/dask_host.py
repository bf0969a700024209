"""Hosts a LocalCluster of Dask: `dask_host.py SLOTS FOLDER`, then an order on each line."""

import json
import os
import subprocess
import sys

from distributed import Client, LocalCluster


def run(_number: int, command: list[str]) -> int:
    """Run a command in a worker; return its exit code."""
    return subprocess.run(command, check=False).returncode


def main() -> None:
    """Answer orders until the input ends."""
    cluster = LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        dashboard_address=":0",
        local_directory=sys.argv[2],
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(int(sys.argv[1]))
        _say({"ready": True})
        for line in sys.stdin:
            order = json.loads(line)
            # Impure: equal calls are tasks of their own.
            calls = client.map(run, range(order["tasks"]), command=order["command"], pure=False)
            codes = client.gather(calls)
            _say({"ended": len(codes), "failed": sum(map(bool, codes))})


def _say(answer: dict[str, int]) -> None:
    os.write(1, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
