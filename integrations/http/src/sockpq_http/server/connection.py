"""A connection with the limits of docs/SECURITY.md: its place, slow clients, hosts that have vanished."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from sockpq_http.access.peer import STATE, Peer, is_local, share_of
from sockpq_http.problems.problem import MEDIA_TYPE, Problem
from sockpq_http.server.metrics import Metrics
from sockpq_http.server.places import Places
from sockpq_http.server.settings import ConnectionLimits


class GuardedConnection(H11Protocol):
    """A connection that is cut when its client is too slow, or others need its place.

    `address`: the unit that shares places, None for this machine.
    """

    def __init__(
        self, accepted: socket.socket, host: str, places: Places, limits: ConnectionLimits, metrics: Metrics,
        config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any],
    ) -> None:
        """`accepted`: its socket, from a client at `host`."""
        self.peer = Peer(share_of(host), self._recognise, partial(self._cut, "memory"))
        super().__init__(config, server_state, {**app_state, STATE: self.peer})
        self.address = None if is_local(host) else self.peer.address
        self._accepted = accepted
        self._places = places
        self._limits = limits
        self._metrics = metrics
        self._reading: asyncio.TimerHandle | None = None
        self._reads_body = False
        self._writing: asyncio.TimerHandle | None = None

    @property
    def made(self) -> bool:
        """True once the handshake of TLS, if there is one, has succeeded."""
        return self.transport is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and wait for a request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give its place back, and end the work for its client."""
        super().connection_lost(exc)
        self._places.leave(self)
        self.peer.leave()
        self.app_state = {}         # whose peer refers to this connection
        for timer in (self._reading, self._writing, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()

    def make_room(self) -> None:
        """End at once, as another connection needs the place, or the instance ends."""
        self._metrics.cut.labels("room").inc()
        if self.made:
            self.transport.abort()
        else:
            with suppress(OSError):
                self._accepted.shutdown(socket.SHUT_RDWR)       # its handshake fails

    def _recognise(self) -> None:
        self._places.recognise(self)

    def data_received(self, data: bytes) -> None:
        """Handle bytes; a request that has begun must be complete in time."""
        if self._reading is None and self.conn.their_state is h11.IDLE:
            self._await_head()
        super().data_received(data)
        self._note_state()

    def send_400_response(self, msg: str) -> None:
        """Answer input that is not a request, in the form of all problems, and end the connection."""
        self._metrics.cut.labels("malformed").inc()
        with suppress(h11.LocalProtocolError):          # an answer is on its way already
            body = Problem(400, msg, "no-request").answer().body
            head = h11.Response(status_code=400, reason=b"Bad Request", headers=[
                (b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ])
            for event in (head, h11.Data(data=bytes(body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Continue with the next request; what is left of the answer must be read in time."""
        super().on_response_complete()
        self._note_state()
        if self.transport.get_write_buffer_size():
            self._await_reader()

    def pause_writing(self) -> None:
        """Stop sending, as the client does not read; it must read again in time."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Resume sending, as the client reads again; the time limit for that ends."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _note_state(self) -> None:
        """Watch the body after the head; nothing after that."""
        if self.conn.their_state is h11.SEND_BODY:
            if not self._reads_body:
                self._reads_body = True
                self._watch(self._limits.body_timeout_s, "body")
        elif self.conn.their_state is not h11.IDLE:
            self._stop_watching()

    def _await_head(self) -> None:
        self._watch(self._limits.head_timeout_s, "head")

    def _watch(self, seconds: float, limit: str) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self.loop.call_later(seconds, self._cut, limit)

    def _stop_watching(self) -> None:
        self._reads_body = False
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _await_reader(self) -> None:
        if self._writing is None:
            self._writing = self.loop.call_later(self._limits.answer_timeout_s, self._cut_if_unread)

    def _cut_if_unread(self) -> None:
        self._writing = None
        if self.transport.get_write_buffer_size():
            self._cut("answer")

    def _cut(self, limit: str) -> None:
        self._metrics.cut.labels(limit).inc()
        self.transport.abort()

