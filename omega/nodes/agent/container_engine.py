"""The engine of containers, as far as tasks need it.

Goal     Keep the Docker SDK, an extra, in one module.
Promise  Every call raises `EngineError` and nothing else of the engine's, with one line for a user.
         An engine that falls silent is such an error: no call waits for ever.
Source   The Docker Engine API, which `podman system service` speaks, too.
"""

import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Timer
from typing import Any, Final

import docker
import docker.errors
import docker.types
import requests.exceptions
import urllib3.exceptions
from docker.utils import parse_host

from omega.nodes.agent.own_address import LOOPBACK

TIMEOUT_S: Final = 30
"""For how long an engine may send nothing before and within an answer."""
PULL_SILENCE_S: Final = 600
"""The same for pulls, which may take as long as they like while they make progress. Registries may
make clients wait, and Podman says nothing while it unpacks a layer, which may hold many GiB."""
INVALID: Final = 400
MISSING: Final = 404
BUSY: Final = 409
"""A container's removal is in progress already, or it does not run and cannot be killed."""
FAILED: Final = 500
NOT_NOW: Final = (502, 503, 504)
READ_BYTES: Final = 65_536
UNIX: Final = "http+unix://"
OF_HOST: Final = frozenset({"init", "nano_cpus", "mem_limit", "memswap_limit", "device_requests"})
"""Arguments of a container that belong to its `HostConfig`."""


class EngineError(Exception):
    """The engine refused a call, or did not answer."""

    def __init__(self, line: str, status: int | None = None) -> None:
        """`status` is that of the answer, as in HTTP; None without an answer."""
        super().__init__(line)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """Whether there is no such container or image."""
        return self.status == MISSING

    @property
    def has_ended(self) -> bool:
        """Whether a container could not be killed because it does not run."""
        return self.status in (MISSING, BUSY)

    @property
    def is_refusal(self) -> bool:
        """Whether the engine answered that it will not; else it may do so later."""
        return self.status is not None and self.status not in (BUSY, *NOT_NOW)


class _Client(docker.APIClient):  # type: ignore[misc]  # the SDK ships no types
    """The SDK's client, with a time limit for each read of an answer."""

    def send(self, request: Any, **settings: Any) -> Any:  # noqa: ANN401 - types of the SDK
        """Send a request. The SDK sets no limit for pulls, and the usual one for all others."""
        settings["timeout"] = settings.get("timeout") or (TIMEOUT_S, PULL_SILENCE_S)
        self.last_answer = super().send(request, **settings)
        return self.last_answer

    def _disable_socket_timeout(self, _: object) -> None:
        """Leave the limit as it is: the SDK would remove it from logs."""


