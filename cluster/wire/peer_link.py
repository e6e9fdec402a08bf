"""One peer: both connections to it, and what is on its way there.

Large messages leave piece by piece, as the operating system takes them, and small ones between the pieces: on a slow
line a heartbeat must not wait for megabytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from cluster import limits
from cluster.wire.framing import HEAD_BYTES, pieces, whole
from cluster.wire.messages import Append, Heartbeat, Hello, Message, SnapshotChunk, encode_parts


class LinkConnection(Protocol):
    """One of the two connections, as the link needs it; see peer_connection.py."""

    transport: asyncio.Transport | None     # as long as it is connected
    greeting: Hello | None
    heard_at: float

    def abort(self) -> None:
        """Close it at once."""


class PeerLink:
    """The link is up while both connections stand, and their greetings are exchanged."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.task: asyncio.Task[None] | None = None         # dials
        self.outgoing: LinkConnection | None = None         # dialed by us, greeted by the peer
        self.incoming: LinkConnection | None = None         # dialed by the peer, greeted by us
        self.up = False
        self.waiting: list[Message] = []                    # received before our own side was complete
        self.closed = asyncio.Event()                       # wakes the dialer
        self._early: list[bytes] = []                       # frames that may leave before the journal is synced
        self._late: list[bytes] = []
        self._large: deque[Iterator[bytes]] = deque()       # messages that give way to others; they may leave early
        self._large_bytes = 0

    def add(self, message: Message) -> None:
        """Put a message among those that leave with the next flush."""
        parts = encode_parts(message)
        length = sum(map(len, parts))
        if not isinstance(message, Append | SnapshotChunk):
            (self._early if isinstance(message, Heartbeat) else self._late).append(whole(*parts))
        elif length > limits.PIECE_BYTES or self._large:           # what is behind a large one must stay behind it
            self._large.append(pieces(*parts))
            self._large_bytes += length
        else:
            self._early.append(whole(*parts))

    def unsent_bytes(self) -> int:
        """Of appends and heartbeats, and of all that the operating system has not taken."""
        if self.outgoing is None or self.outgoing.transport is None:
            return 0
        return self.outgoing.transport.get_write_buffer_size() + self._large_bytes + sum(map(len, self._early))

    def flush_early(self) -> None:
        """Send what need not wait for the journal."""
        if self._early:
            self._write(self._early)
            self._early = []
        if self._large:
            self.write_large()

    def flush_late(self) -> None:
        """Send the rest."""
        if self._late:
            self._write(self._late)
            self._late = []

    def write_large(self) -> None:
        """Write pieces until the connection has enough to do."""
        transport = self.outgoing.transport if self.outgoing is not None else None
        while transport is not None and self._large and transport.get_write_buffer_size() <= limits.LINK_WINDOW_BYTES:
            piece = next(self._large[0], None)
            if piece is None:
                self._large.popleft()
            else:
                self._large_bytes -= len(piece) - HEAD_BYTES
                transport.write(piece)

    def clear(self) -> None:
        """Close both connections; nothing of before is sent or received any more."""
        incoming, outgoing, self.incoming, self.outgoing = self.incoming, self.outgoing, None, None
        self._early, self._late, self.waiting = [], [], []
        self._large.clear()
        self._large_bytes = 0
        for connection in (incoming, outgoing):
            if connection is not None:
                connection.abort()
        self.closed.set()

    def _write(self, frames: list[bytes]) -> None:
        if self.outgoing is not None and self.outgoing.transport is not None:
            self.outgoing.transport.write(b"".join(frames))
