"""What a forked child has of its parent: no job, no session, no loop, and no connection that leads anywhere.

Whatever a child closes, ends or leaves, its parent goes on with what it has. A blocking client may be used in both: the
calls of the child make connections and sessions of their own.
"""

from __future__ import annotations

import os
import socket
from typing import Protocol
from weakref import WeakSet

from sockpq.errors import Inherited


class Connected(Protocol):
    """An open connection."""

    def fileno(self) -> int:
        """Its descriptor; negative when it is closed."""
        ...


_connections: WeakSet[Connected] = WeakSet()


def is_inherited(process: int) -> bool:
    """Does what this process has made belong to a parent of the present one?"""
    return process != os.getpid()


def check_own(process: int, what: str) -> None:
    """Raise Inherited unless what `process` has made belongs to the present one."""
    if process != os.getpid():
        raise Inherited(f"{what} belongs to process {process}, which has forked this one: make or take one here")


def note_connection(connection: Connected) -> None:
    """A connection was opened: in children that are forked while it is open it leads nowhere."""
    _connections.add(connection)


def _sever() -> None:
    """Let the descriptors of the parent's connections be those of a closed one.

    Closing them is not enough: asyncio's epoll is shared with the parent, and whatever the child does with a descriptor
    before (shutdown, receiving, no longer listening to it) is done to the parent's connection.
    """
    dead, other = socket.socketpair()
    other.close()
    with dead:
        for connection in list(_connections):
            descriptor = connection.fileno()
            if descriptor >= 0:
                os.dup2(dead.fileno(), descriptor, inheritable=False)


os.register_at_fork(after_in_child=_sever)
