"""Checks of programs by the network: a connection, or a request.

Goal     Tell whether a program answers at a port.
Promise  Nothing is raised. What a program answers is read up to the end of its first line, in at
         most `READS_MAX` parts, so that none can hold a check for ever by sending slowly.
Source   docs/decisions/0047-checks.md; RFC 9112 (status-line).
"""

import re
import socket
from typing import Final

READS_MAX: Final = 16
READ_BYTES: Final = 4_096
STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
SUCCESSES: Final = range(200, 400)


def connects(host: str, port: int, timeout_s: float) -> str | None:
    """Connect by TCP; return why that failed, or None."""
    try:
        with socket.create_connection((host, port), timeout_s):
            return None
    except OSError as error:
        return _sentence(error, port)


def answers(host: str, port: int, path: str, timeout_s: float) -> str | None:
    """Ask for a path by HTTP; return why the answer is no success, or None."""
    lines = (f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "User-Agent: omega-check")
    request = "\r\n".join((*lines, "Connection: close", "", ""))
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(request.encode("ascii"))
            answer = _first_line(connection)
    except OSError as error:
        return _sentence(error, port)
    status = STATUS_LINE.match(answer)
    if status is None:
        return f"port {port} does not speak HTTP"
    code = int(status.group(1))
    return None if code in SUCCESSES else f"port {port}: HTTP status {code}"


def _first_line(connection: socket.socket) -> bytes:
    answer = b""
    for _ in range(READS_MAX):
        part = connection.recv(READ_BYTES)
        answer += part
        if not part or b"\n" in part:
            break
    return answer


def _sentence(error: OSError, port: int) -> str:
    return f"port {port}: {error.strerror or error}"
