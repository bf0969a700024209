"""Processes that commit at the same time, in slices.

A slice is a short time in which all processes commit in one way. Slices of different ways
alternate, so that other load on the machine slows all ways alike.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from omega.errors import InvariantBroken, OmegaError

Measured = TypeVar("Measured")
"""The result of a slice."""
SCRIPT: Final = Path(__file__).with_name("client.py")
"""A client for any checkout, with omega's ways to commit, and deltas."""
ALL_WAYS: Final = ("-m", "benchmarks.postgres.client")
"""A client of this checkout, with all ways to commit."""
HOT_MACHINES: Final = 10
CONTENTIONS: Final = ("disjoint", "uniform", "hot")
"""Each client claims on separate machines; all claim anywhere; all claim on the same ten."""
ENDLESS: Final = 2**31
DIED: Final = "a client of the benchmark ended before its time"


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order for all clients in one slice."""

    variant: str
    clients: int
    claims: int
    """Claims of one transaction."""
    contention: str
    seconds: float = ENDLESS
    """Length of the slice; a client ends its current transaction, and does at least one."""
    transactions: int = ENDLESS
    """Most transactions of each client."""

    def machines(self, client: int, machines: int) -> tuple[int, int]:
        """Return the first and the last machine that a client claims on."""
        if self.contention == "hot":
            return 1, min(HOT_MACHINES, machines)
        if self.contention == "uniform":
            return 1, machines
        edges = np.linspace(0, machines, self.clients + 1).astype(int)
        return int(edges[client]) + 1, int(edges[client + 1])


@dataclass(frozen=True, eq=False)
class Slice:
    """The result of all clients together in one slice."""

    claims_per_s: float
    """Granted claims per second."""
    transactions: int
    verdicts: Counter[str]
    repeats: Counter[str]
    latencies_s: NDArray[np.float64]
    """Time of each transaction (transactions,), from the call to its verdicts."""

    @property
    def granted(self) -> int:
        """The number of claims that were granted."""
        return self.verdicts["accepted"]

    @classmethod
    def of(cls, answers: Sequence[dict[str, Any]]) -> "Slice":
        """Add up the clients' answers; each client's rate is over the time that it took."""
        return cls(
            sum(answer["verdicts"].get("accepted", 0) / answer["elapsed_s"] for answer in answers),
            sum(len(answer["latencies_s"]) for answer in answers),
            sum((Counter(answer["verdicts"]) for answer in answers), Counter()),
            sum((Counter(answer["repeats"]) for answer in answers), Counter()),
            np.concatenate([answer["latencies_s"] for answer in answers]),
        )


class ClientProcess:
    """A process that answers messages."""

    def __init__(self, *command: str | Path) -> None:
        self._process = _start(*command)

    def ask(self, do: str, **message: object) -> dict[str, Any]:
        """Send a message and wait for the answer."""
        self.send(do, **message)
        return self.receive()

    def send(self, do: str, **message: object) -> None:
        """Send a message."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **message}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as gone:
            raise InvariantBroken(DIED) from gone

    def receive(self) -> dict[str, Any]:
        """Wait for an answer; raise OmegaError if it is an error."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise InvariantBroken(DIED)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise OmegaError(answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._process.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@contextmanager
def client_of(python: Path, url: str, name: str, machines: int) -> Iterator[ClientProcess]:
    """Make a cell in an empty database; yield a client on it.

    Both are by the code of the checkout that the interpreter belongs to.
    """
    # -P: another checkout's client must not import from this checkout's folder.
    with ClientProcess(python, "-P", SCRIPT) as client:
        client.ask("make_cell", url=url, machines=machines)
        client.ask("open", url=url, name=name)
        yield client


class Workers:
    """The clients of one database."""

    def __init__(self, clients: Sequence[ClientProcess], machines: int) -> None:
        self._clients = clients
        self._machines = machines
        self._slices = 0

    def do(self, order: Order, seed: int) -> Slice:
        """Run an order on the first `order.clients` clients at the same time; return the slice."""
        self._slices += 1
        at_work = self._clients[: order.clients]
        for number, client in enumerate(at_work):
            client.send(
                "get_ready",
                variant=order.variant,
                machines=order.machines(number, self._machines),
                claims=order.claims,
                seconds=order.seconds,
                transactions=order.transactions,
                seed=(seed, self._slices, number),
            )
        for client in at_work:
            client.receive()
        for client in at_work:
            client.send("go")
        return Slice.of([client.receive() for client in at_work])

    def check(self, granted: int) -> None:
        """Raise InvariantBroken unless so many tasks run, and no invariant is broken."""
        found = self._clients[0].ask("check")
        if found["violations"]:
            raise InvariantBroken("the cell is broken", story=found["violations"][:20])
        if found["live"] != granted:
            raise InvariantBroken(f"{granted} claims were granted, {found['live']} tasks run")


@contextmanager
def workers(
    url: str,
    *,
    clients: int,
    machines: int,
    python: Path | None = None,
    address: str | None = None,
) -> Iterator[Workers]:
    """Create a cell in the empty database, and yield so many clients of it.

    The clients run the code of the checkout that the interpreter belongs to. With the address of
    one committer, they run this checkout's code, with all ways to commit.
    """
    assert python is None or address is None, "another checkout knows no one committer"
    # -P: another checkout's client must not import from the script's folder, which is this one's.
    what = (SCRIPT,) if address is None else ALL_WAYS
    command = (python or Path(sys.executable), "-P", *what)
    with ExitStack() as stack:
        processes = [stack.enter_context(ClientProcess(*command)) for _ in range(clients)]
        processes[0].ask("make_cell", url=url, machines=machines)
        for number, client in enumerate(processes):
            client.ask("open", url=url, name=f"client-{number}", address=address)
        yield Workers(processes, machines)


@contextmanager
def one_committer(url: str) -> Iterator[str]:
    """Yield the address at which one process commits for all clients."""
    with TemporaryDirectory(prefix="omega-") as folder:
        address = str(Path(folder) / "committer")
        # It ends when its input does.
        module = "benchmarks.postgres.one_committer"
        with _start(sys.executable, "-m", module, address, url) as process:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise InvariantBroken("the one committer did not start")
            yield address


def alternate(
    ways: Mapping[str, Callable[[], Measured]], rounds: int, rng: np.random.Generator
) -> Iterator[tuple[str, Measured]]:
    """Run one slice of each way per round, in random order; yield (way, slice)."""
    for _ in range(rounds):
        for name in rng.permutation(list(ways)).tolist():
            yield name, ways[name]()


def _start(*command: str | Path) -> subprocess.Popen[str]:
    """Start a process that ends when its input does; Ctrl-C reaches only this process."""
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    )
