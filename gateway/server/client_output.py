"""Output that waits until a client reads: an event for many clients is held once, not once for each.

A message of 1 MiB for a thousand subscribers that do not read would otherwise take 1 GiB. The transport gets a slice at
a time, so that little of it is in buffers that cannot be shared; and all transports together get a limited amount in
one iteration of the loop, as writing 1 GiB takes half a second, in which a leader would be deposed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

SLICE_BYTES = 64 << 10          # given to the transport at a time
SLICES_PER_TURN = 64            # written in one iteration of the loop, to all clients: 4 MiB
SHARED_BYTES_MIN = 4 << 10      # smaller pieces are joined instead


class SlicedConnection(Protocol):
    """A connection that sends its unsent output in slices."""

    def send_slice(self) -> bool:
        """Send the next slice; return whether another one could be sent at once."""


class SharedOutput:
    """Pieces of output held for several clients, by identity; each piece counts for one of them."""

    def __init__(self) -> None:
        self._senders: dict[SlicedConnection, None] = {}      # in the order of their turns
        self._scheduled = False
        self._readers: dict[int, dict[ClientOutput, None]] = {}     # by the id of a piece, which they keep alive

    def send(self, sender: SlicedConnection) -> None:
        """Let the connection send slices in turns, as long as it can."""
        self._senders[sender] = None
        self._send_soon()

    def _send_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        for _ in range(min(SLICES_PER_TURN, len(self._senders))):
            sender = next(iter(self._senders))
            del self._senders[sender]
            if sender.send_slice():
                self._senders[sender] = None
        if self._senders:
            self._send_soon()

    def keep(self, piece: bytes, outbox: ClientOutput) -> None:
        """Record that the output holds the piece; it counts for the first output that does."""
        readers = self._readers.get(id(piece))
        if readers is None:
            readers = self._readers[id(piece)] = {}
            outbox.charged_bytes += len(piece)
        readers[outbox] = None

    def drop(self, piece: bytes, outbox: ClientOutput) -> None:
        """Record that the output no longer holds the piece; if it counted for this one, it now counts for another."""
        readers = self._readers[id(piece)]
        charged = next(iter(readers)) is outbox
        del readers[outbox]
        if not readers:
            del self._readers[id(piece)]
        if charged:
            outbox.charged_bytes -= len(piece)
            for other in readers:
                other.charged_bytes += len(piece)
                other.recharged()
                break

    def __len__(self) -> int:
        return len(self._readers)


class ClientOutput:
    """The unsent output of one client.

    `recharged()` is called when a shared piece begins to count for this client, because the client for which it counted
    has received it or is gone.
    """

    def __init__(self, shared: SharedOutput, recharged: Callable[[], None]) -> None:
        self.unsent_bytes = 0
        self.charged_bytes = 0          # what counts for this client
        self.recharged = recharged
        self._shared = shared
        self._pieces: deque[tuple[bytes, bool]] = deque()       # and whether it is shared
        self._held: dict[int, int] = {}                         # how often it holds a shared piece
        self._start = 0                                         # of what is left of the first one

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, data: bytes) -> None:
        """Send this after everything before it."""
        self._pieces.append((data, False))
        self.unsent_bytes += len(data)
        self.charged_bytes += len(data)

    def share(self, data: bytes) -> None:
        """Send this object, which other clients hold too, after everything before it."""
        self._pieces.append((data, True))
        self.unsent_bytes += len(data)
        count = self._held.get(id(data), 0)
        self._held[id(data)] = count + 1
        if not count:
            self._shared.keep(data, self)

    def next(self) -> bytes | memoryview:
        """Take the next slice.

        The last one of a piece is a copy, so that it does not keep alive memory that no longer counts.
        """
        piece, shared = self._pieces[0]
        start, end = self._start, self._start + SLICE_BYTES
        if end < len(piece):
            self._start = end
            self.unsent_bytes -= SLICE_BYTES
            return memoryview(piece)[start:end]
        self._start = 0
        self._pieces.popleft()
        self._drop(piece, shared)
        self.unsent_bytes -= len(piece) - start
        return piece[start:]

    def clear(self) -> None:
        pieces, self._pieces = self._pieces, deque()
        self.unsent_bytes = self._start = 0
        for piece, shared in pieces:
            self._drop(piece, shared)

    def _drop(self, piece: bytes, shared: bool) -> None:
        if not shared:
            self.charged_bytes -= len(piece)
            return
        self._held[id(piece)] -= 1
        if not self._held[id(piece)]:
            del self._held[id(piece)]
            self._shared.drop(piece, self)
