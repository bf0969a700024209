"""A ring all-reduce over sockets: each task adds up what all tasks have, and prints the sum.

It knows the others from its environment alone. Each sends to the next task and receives from the
one before, N - 1 times, as in the ring of Patarasuk and Yuan (2009) without chunks.
"""

import os
import socket
import sys
from threading import Event

TRIES = int(os.environ.get("TRIES", "600"))
PAUSE_S = 0.1
"""The others may start up to a minute later."""


def to_next(address: tuple[str, int]) -> socket.socket:
    for _ in range(TRIES):
        try:
            return socket.create_connection(address)
        except OSError:
            Event().wait(PAUSE_S)
    raise SystemExit(f"nobody answers at {address}")


def main() -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    machines = os.environ["OMEGA_MACHINES"].split(",")
    port = int(os.environ["MASTER_PORT"])
    assert machines[0] == os.environ["MASTER_ADDR"]
    after = (rank + 1) % size
    with (
        socket.create_server((machines[rank], port + rank)) as server,
        to_next((machines[after], port + after)) as sending,
        server.accept()[0] as receiving,
        receiving.makefile("r") as lines,
    ):
        total = passed = 10**rank
        for _ in range(size - 1):
            sending.sendall(f"{passed}\n".encode())
            passed = int(lines.readline())
            total += passed
    sys.stdout.write(f"{total}\n")


if __name__ == "__main__":
    main()
