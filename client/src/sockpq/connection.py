"""One blocking connection to one server: moves the bytes of a Protocol, with a time limit on every wait."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sockpq.addresses import Address
from sockpq.commands import Command
from sockpq.protocol import Answer, Protocol
from sockpq.retry import Lost

READ_BYTES = 65_536             # below malloc's mmap threshold: a larger read costs page faults each time
JOIN_BYTES_MAX = 65_536         # larger bodies are sent apart from their line instead of being copied
KEEPALIVE = (                   # a host that vanished while this client was blocked is noticed after 25 s
    ("TCP_KEEPIDLE", 10),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
)


class Connection:
    """An open connection. Not for two threads at once, except `abort`."""

    def __init__(self, address: Address, timeout: float) -> None:
        """Connect within `timeout` seconds (for each address a name stands for); raises Lost."""
        self.address = address
        self.protocol = Protocol()
        try:
            self._socket = socket.create_connection(address, timeout)
        except (OSError, UnicodeError) as error:        # UnicodeError: a name DNS cannot spell
            raise Lost(f"{address}: {error}", sent=False) from error
        self._timeout: float = timeout
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            if hasattr(socket, option):
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def peer(self) -> Address:
        """The numeric address this connection goes to."""
        host, port = self._socket.getpeername()[:2]
        return Address(host, port)

    def send(self, commands: Sequence[Command[Any]], timeout: float) -> int:
        """Send commands; returns how many were handed over completely: less than all means the connection is lost.

        `timeout` seconds limit the time without progress. A command that was not handed over completely cannot be
        executed: the server waits for its last byte in vain.
        """
        parts: list[bytes] = []
        for command in commands:
            line, data = self.protocol.send(command)
            parts += (line, data) if data else (line,)
        buffers = parts if sum(map(len, parts)) > JOIN_BYTES_MAX and len(commands) == 1 else [b"".join(parts)]
        sent = 0
        self._limit(timeout)
        with suppress(OSError):         # what was not handed over is told by the count
            for buffer in buffers:
                view = memoryview(buffer)
                while view:
                    count = self._socket.send(view)
                    sent += count
                    view = view[count:]
        return _complete(commands, sent)

    def receive(self, timeout: float) -> list[Answer]:
        """The answers in what comes next, possibly none yet; waits at most `timeout` seconds for it.

        Raises TimeoutError, Lost when the connection has ended, ProtocolError when what came is not the protocol.
        """
        self._limit(timeout)
        try:
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise self.lost(str(error)) from error
        if not data:
            raise self.lost("the server closed the connection")
        return self.protocol.receive(data)

    def readable(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until `receive` would not wait: bytes, the end, or an error."""
        self._limit(timeout)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def lost(self, reason: str) -> Lost:
        """The error for commands that were sent completely and will get no answer here."""
        return Lost(f"{self.address}: {reason}", sent=True, waiting=self.protocol.waiting)

    def usable(self) -> bool:
        """Is this idle connection still open, with nothing unasked in it? If not, a command on it would be lost."""
        self._limit(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def finish(self) -> None:
        """Tell the server that nothing more will be sent: it cancels what is blocked and closes (PROTOCOL.md A9)."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """End the connection from another thread: the one that waits on it wakes up."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def _limit(self, timeout: float) -> None:
        if timeout != self._timeout:        # each change is a system call
            self._timeout = timeout
            self._socket.settimeout(timeout)


def _complete(commands: Sequence[Command[Any]], sent_bytes: int) -> int:
    """How many commands lie completely in the first `sent_bytes` bytes."""
    for count, command in enumerate(commands):
        sent_bytes -= len(command.line) + len(command.data)
        if sent_bytes < 0:
            return count
    return len(commands)
