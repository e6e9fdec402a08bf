"""Ports on loopback that nobody listens on."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def free(port: int) -> bool:
    """Return whether a node could listen on this port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(1)
        except OSError:
            return False
    return True


def any_port() -> int:
    """Return some free port."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])
