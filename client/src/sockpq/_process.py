"""The parts of the client that a forked child inherits: no job, no session, no loop, and no usable connection.

Nothing that a child closes, ends or leaves affects its parent. A blocking client may be used in both: the child's calls
create their own connections and sessions.
"""

from __future__ import annotations

import os
import socket
from typing import Protocol
from weakref import WeakSet

from sockpq.errors import Inherited


class Connected(Protocol):
    """An object with an open connection."""

    def fileno(self) -> int:
        """Return the file descriptor; negative when it is closed."""
        ...


_connections: WeakSet[Connected] = WeakSet()


def is_inherited(process: int) -> bool:
    """Return whether an object made in `process` belongs to a parent of this process."""
    return process != os.getpid()


def check_own(process: int, what: str) -> None:
    """Raise Inherited unless an object made in `process` belongs to this process."""
    if process != os.getpid():
        raise Inherited(f"{what} belongs to process {process}, which has forked this one: make or take one here")


def note_connection(connection: Connected) -> None:
    """Register an open connection, to be severed in children forked while it is open."""
    _connections.add(connection)


def _sever() -> None:
    """Redirect the descriptors of the parent's connections to a closed connection.

    Closing them is not enough: asyncio's epoll is shared with the parent, and anything that the child does with a
    descriptor before that (shutdown, receive, removing it from epoll) affects the parent's connection.
    """
    dead, other = socket.socketpair()
    other.close()
    with dead:
        for connection in list(_connections):
            descriptor = connection.fileno()
            if descriptor >= 0:
                os.dup2(dead.fileno(), descriptor, inheritable=False)


os.register_at_fork(after_in_child=_sever)
