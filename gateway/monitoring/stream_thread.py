"""The thread that serves the streams of events over HTTP: it finds the streams of each event, and writes to them.

All of them together cost the event loop one addition to a list for each applied entry, however many they are. The
thread reads the list a few times a second, and yields to the loop: both need the interpreter, so it pauses after each
portion.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from sockpqd.core import GAP
from sockpqd.gateway.events.filters import LOST, MSG, CompiledFilter, Filter
from sockpqd.gateway.events.history import Recorded
from sockpqd.gateway.events.lines import gap
from sockpqd.gateway.events.subscriptions import Subscriptions
from sockpqd.gateway.limits import (
    EVENT_BACKLOG_BYTES,
    EVENT_HISTORY_BYTES,
    EVENT_HISTORY_MAX,
    EVENT_PIECE_BYTES,
    EVENT_PIECE_MAX,
)
from sockpqd.gateway.rights import Rights

log = logging.getLogger("sockpqd.http")

ALIVE_S = 15.0          # a stream without events says at this interval that it lives
ALIVE = b":\n\n"
PAUSE_S = 0.02          # between two looks at what is new
PORTION = 200           # events looked at, by each stream, before the loop may go on, and
REST_S = 0.0005         # for this long it may
JOIN_S = 5.0            # far longer than a look takes
WAITING_MAX = 100_000   # events not looked at; with more all streams are cut
EVENT_BYTES = 100       # a message counts as one event for each of these


Rendered = dict[tuple[Filter, Rights | None], bytes]


class StreamGuard(Protocol):
    """The rights of a stream's user at the time of the call; called only from the stream thread."""

    @property
    def unauthenticated(self) -> bool:
        """True if the user no longer exists."""

    @property
    def rights(self) -> Rights | None:
        """The rights of the stream's user; None: no users are required."""

    def may_hear(self, event_type: str, name: str) -> bool:
        """Return whether the user may receive such an event."""


class StreamConnection(Protocol):
    """The connection of a stream."""

    def send(self, data: bytes) -> int:
        """Send what can be sent at once; returns how much that was. Raises OSError when the client is gone."""

    def close(self) -> None:
        """Close the connection: nothing more will be sent."""


class Direct:
    """The socket of a connection, which the loop still watches, to notice that the client has gone."""

    def __init__(self, fileno: int) -> None:
        self._socket = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)

    def send(self, data: bytes) -> int:
        """Send as much as the kernel accepts."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close the duplicate of the socket; the loop closes its own."""
        self._socket.close()