class Engine:
    """A connection to Docker or Podman, for one thread."""

    def __init__(self, address: str, *, version: str | None = None) -> None:
        """Connect. Raises EngineError.

        Args:
            address: where the engine listens.
            version: the version of its API, if an earlier connection has asked for it. Podman
                asks the system's package manager, some times over, before it tells it.
        """
        try:
            with _translated():
                _probe(address)
                self._api = _Client(base_url=address, version=version, timeout=TIMEOUT_S)
        except ValueError as error:  # what no URL, host or path may hold
            raise EngineError(str(error)) from error

    @property
    def version(self) -> str:
        """The version of the API that this connection speaks."""
        return str(self._api.api_version)

    def close(self) -> None:
        """Let go of the engine."""
        self._api.close()

    def containers(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the containers with these labels, also those that have ended."""
        wanted = [f"{name}={value}" for name, value in labels.items()]
        with _translated():
            return list(self._api.containers(all=True, filters={"label": wanted}))

    def inspect(self, container: str) -> dict[str, Any]:
        """Return all that the engine says of a container."""
        with _translated():
            return dict(self._api.inspect_container(container))

    def has_image(self, image: str) -> bool:
        """Return whether an image is on this machine."""
        try:
            with _translated():
                self._api.inspect_image(image)
        except EngineError as error:
            if error.is_missing:
                return False
            raise
        return True

    def pull(self, image: str, *, is_wanted: Callable[[], bool]) -> None:
        """Get an image from its registry; leave off at the first event at which it is not wanted.

        An image without a tag is that of `latest`.
        """
        with _translated(PULL_SILENCE_S):
            events = self._api.pull(image, stream=True, decode=True)
            with closing(self._api.last_answer):  # which has the engine leave off
                for event in events:
                    if not is_wanted():
                        return
                    if "error" in event:
                        line = " ".join(str(event["error"]).split())
                        raise EngineError(line, FAILED)

    def create(self, image: str, spec: Mapping[str, Any], gpus: Sequence[int]) -> str:
        """Make a container, and return its name."""
        settings = dict(spec)
        if gpus:
            devices = [str(slot) for slot in gpus]
            request = docker.types.DeviceRequest(device_ids=devices, capabilities=[["gpu"]])
            settings["device_requests"] = [request]
        of_host = {name: settings.pop(name) for name in OF_HOST & settings.keys()}
        with _translated():
            host = self._api.create_host_config(**of_host)
            return str(self._api.create_container(image, host_config=host, **settings)["Id"])

    def start(self, container: str) -> None:
        """Start a container."""
        with _translated():
            self._api.start(container)

    def kill(self, container: str, signal: str) -> None:
        """Send a signal to a container."""
        with _translated():
            self._api.kill(container, signal=signal)

    def execute(self, container: str, command: Sequence[str], timeout_s: float) -> int | None:
        """Run a command in a container; return its exit code, or None if it takes longer.

        What it writes is dropped. One that takes longer goes on until the container ends.
        """
        with _translated():
            started = self._api.exec_create(container, list(command))["Id"]
            output = self._api.exec_start(started, socket=True)
            _read_to_end(output, timeout_s)
            seen = self._api.exec_inspect(started)
        return None if seen["Running"] else int(seen["ExitCode"])

    def address(self, container: str) -> str | None:
        """Return where this machine reaches a container's ports; None: nowhere."""
        settings = self.inspect(container)
        if settings["HostConfig"].get("NetworkMode") == "host":
            return LOOPBACK
        of_all = settings["NetworkSettings"]
        networks = (of_all, *(of_all.get("Networks") or {}).values())
        return next((it["IPAddress"] for it in networks if it.get("IPAddress")), None)

    def remove(self, container: str) -> None:
        """Remove a container, running or not; harmless if it is gone."""
        try:
            with _translated():
                self._api.remove_container(container, force=True, v=True)
        except EngineError as error:
            if not error.is_missing:
                raise

    def logs(self, container: str, *, is_stdout: bool, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a container has written, and the last of them."""
        parts: deque[bytes] = deque()
        total = kept = 0
        with _translated():
            for part in self._api.logs(
                container, stdout=is_stdout, stderr=not is_stdout, stream=True, follow=False
            ):
                parts.append(part)
                total += len(part)
                kept += len(part)
                while kept - len(parts[0]) >= bytes_max:
                    kept -= len(parts.popleft())
        return total, b"".join(parts)[-bytes_max:]


def _probe(address: str) -> None:
    """Ask whether anybody is there: the SDK leaves a socket open that found nobody."""
    found = parse_host(address)  # in each way in which the SDK lets a path be written
    if not found.startswith(UNIX):
        return
    path = "/" + found.removeprefix(UNIX).removeprefix("/")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMEOUT_S)
        try:
            probe.connect(path)
        except OSError as error:
            raise EngineError(error.strerror or str(error)) from error


def _read_to_end(output: socket.SocketIO, timeout_s: float) -> None:
    """Read what the engine sends, until it ends or the time is up, and close the connection."""
    connection: socket.socket = output._sock  # type: ignore[attr-defined]  # noqa: SLF001 - the SDK closes none that it hands out
    connection.settimeout(None)  # the SDK's own time is shorter than that of some checks
    too_long = Timer(timeout_s, _shut_down, [connection])
    too_long.daemon = True
    too_long.start()
    try:
        while output.read(READ_BYTES):
            pass
    finally:
        too_long.cancel()
        output.close()
        connection.close()


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # it may be closed by now
        connection.shutdown(socket.SHUT_RDWR)


# While an answer is read in parts, the SDK passes on what urllib3 and the socket raise.
_FAILURES: Final = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    docker.errors.StreamParseError,
    struct.error,
    OSError,
)


# What the SDK does not even ask an engine for, such as GPUs of one that is too old.
_REFUSED_BY_SDK: Final = (
    docker.errors.InvalidVersion,
    docker.errors.InvalidArgument,
    docker.errors.NullResource,
)
_SILENT: Final = (
    requests.exceptions.ReadTimeout,
    urllib3.exceptions.ReadTimeoutError,
    TimeoutError,
)


@contextmanager
def _translated(silence_s: float | None = None) -> Iterator[None]:
    try:
        yield
    except _SILENT as error:
        limit_s = TIMEOUT_S if silence_s is None else silence_s
        raise EngineError(f"the engine sent nothing for {limit_s:g} s") from error
    except _FAILURES as error:
        text = getattr(error, "explanation", None) or str(error)
        status = getattr(error, "status_code", None)
        line = " ".join(str(text).split())
        if status is None and isinstance(error, _REFUSED_BY_SDK):
            status = INVALID
        raise EngineError(line, status) from error
