"""Finds and claims unused ports on loopback."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"

_claims: list[socket.socket] = []       # held until this process ends


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


def claim(port: int) -> bool:
    """Claim this port for this process among all that do so, in one step; returns whether it succeeded.

    Otherwise a free port could be taken, before its node listens, by another one that is starting at the same time.
    """
    name = socket.socket(socket.AF_UNIX)        # the kernel's own namespace, where names go with their process
    try:
        name.bind(f"\0sockpqd-dev-{port}")
    except OSError:
        name.close()
        return False
    _claims.append(name)
    return True


def any_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])
