"""The address of this machine, by which tasks on other machines reach those here.

Goal     Find it without asking the operator.
Promise  Nothing is sent. An address that cannot be found is that of the loopback interface.
Source   connect(2) on a datagram socket: it chooses the interface, and no packet leaves.
"""

import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 9
"""Any port will do: of the discard protocol (RFC 863)."""


def address_towards(host: str | None) -> str:
    """Return the address of the interface that leads to a host; None: one on this machine."""
    if host is None:
        return LOOPBACK
    try:
        (family, kind, _, _, to), *_ = socket.getaddrinfo(host, PORT, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as probe:
            probe.connect(to)
            address: str = probe.getsockname()[0]
    except OSError:
        return LOOPBACK
    return address.partition("%")[0]  # without the interface of a link-local one