class Stream:
    """The stream of one client. Only the thread uses its private fields."""

    def __init__(
        self, wish: Filter, guard: StreamGuard, seq: int, past: list[Recorded], cut: Callable[[], None],
    ) -> None:
        """`seq`: up to this number only `past` is sent; `cut()`: closes the connection, from any thread."""
        self.connection: StreamConnection | None = None       # nothing is sent before there is one; see connect()
        self.chunked = True                             # as HTTP/1.1 sends what has no known length
        self.ended = False
        self._left = False                              # by the thread
        self.wish = wish
        self._wanted = CompiledFilter(wish)
        self._guard = guard
        self._cut = cut
        self._seq = seq
        self._past = deque(past)                        # not looked at; what is new comes after it
        self._late, self._late_bytes = 0, 0             # how much of it was new
        self._pieces: list[bytes] = []
        self._bytes = 0                                 # of these
        self._unsent = b""
        self._sent_s = time.monotonic()
        self.sent_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Return the memory held for it, without the shared history, in bytes; called in the loop."""
        return self._bytes + len(self._unsent) + self._late_bytes

    def connect(self, connection: StreamConnection) -> None:
        """Send to this connection from now on, and close it at the end."""
        self.connection = connection
        if self._left:
            connection.close()

    def leave(self) -> None:
        """Close the connection, from the thread: nothing more is sent."""
        self._left = True
        if self.connection is not None:
            self.connection.close()

    def hear(self, chunk: Sequence[Recorded], rendered: Rendered) -> None:
        """Take the next events; `rendered`: their encoded form, shared by all streams that want the same."""
        if self._past:
            self._past += chunk
            self._late += len(chunk)
            self._late_bytes += sum(len(line) for _, line in chunk)
            if self._late > EVENT_HISTORY_MAX or self._late_bytes > EVENT_HISTORY_BYTES:
                self.end()
            return
        first = chunk[0][0]
        if first.seq <= self._seq or first.type == GAP:     # it asked from later on, or knows a part of the gap
            pieces = [self._piece(one) for one in chunk if self._is_new(one) and self.wants(one)]
        else:
            key = self.wish, self._guard.rights
            known = rendered.get(key)
            if known is None:
                known = rendered[key] = b"".join([as_sent(line) for event, line in chunk if self.wants((event, line))])
            pieces = [known]
        for piece in pieces:
            self._add(piece)

    def read_past(self) -> int:
        """Send a piece of the history if the client has read the previous one; returns how many events it had."""
        looked = 0
        while self._past and looked < EVENT_PIECE_MAX and self._bytes + len(self._unsent) < EVENT_PIECE_BYTES:
            recorded = self._past.popleft()
            looked += 1
            if self.wants(recorded):
                self._add(as_sent(recorded[1]))
        return looked

    def send(self, now_s: float) -> None:
        """Send as much as can be sent."""
        if self.connection is None:
            return
        if not self._unsent:
            if not self._pieces and now_s - self._sent_s < ALIVE_S:
                return
            body = b"".join(self._pieces) or ALIVE
            self._unsent = b"%x\r\n%s\r\n" % (len(body), body) if self.chunked else body
            self._pieces, self._bytes = [], 0
        try:
            size = self.connection.send(self._unsent)
        except OSError:
            self.end()
            return
        if size:
            self._unsent = self._unsent[size:]
            self.sent_bytes += size
            self._sent_s = now_s

    def end_of_stranger(self) -> None:
        """End the stream if its user no longer exists."""
        if self._guard.unauthenticated:
            self.end()

    def end(self) -> None:
        """Have the loop close the connection, once."""
        if not self.ended:
            self.ended = True
            self._cut()

    def wants(self, recorded: Recorded) -> bool:
        """Return whether the stream asked for such an event and may receive it."""
        event = recorded[0]
        if event.type == GAP:
            return True
        if event.type == LOST:
            return MSG in self.wish.types
        return self._wanted.wants(event.type, event.name) and self._guard.may_hear(event.type, event.name)

    def _is_new(self, recorded: Recorded) -> bool:
        return recorded[0].type in (MSG, LOST) or recorded[0].seq > self._seq

    def _piece(self, recorded: Recorded) -> bytes:
        event = recorded[0]
        if event.type == GAP and event.words and self._seq >= int(event.words[0]):      # it knows of the first ones
            return as_sent(gap(self._seq + 1, event.seq))
        return as_sent(recorded[1])

    def _add(self, piece: bytes) -> None:
        """Queue this piece; end the stream if too much is unsent."""
        if piece and self._bytes + len(self._unsent) >= EVENT_BACKLOG_BYTES:
            self.end()
        elif piece:
            self._pieces.append(piece)
            self._bytes += len(piece)


class StreamThread:
    """All streams of a node, and their thread, which begins with the first one."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._new: deque[Stream | Sequence[Recorded]] = deque()     # from the loop to the thread
        self._streams: dict[Stream, None] = {}                      # of the thread
        self._some = threading.Event()                              # whether there are streams
        self._given = self._looked = 0                              # events; written by the loop, and by the thread
        self._overrun = False
        self._stopping = False
        self._thread: threading.Thread | None = None

    # ---- for the loop

    def begin(self, wish: Filter, after: int | None, guard: StreamGuard, cut: Callable[[], None]) -> Stream:
        """Open a stream of events from now on, or after the number `after`; it sends once it has a connection."""
        seq, past = self._subscriptions.begin_relay(self, wish, after)
        stream = Stream(wish, guard, seq, past, cut)
        self._new.append(stream)
        self._some.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="streams", daemon=True)
            self._thread.start()
        return stream

    def end(self, stream: Stream) -> None:
        """End a stream whose client is gone or must be disconnected."""
        stream.ended = True
        self._subscriptions.end_relay(stream.wish)

    def stop(self) -> None:
        self._stopping = True
        self._some.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def add(self, recorded: Sequence[Recorded]) -> None:
        """Hand events to the thread; all streams are closed if it is too far behind."""
        if self._given - self._looked > WAITING_MAX:
            self._overrun = True
            return
        self._given += _weight(recorded)
        self._new.append(recorded)

    # ---- the thread

    def _run(self) -> None:
        while not self._stopping:
            self._some.wait()
            try:
                self._look()
            except Exception:
                log.exception("streams of events failed and are closed: report it, with this line")
                self._overrun = True
            time.sleep(PAUSE_S)
        for stream in (*self._streams, *(new for new in self._new if isinstance(new, Stream))):
            stream.leave()

    def _look(self) -> None:
        """Take new events from the loop, and write them."""
        if self._overrun:
            self._overrun = False
            for stream in self._streams:
                stream.end()
        for stream in self._streams:
            stream.end_of_stranger()
        self._take_new()
        for stream in self._streams:
            if not stream.ended and stream.read_past():
                time.sleep(REST_S)
        now_s = time.monotonic()
        for stream in list(self._streams):
            if stream.ended:
                del self._streams[stream]
                stream.leave()
            else:
                stream.send(now_s)
        if not self._streams:
            self._some.clear()
            if self._new or self._stopping:         # meanwhile
                self._some.set()

    def _take_new(self) -> None:
        portion = 0
        while self._new:
            new = self._new.popleft()
            if isinstance(new, Stream):
                self._streams[new] = None
                continue
            rendered: Rendered = {}
            for stream in self._streams:
                stream.hear(new, rendered)
            portion += len(self._streams) + len(rendered) * len(new)
            if portion >= PORTION:
                portion = 0
                time.sleep(REST_S)
            self._looked += _weight(new)


def _weight(recorded: Sequence[Recorded]) -> int:
    """Return the size of these, counted in events; a message comes alone."""
    return 1 + len(recorded[0][1]) // EVENT_BYTES if len(recorded) == 1 else len(recorded)


def as_sent(line: bytes) -> bytes:
    """A line of the protocol, `250 813 FINI order_17`, as an event of a stream; its data follow in lines."""
    head, _, data = line.partition(b"\r\n")
    _, number, text = head.split(b" ", 2)
    lines = [text, *data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")] if data else [text]
    event = text.partition(b" ")[0]
    return b"id: %s\nevent: %s\n" % (number, event) + b"".join([b"data: %s\n" % one for one in lines]) + b"\n"
