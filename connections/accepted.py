"""An accepted connection of any listener: its slot, its timeouts, and the memory held for it below its protocol.

Below it are the kernel and TLS, which holds a record until it is complete: until then the protocol above receives
nothing, although the client has begun a command.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol, cast

from sockpqd.connections.limits import KERNEL_BYTES_MIN, ConnectionLimits
from sockpqd.connections.slots import ConnectionSlots, SlotKind
from sockpqd.connections.tcp import drop_when_closed, expect_distance, is_silent, kernel_bytes, set_up
from sockpqd.connections.timeouts import ClientTimeouts, Expected


class ManagedConnection(Protocol):
    """A connection whose slot, timeouts and memory are managed."""

    @property
    def unauthenticated(self) -> bool:
        """True if the client still has to authenticate."""

    def expected(self) -> tuple[str, int]:
        """Return what is expected (an `Expected`), and a number that changes when the client makes progress."""

    def taken_bytes(self) -> int:
        """Return the number of written bytes that the kernel has accepted."""

    def unsent_bytes(self) -> int:
        """Return the number of written bytes that the kernel has not accepted yet."""

    def weigh(self) -> None:
        """Update the memory account after a change of what is held, here or in the kernel."""

    def cut(self, why: str) -> None:
        """Close immediately, log the reason, and drop what is unsent."""


class AcceptedConnection:
    """Manages one connection until `leave` is called; a connection whose `slot` is REFUSED is not managed."""

    __slots__ = (
        "_connection",
        "_leave",
        "_slots",
        "_socket",
        "_timeouts",
        "_transport",
        "_trial",
        "_unsent",
        "host",
        "kernel_bytes",
        "peer",
        "slot",
    )

    def __init__(
        self, transport: asyncio.BaseTransport, connection: ManagedConnection, limits: ConnectionLimits,
        slots: ConnectionSlots, leave: Callable[[AcceptedConnection], None],
    ) -> None:
        """`leave` is called when the connection ends."""
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]    # empty: it is gone already
        self.host, self.peer = host, f"{host}:{number}"
        self.slot = slots.take(host) if host else SlotKind.REFUSED
        self.kernel_bytes = 0               # held by the kernel and by TLS, as last measured
        self._connection = connection
        self._slots = slots
        self._leave = leave
        self._transport = cast(asyncio.Transport, transport)
        self._unsent = 0                    # at the last check
        self._trial = self.slot is SlotKind.PROVISIONAL
        if self.slot is SlotKind.REFUSED:
            return
        self._socket: socket.socket = transport.get_extra_info("socket")
        set_up(self._socket)
        # Bytes that the kernel does not accept are counted at once. With the limit 0 the TLS of uvloop treats an empty
        # buffer as a full one, and does not report room before the next event.
        self._transport.set_write_buffer_limits(0 if transport.get_extra_info("ssl_object") is None else 1)
        self._timeouts = ClientTimeouts(limits, asyncio.get_running_loop().time())

    def end_trial(self) -> None:
        """End the trial: the client is an administrator, or is leaving."""
        if self._trial:
            self._trial = False
            self._slots.end_trial(self.host)

    def expect_distance(self) -> None:
        """Let the kernel hold more for a client that is far away and reads much."""
        expect_distance(self._socket)

    def leave(self) -> None:
        """Release the slot of a connection that has ended or is being refused."""
        if self.slot is not SlotKind.REFUSED:
            self.end_trial()
            self._slots.leave(self.host)
            self.slot = SlotKind.REFUSED
            self._leave(self)

    def measure(self) -> None:
        """Measure what is held by the kernel, for example when its send buffer is full, and by TLS."""
        self.kernel_bytes = kernel_bytes(self._socket)
        if self._incomplete_bytes() >= KERNEL_BYTES_MIN:
            self.kernel_bytes += self._incomplete_bytes()

    def _incomplete_bytes(self) -> int:
        return int(self._transport.get_extra_info("incomplete_bytes", 0))

    def drop_when_closed(self) -> None:
        """Let the kernel drop unsent output on close, if there is much of it: the connection is about to be cut."""
        if self.slot is not SlotKind.REFUSED:
            self.measure()
            if self.kernel_bytes:
                drop_when_closed(self._socket)

    def check(self, now: float) -> None:
        """Enforce the timeouts, and measure what the kernel and TLS hold."""
        connection = self._connection
        unsent = connection.unsent_bytes()
        expected, progress = connection.expected()
        if expected == Expected.NEXT and self._incomplete_bytes():
            expected = Expected.REST
        why = self._timeouts.end(
            now, (expected, progress), connection.taken_bytes(), unsent, unauthenticated=connection.unauthenticated)
        if why is None and is_silent(self._socket):
            why = "it does not acknowledge what was sent to it"
        if why is not None:
            connection.cut(why)
            return
        before = self.kernel_bytes, self._unsent
        self.measure()
        self._unsent = unsent
        if (self.kernel_bytes, unsent) != before:
            connection.weigh()
