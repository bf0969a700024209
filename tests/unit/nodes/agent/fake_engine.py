"""A container engine that runs nothing: it keeps a list, and a test can hold its answers."""

import json
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

IMAGE: Final = "here:1"
WAIT_S: Final = 10.0
"""How long an answer is held at most: a test that goes wrong ends."""
STDOUT: Final = 1


class FakeEngine:
    """Its containers, its calls so far, and what it does before it answers one."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.calls: list[str] = []
        """`METHOD what`, such as `POST start`, without questions after the version."""
        self.containers: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, bytes] = {}
        self.refused: set[str] = set()
        """Calls that fail."""
        self.held: dict[str, Event] = {}
        """Calls that are answered once their event is set."""
        self.silent = Event()
        """Set while an answer stops in its middle."""
        self.over = Event()
        """Ends the silence."""
        self.pull_goes_on = Event()
        """Has a pull send its events, without end."""
        self.pull_was_left = Event()
        """Set when nobody reads the events of a pull any more."""
        self.is_pull_silent = False
        self.are_logs_silent = False
        self._lock = Lock()

    def add(self, labels: Mapping[str, str], state: str = "created", *, created: int = 0) -> str:
        """Make a container; return its id."""
        with self._lock:
            name = f"c{len(self.logs)}"
            self.logs[name] = f"of {name}\n".encode()
            self.containers[name] = {
                "Id": name,
                "Labels": dict(labels),
                "Created": created,
                "State": state,
            }
            return name

    def end(self, name: str) -> None:
        """Have a container end by itself."""
        self.containers[name]["State"] = "exited"

    def asked(self, call: str) -> int:
        """Return how often a call was made."""
        return self.calls.count(call)


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    fake: FakeEngine


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_one_request(self) -> None:
        """Answer a request, or note that the client has left."""
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        fake = self.server.fake
        url = urlsplit(self.path)
        words = unquote(url.path).strip("/").split("/")
        if words[0].startswith("v1."):
            del words[0]
        length = int(self.headers.get("Content-Length") or 0)
        content = json.loads(self.rfile.read(length) or b"{}") if length else {}
        what = "remove" if self.command == "DELETE" else f"{words[0]} {words[-1]}"
        if words[0] == "containers" and self.command != "DELETE":
            what = words[-1] if len(words) > 2 or words[-1] != "json" else "list"
        call = f"{self.command} {what}"
        if words[0] != "version":
            fake.calls.append(call)
        if call in fake.held:
            fake.held[call].wait(WAIT_S)
        if call in fake.refused:
            self._send(500, {"message": f"{call} is refused"})
            return
        routes: dict[str, Callable[[], None]] = {
            "GET list": lambda: self._list(json.loads(parse_qs(url.query)["filters"][0])),
            "GET json": lambda: self._inspect(words[1]),
            "GET logs": lambda: self._logs(words[1], parse_qs(url.query)),
            "GET images json": lambda: self._image("/".join(words[1:-1])),
            "POST images create": self._pull,
            "POST create": lambda: self._create(content),
            "POST start": lambda: self._state(words[1], "running"),
            "POST kill": lambda: self._state(words[1], "exited"),
            "DELETE remove": lambda: self._remove(words[1]),
            "GET version version": lambda: self._send(200, {"ApiVersion": "1.41"}),
        }
        routes[call]()

    def _send(self, status: int, content: object = None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _begin_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _be_silent(self) -> None:
        fake = self.server.fake
        fake.silent.set()
        fake.over.wait(WAIT_S)
        fake.silent.clear()

    def _list(self, filters: Mapping[str, list[str]]) -> None:
        wanted = dict(it.split("=", 1) for it in filters["label"])
        found = [
            it
            for it in self.server.fake.containers.values()
            if wanted.items() <= it["Labels"].items()
        ]
        self._send(200, found)

    def _inspect(self, name: str) -> None:
        it = self.server.fake.containers.get(name)
        if it is None:
            self._send(404, {"message": "no such container"})
            return
        code = 0 if it["State"] == "exited" else 137
        state = {"Status": it["State"], "ExitCode": code}
        config = {"Tty": False, "Labels": it["Labels"]}
        self._send(200, {"Id": name, "State": state, "Config": config, "HostConfig": {}})

    def _logs(self, name: str, query: Mapping[str, list[str]]) -> None:
        fake = self.server.fake
        if name not in fake.containers:
            self._send(404, {"message": "no such container"})
            return
        self._begin_chunks()
        content = fake.logs[name] if query["stdout"] == ["1"] else b""
        self._send_chunk(struct.pack(">BxxxL", STDOUT, len(content)) + content)
        if fake.are_logs_silent:
            self._be_silent()
        self.wfile.write(b"0\r\n\r\n")

    def _image(self, name: str) -> None:
        if name == IMAGE:
            self._send(200, {"Id": name})
        else:
            self._send(404, {"message": "no such image"})

    def _pull(self) -> None:
        fake = self.server.fake
        self._begin_chunks()
        self._send_chunk(b'{"status": "Pulling"}\r\n')
        if fake.is_pull_silent:
            self._be_silent()
        fake.pull_goes_on.wait(WAIT_S)
        try:
            while not fake.over.wait(0.01):
                self._send_chunk(b'{"status": "Downloading"}\r\n')
        except OSError:
            fake.pull_was_left.set()
            raise
        self.wfile.write(b"0\r\n\r\n")

    def _create(self, content: Mapping[str, Any]) -> None:
        self._send(201, {"Id": self.server.fake.add(content["Labels"])})

    def _state(self, name: str, state: str) -> None:
        self.server.fake.containers[name]["State"] = state
        self._send(204)

    def _remove(self, name: str) -> None:
        gone = self.server.fake.containers.pop(name, None)
        self._send(404, {"message": "no such container"}) if gone is None else self._send(204)


@contextmanager
def fake_engine() -> Iterator[FakeEngine]:
    """Serve a fake engine while the block runs."""
    # Not in pytest's folder: the path of a socket may have 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="omega-engine-") as folder,
        _Server(f"{folder}/engine.sock", _Handler) as server,
    ):
        fake = FakeEngine(f"unix://{folder}/engine.sock")
        server.fake = fake
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            fake.over.set()
            fake.pull_goes_on.set()
            for held in fake.held.values():
                held.set()
            server.shutdown()
            thread.join()
