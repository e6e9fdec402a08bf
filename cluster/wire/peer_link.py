"""The link to a peer: both connections, and the messages waiting to be sent.

Large messages are sent piece by piece, as the operating system accepts them, with small ones between the pieces: on a
slow line a heartbeat must not wait behind megabytes. Those of replication are sent before those for clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.wire.framing import HEAD_BYTES, pieces, whole
from sockpqd.cluster.wire.messages import (
    Ack,
    Append,
    CallOutcome,
    CommandAnswer,
    ForwardedCall,
    ForwardedCommand,
    Heartbeat,
    Hello,
    Message,
    Notice,
    SnapshotChunk,
    TimeoutNow,
    encode,
    encode_parts,
)
from sockpqd.cluster.wire.moved import Addresses

log = logging.getLogger("sockpqd.peers")

EARLY = Append | SnapshotChunk | Notice | TimeoutNow    # need not wait for the journal, and keep their order
# Messages for clients, which need not wait for the journal either. They are unordered: a small one may overtake a large
# one.
ASIDE = ForwardedCall | CallOutcome | ForwardedCommand | CommandAnswer


class LinkConnection(Protocol):
    """The part of each of its two connections (peer_connection.py) that a link uses."""

    transport: asyncio.Transport | None     # as long as it is connected
    greeting: Hello | None
    heard_at: float

    def abort(self) -> None:
        """Close the connection at once."""

    def close(self) -> None:
        """Close the connection when everything queued is sent."""

    def unlink(self) -> None:
        """Detach the connection from its link."""


class _Large:
    """Large messages, in pieces that are made when they are sent."""

    def __init__(self) -> None:
        self.bytes = 0                                      # not sent yet
        self.messages: deque[Iterator[bytes]] = deque()

    def add(self, parts: list[bytes], length: int) -> None:
        self.messages.append(pieces(*parts))
        self.bytes += length

    def clear(self) -> None:
        self.messages.clear()
        self.bytes = 0


class PeerLink:
    """A link is up while both connections are established and greetings were exchanged on them."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.addresses = Addresses(name, address)
        self.task: asyncio.Task[None] | None = None         # dials the peer
        self.outgoing: LinkConnection | None = None         # dialled by us, greeted by the peer
        self.incoming: LinkConnection | None = None         # dialled by the peer, greeted by us
        self.up = False
        self.waiting: list[Message] = []                    # received before the outgoing connection was ready
        self.closed = asyncio.Event()                       # wakes the task that dials
        self._early: list[bytes] = []                       # frames that may be sent before the journal is synced
        self._clients: list[bytes] = []                     # small ones for clients, which leave with them
        self._late: list[bytes] = []                        # frames that may not
        self._held: list[bytes] = []                        # those among them for which a sync has begun
        self._large = _Large()                              # of EARLY, which may be sent early too
        self._aside = _Large()
        self._begun: _Large | None = None                   # the one whose first message is being sent

    def add(self, message: Message) -> None:
        """Queue a message for the next flush. One that the peer would not accept is dropped, with an error in the log.

        Messages are bounded where they are made; without the link no client would be served.
        """
        if type(message) is Ack:
            self._late.append(whole(encode(message)))
            return
        parts = encode_parts(message)
        length = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        if length > limits.MESSAGE_BYTES_MAX:
            log.error("a message %s of %d bytes for %s was not sent (limit %d): report it, with this line",
                      type(message).__name__, length, self.name, limits.MESSAGE_BYTES_MAX)
        elif isinstance(message, EARLY):
            if length > limits.PIECE_BYTES or self._large.messages:     # one must not overtake a large one before it
                self._large.add(parts, length)
            else:
                self._early.append(whole(*parts))
        elif isinstance(message, ASIDE):
            if length > limits.PIECE_BYTES:
                self._aside.add(parts, length)
            else:
                self._clients.append(whole(*parts))
        else:
            (self._early if isinstance(message, Heartbeat) else self._late).append(whole(*parts))

    def unsent_bytes(self) -> int:
        """Bytes of queued appends and heartbeats, and of everything the operating system has not accepted."""
        if self.outgoing is None or self.outgoing.transport is None:
            return 0
        return self.outgoing.transport.get_write_buffer_size() + self._large.bytes + sum(map(len, self._early))

    def unsent_calls_bytes(self) -> int:
        """Bytes of large messages for clients, and of everything the operating system has not accepted."""
        if self.outgoing is None or self.outgoing.transport is None:
            return 0
        return self.outgoing.transport.get_write_buffer_size() + self._aside.bytes

    def flush_early(self) -> None:
        """Send the frames that need not wait for the journal."""
        if self._early or self._clients:
            early, self._early, self._clients = self._early + self._clients, [], []
            self._write(early)
        if self._large.messages or self._aside.messages:
            self.write_large()

    def hold(self) -> None:
        """Keep the frames that wait for the journal until release()."""
        self._held += self._late
        self._late = []

    def release(self) -> None:
        """Send the frames kept by hold()."""
        if self._held:
            held, self._held = self._held, []
            self._write(held)

    def flush(self) -> bool:
        """Send also the frames that had to wait for the journal. Returns whether large messages are left."""
        if self._early or self._clients or self._large.messages or self._aside.messages:
            self.flush_early()
        if self._late:
            late, self._late = self._late, []
            self._write(late)
        return bool(self._large.messages or self._aside.messages)

    def write_large(self) -> None:
        """Write pieces of large messages until the connection has LINK_WINDOW_BYTES to send."""
        transport = self.outgoing.transport if self.outgoing is not None else None
        while transport is not None and transport.get_write_buffer_size() <= limits.LINK_WINDOW_BYTES:
            large = self._begun or (self._large if self._large.messages else self._aside)
            if not large.messages:
                return
            piece = next(large.messages[0], None)
            if piece is None:
                large.messages.popleft()
                self._begun = None
            else:
                self._begun = large
                large.bytes -= len(piece) - HEAD_BYTES
                transport.write(piece)

    def clear(self) -> None:
        """Close both connections and drop everything queued."""
        incoming, outgoing, self.incoming, self.outgoing = self.incoming, self.outgoing, None, None
        self._early, self._clients, self._late, self._held, self.waiting = [], [], [], [], []
        self._large.clear()
        self._aside.clear()
        self._begun = None
        for connection in (incoming, outgoing):
            if connection is not None:
                connection.abort()
        self.closed.set()

    def _write(self, frames: list[bytes]) -> None:
        if self.outgoing is not None and self.outgoing.transport is not None:
            self.outgoing.transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
