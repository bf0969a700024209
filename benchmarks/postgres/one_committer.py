"""One committer: a process through which all transactions pass, one after the other.

As in Nomad (the plan applier), Goedel (the binder) and YARN's CapacityScheduler. It knows the cell,
for nobody else writes: so it judges in memory and takes no locks, then writes the rows in one call.
"""

import socket
import sys
from multiprocessing.connection import Connection, wait
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from benchmarks.client import DEMAND
from benchmarks.postgres.baselines import STATEMENT_TIMEOUT_MS, WRITE
from omega.model.machines import MachineState
from omega.store.postgres.connection import Link
from omega.store.postgres.packing import Big, Int
from omega.store.postgres.store import PostgresStore

Request = tuple[UUID, int, NDArray[np.int64], NDArray[np.int64]]
"""Id of the transaction, job, tasks, and the machine of each."""


class ShadowState:
    """The cell in memory: how many claims each machine still takes."""

    def __init__(self, url: str) -> None:
        store = PostgresStore(url, application_name="omega benchmark")
        rows = store.snapshot().rows
        store.close()
        asked = DEMAND > 0
        self._left = np.zeros(int(rows.id.max()) + 1, dtype=np.int64)
        takes = (rows.free[:, asked] // DEMAND[asked]).min(axis=1)
        self._left[rows.id] = np.where(rows.state == MachineState.OPEN, takes, 0)

    def grant(self, machine: NDArray[np.int64]) -> bool:
        """Take room for all claims, or for none."""
        np.subtract.at(self._left, machine, 1)
        if (self._left[machine] >= 0).all():
            return True
        np.add.at(self._left, machine, 1)
        return False


class OneCommitter:
    """Serves whoever has connected."""

    def __init__(self, url: str, listener: socket.socket) -> None:
        self._url = url
        self._listener = listener
        self._link = Link(
            url, application_name="omega benchmark", statement_timeout_ms=STATEMENT_TIMEOUT_MS
        )
        self._clients: list[Connection] = []
        self._together = False

    def serve(self) -> None:
        """Answer requests as they are found waiting, until standard input ends."""
        while 0 not in (ready := wait([0, self._listener, *self._clients])):
            if self._listener in ready:
                self._welcome()
            requests = []
            for client in ready:
                if isinstance(client, Connection):
                    try:
                        requests.append((client, client.recv()))
                    except EOFError:
                        self._clients.remove(client)
            if self._together and requests:
                self._commit(requests)
            else:
                for request in requests:
                    self._commit([request])

    def _welcome(self) -> None:
        client: Connection = Connection(self._listener.accept()[0].detach())
        if not self._clients:  # others have written since the last one left
            self._cell = ShadowState(self._url)
        self._clients.append(client)
        self._together = client.recv()
        client.send("welcome")

    def _commit(self, requests: list[tuple[Connection, Request]]) -> None:
        granted = [self._cell.grant(machine) for _, (_, _, _, machine) in requests]
        context = [
            request for (_, request), stands in zip(requests, granted, strict=True) if stands
        ]
        if len(context) == 1:
            ((number, job, task, machine),) = context
            shapes = np.ones(len(task), dtype=np.int64)
            self._link.call(
                WRITE,
                (number, "one", job, Int(task), Int(machine), Int(shapes), Int(DEMAND)),
            )
        elif context:
            self._write_together(context)
        for (client, _), stands in zip(requests, granted, strict=True):
            client.send(stands)

    def _write_together(self, context: list[Request]) -> None:
        numbers, jobs, tasks, machines = zip(*context, strict=True)
        ends = np.cumsum([len(task) for task in tasks])
        self._link.call(
            "SELECT baseline.write_transactions(%s, %s, %s, %s, %s, %s, %s)",
            (
                list(numbers),
                Big(jobs),
                Int(ends),
                Int(np.concatenate(tasks)),
                Int(np.concatenate(machines)),
                Int(np.ones(ends[-1], dtype=np.int64)),
                Int(DEMAND),
            ),
        )


def main() -> None:
    """Listen at an address, for the database of a URL, until standard input ends."""
    address, url = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        OneCommitter(url, listener).serve()


if __name__ == "__main__":
    main()
